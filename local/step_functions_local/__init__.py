"""AWS's Step Functions Local as the engine of the local stack: `make local ENGINE=…`.

The emulator stays the one endpoint for everybody. Started with `--step-functions-endpoint`, it
hands executions on to Step Functions Local (`forwarding`), keeps every run until it has ended
(`runs`), and Step Functions Local calls back for DynamoDB, SQS and Lambda. `program` finds,
starts and stops it.
"""
