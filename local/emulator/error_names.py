"""What an SDK or an integration says when a call fails before, or after, it has had its effect."""

#: By service and kind of fault.
ERROR_NAMES = {
    ("dynamodb", "error"): "DynamoDB.InternalServerErrorException",
    ("dynamodb", "throttle"): "DynamoDB.ProvisionedThroughputExceededException",
    ("dynamodb", "lost"): "DynamoDB.SdkClientException",
    ("sqs", "error"): "SQS.AmazonSQSException",
    ("sqs", "throttle"): "SQS.RequestThrottledException",
    ("sqs", "lost"): "SQS.SdkClientException",
    ("lambda", "error"): "Lambda.ServiceException",
    ("lambda", "throttle"): "Lambda.TooManyRequestsException",
    ("lambda", "lost"): "Lambda.SdkClientException",
}
