"""The lab: the well-known ways to handle an S3 event, measured beside charge-once.

Teaching material, apart from the product: nothing outside this folder imports it but the command
line. `docs/lab.md` explains what is seen here.
"""
