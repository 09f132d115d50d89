"""The provider as a Lambda behind a Function URL (payload format 2.0)."""

import base64
import logging
import os
from functools import cache
from typing import Any

import boto3

from provider.api import Api, Request
from provider.core import Provider
from provider.credential import Credential
from provider.dynamodb import DynamoDbStore
from provider.settings import Settings


def handle(event: dict[str, Any], context: object) -> dict[str, Any]:
    """One request of the Function URL, one response."""
    del context
    response = _api().respond(to_request(event))
    return {
        "statusCode": response.status,
        "headers": response.headers,
        "body": response.body,
        "isBase64Encoded": False,
    }


def to_request(event: dict[str, Any]) -> Request:
    """A payload of format 2.0 as a request: header names in any case, body perhaps in base64."""
    body = event.get("body") or ""
    return Request(
        method=event["requestContext"]["http"]["method"],
        path=event["rawPath"],
        query=event.get("rawQueryString", ""),
        headers={name.lower(): value for name, value in event.get("headers", {}).items()},
        body=base64.b64decode(body) if event.get("isBase64Encoded") else body.encode(),
    )


@cache
def _api() -> Api:
    """Put together once per process, when the first request comes."""
    logging.getLogger("provider").setLevel(logging.INFO)
    settings = Settings.read(os.environ)
    secrets = boto3.client("secretsmanager")
    provider = Provider(
        DynamoDbStore(settings.table),
        key_retention_seconds=settings.key_retention_seconds,
        in_flight_seconds=settings.in_flight_seconds,
        test_mode=settings.test_mode,
    )
    credential = Credential(
        lambda: str(secrets.get_secret_value(SecretId=settings.api_key_secret_arn)["SecretString"])
    )
    return Api(provider, credential.accepts)
