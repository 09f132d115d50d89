"""The published document is what the code goes by."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from provider import contract
from provider.api import Api, idempotency_key
from provider.core import AFTER_MONEY, BEFORE_MONEY, WHILE_IN_FLIGHT, Provider
from provider.problem import Problem
from provider.sqlite import SqliteStore

DOCUMENT = json.loads(contract.DOCUMENT)


def test_every_operation_has_code_and_all_code_an_operation() -> None:
    store = SqliteStore(":memory:")
    provider = Provider(store, key_retention_seconds=1, in_flight_seconds=1, test_mode=True)

    handled = set(Api(provider, bool)._handlers)

    store.close()
    assert handled == {operation.name for operation in contract.operations()}


def test_every_fault_of_the_document_strikes_at_some_moment() -> None:
    named = DOCUMENT["components"]["schemas"]["FaultRequest"]["properties"]["fault"]["enum"]

    assert sorted(named) == sorted(BEFORE_MONEY + WHILE_IN_FLIGHT + AFTER_MONEY)


@given(st.binary() | st.text().map(str.encode) | st.from_type(type(None)).map(lambda _: b"{}"))
def test_any_bytes_are_parsed_or_refused(body: bytes) -> None:
    try:
        value = contract.parse(body)
    except Problem as problem:
        assert problem.status == 400
    else:
        assert json.loads(body) == value


@given(st.text())
def test_any_header_is_a_key_of_1_to_255_printable_characters_or_refused(header: str) -> None:
    try:
        key = idempotency_key(header)
    except Problem as problem:
        assert problem.status == 400
    else:
        assert 1 <= len(key) <= 255
        assert key.isascii()
        assert key.isprintable()


@pytest.mark.parametrize(
    ("header", "key"),
    [
        ("a", "a"),
        ("charge#0123", "charge#0123"),
        ("with space", "with space"),
        ('"a"', "a"),
        ('"with \\"quotes\\" and \\\\"', 'with "quotes" and \\'),
        ('a"b', 'a"b'),
        ('" "', " "),
        ("x" * 255, "x" * 255),
        (f'"{"x" * 255}"', "x" * 255),
    ],
)
def test_a_key_may_be_bare_or_quoted(header: str, key: str) -> None:
    assert idempotency_key(header) == key


@pytest.mark.parametrize("header", ["", " ", "a ", " a", '"a', '"a\\"', "ü", "a\n", "x" * 256])
def test_what_is_no_key_is_refused(header: str) -> None:
    with pytest.raises(Problem) as refusal:
        idempotency_key(header)

    assert refusal.value.document["code"] == "idempotency-key-invalid"


def test_a_query_that_is_no_text_is_refused() -> None:
    [listing] = [each for each in contract.operations() if each.name == "list_charges"]

    with pytest.raises(Problem) as refusal:
        listing.parameters("reference=%ff")

    assert refusal.value.status == 400
