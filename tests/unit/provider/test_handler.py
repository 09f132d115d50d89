"""Payloads of a Function URL (format 2.0)."""

import base64
from typing import Any

import pytest
from provider.handler import to_request

EVENT = {
    "version": "2.0",
    "rawPath": "/v1/charges",
    "rawQueryString": "",
    "headers": {"content-type": "application/json", "idempotency-key": "k"},
    "requestContext": {"http": {"method": "POST"}},
    "body": '{"amount":1}',
    "isBase64Encoded": False,
}


def test_a_plain_payload_is_read() -> None:
    request = to_request(EVENT)

    assert (request.method, request.path, request.query) == ("POST", "/v1/charges", "")
    assert request.headers["idempotency-key"] == "k"
    assert request.body == b'{"amount":1}'


def test_a_body_in_base64_is_decoded() -> None:
    encoded = base64.b64encode(b"\xff\x00").decode()

    assert to_request(EVENT | {"body": encoded, "isBase64Encoded": True}).body == b"\xff\x00"


def test_header_names_are_found_in_any_case() -> None:
    request = to_request(EVENT | {"headers": {"IDEMPOTENCY-Key": "k"}})

    assert request.headers == {"idempotency-key": "k"}


def test_a_query_stays_as_sent() -> None:
    assert to_request(EVENT | {"rawQueryString": "reference=a%23b"}).query == "reference=a%23b"


@pytest.mark.parametrize("missing", ["body", "headers", "rawQueryString", "isBase64Encoded"])
def test_what_a_get_may_lack_is_not_missed(missing: str) -> None:
    event: dict[str, Any] = {name: value for name, value in EVENT.items() if name != missing}

    assert to_request(event).path == "/v1/charges"
