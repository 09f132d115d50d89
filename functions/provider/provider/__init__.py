"""A mock payment provider that deduplicates by idempotency key, like the real ones.

It stands for somebody else's company: it imports nothing of the pipeline, and the pipeline talks
to it over HTTP only. `openapi.json` is the contract, `core` the rules, `store` what the rules ask
of a data base; `dynamodb` and `sqlite` are the two that answer. `handler` runs it as a Lambda,
`python -m provider` alone.
"""
