"""The order file: any bytes give an order or a refusal that names the field."""

import json
from decimal import Decimal

import pytest
from charge.errors import OrderRejected
from charge.money import MAX_AMOUNT_MINOR
from charge.order_file import FIELDS, FILE, MAX_FILE_BYTES, Order, parse_order
from hypothesis import given
from hypothesis import strategies as st

from tests.malformed_orders import VALID, MalformedOrder, malformed_orders, valid_text

MALFORMED = malformed_orders()


def refusal(body: bytes) -> OrderRejected:
    with pytest.raises(OrderRejected) as caught:
        parse_order(body)
    return caught.value


def test_a_valid_file_is_an_order() -> None:
    assert parse_order(valid_text().encode()) == Order(
        order_id="A-1001",
        customer="cus_42",
        amount_minor=1999,
        currency="EUR",
        payment_method="tok_visa",
    )


@pytest.mark.parametrize(
    "body",
    [
        b"\xef\xbb\xbf" + valid_text().encode(),
        b"\xef\xbb\xbf" + valid_text().replace(", ", ",\r\n").encode() + b"\r\n",
        valid_text()[:-1].encode() + b', "note": {"amount": [1e999, NaN]}, "note": null}',
        valid_text().encode().ljust(MAX_FILE_BYTES),
    ],
    ids=["byte order mark", "made on Windows", "unknown fields", "as large as allowed"],
)
def test_what_does_not_matter_is_accepted(body: bytes) -> None:
    assert parse_order(body) == parse_order(valid_text().encode())


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("order_id", "x" * 128),
        ("order_id", "Bestellung Nr. 7 / Größe ß, 注文 🛒"),
        ("customer", "4111111111111"),  # a long number is a fine customer, though no token
        ("payment_method", "pm_1234567890123456"),
    ],
)
def test_unusual_texts_are_accepted(field: str, text: str) -> None:
    order = parse_order(valid_text(**{field: json.dumps(text)}).encode())

    assert getattr(order, field) == text


@pytest.mark.parametrize(
    ("literal", "currency", "amount_minor"),
    [
        ("19.99", "EUR", 1999),  # int(19.99 * 100) is 1998
        ('"0.29"', "EUR", 29),  # 0.29 * 100 is 28.999999999999996
        ("1", "EUR", 100),
        ('"1E2"', "EUR", 10_000),
        ("1.5e1", "EUR", 1_500),
        ("5", "JPY", 5),
        ('"1.234"', "KWD", 1_234),
        ('"1.2345"', "CLF", 12_345),
        ('"9999999999.99"', "EUR", MAX_AMOUNT_MINOR),
        ("999999999999", "JPY", MAX_AMOUNT_MINOR),
    ],
)
def test_an_amount_is_exact_in_minor_units(literal: str, currency: str, amount_minor: int) -> None:
    body = valid_text(amount=literal, currency=json.dumps(currency)).encode()

    assert parse_order(body).amount_minor == amount_minor


def test_there_are_two_hundred_different_malformed_files() -> None:
    assert len(MALFORMED) == 200
    assert len({order.name for order in MALFORMED}) == 200
    assert len({order.body for order in MALFORMED}) == 200
    assert {order.field for order in MALFORMED} == {*FIELDS, FILE}


@pytest.mark.parametrize("malformed", MALFORMED, ids=lambda malformed: malformed.name)
def test_a_malformed_file_is_rejected_for_the_right_field(malformed: MalformedOrder) -> None:
    error = refusal(malformed.body)

    assert error.field == malformed.field
    assert str(error).startswith(f"{malformed.field}: expected ")
    # It becomes an attribute of a record and a line of a log.
    assert len(str(error)) <= 256
    assert str(error).isascii() and str(error).isprintable()


def test_a_refusal_says_what_was_found_and_expected() -> None:
    error = refusal(valid_text(amount='"19.999"').encode())

    assert error.value == '"19.999"'
    assert error.expected == "at most 2 fraction digits"
    assert str(error) == 'amount: expected at most 2 fraction digits, found "19.999"'


@pytest.mark.parametrize("literal", ['"tok_visa "', "4111111111111111", '"4111 1111 1111 1111"'])
def test_a_payment_method_is_never_shown(literal: str) -> None:
    error = refusal(valid_text(payment_method=literal).encode())

    assert "tok_visa" not in str(error)
    assert "1111" not in str(error)


@pytest.mark.parametrize("field", ["order_id", "customer", "amount", "currency"])
@pytest.mark.parametrize(
    "number", ["4111111111111111", "4111 1111 1111 1111", "4111-1111-1111-1111"]
)
def test_a_card_number_in_a_wrong_place_is_not_shown(field: str, number: str) -> None:
    error = refusal(valid_text(**{field: json.dumps(f"{number}\n")}).encode())

    assert error.field == field
    assert "1111" not in str(error)


def test_what_is_nested_in_a_field_is_not_shown() -> None:
    error = refusal(valid_text(customer='{"card": "4111111111111111"}').encode())

    assert error.value == "an object"


@given(st.binary(max_size=200))
def test_any_bytes_are_an_order_or_a_refusal(body: bytes) -> None:
    assert_order_or_refusal(body)


# A few characters of each awkward kind: hypothesis would first sort out all of Unicode.
_TEXT = st.text(alphabet="aZ0 \t\n\x00\x7f\u00e4\u20ac\u202e\ud800\U0001f6d2", max_size=140)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_TEXT, inner, max_size=2),
    max_leaves=4,
)


@given(st.dictionaries(st.sampled_from(FIELDS), _JSON))
def test_any_values_are_an_order_or_a_refusal(changes: dict[str, object]) -> None:
    assert_order_or_refusal(json.dumps(VALID | changes).encode())


@given(st.text(alphabet="0123456789+-.eE_ ", max_size=30), st.sampled_from(["EUR", "JPY", "KWD"]))
def test_an_accepted_amount_is_what_was_written(text: str, currency: str) -> None:
    body = json.dumps(VALID | {"amount": text, "currency": currency}).encode()

    order = assert_order_or_refusal(body)

    if order:
        digits = {"EUR": 2, "JPY": 0, "KWD": 3}[currency]
        assert Decimal(order.amount_minor).scaleb(-digits) == Decimal(text)


@given(st.integers(1, MAX_AMOUNT_MINOR), st.sampled_from([("EUR", 2), ("JPY", 0), ("KWD", 3)]))
def test_every_amount_survives_the_file(amount_minor: int, currency: tuple[str, int]) -> None:
    code, digits = currency
    text = f"{Decimal(amount_minor).scaleb(-digits):f}"
    as_number = valid_text(amount=text, currency=json.dumps(code))
    as_string = valid_text(amount=json.dumps(text), currency=json.dumps(code))

    assert parse_order(as_number.encode()).amount_minor == amount_minor
    assert parse_order(as_string.encode()).amount_minor == amount_minor


def assert_order_or_refusal(body: bytes) -> Order | None:
    try:
        order = parse_order(body)
    except OrderRejected as error:
        assert error.field in (*FIELDS, FILE)
        return None
    assert type(order.amount_minor) is int
    assert 0 < order.amount_minor <= MAX_AMOUNT_MINOR
    for text in (order.order_id, order.customer, order.payment_method):
        text.encode()  # no lone surrogates get through
    return order
