"""One Lambda function that handles S3 notifications in the way that HANDLER_MODE names."""
