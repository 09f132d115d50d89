"""The provider over real sockets: what is sent, what is believed, and what is never repeated."""

import gzip
import json
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import BinaryIO

import pytest
from charge.charging import ChargeRequest, ProviderCharge
from charge.errors import (
    Busy,
    ChargeError,
    KeyInUse,
    KeyReuseMismatch,
    PaymentDeclined,
    ProviderCredentialsRefused,
    ProviderMisbehaved,
    ProviderRateLimited,
    ProviderUnavailable,
)
from charge.provider_client import MAX_ANSWER_BYTES, ProviderClient, connection_pool
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.charge.scripted_server import Scripted, answer, scripted_server

REFERENCE = "charge#" + "0" * 64
REQUEST = ChargeRequest(
    amount_minor=1999, currency="EUR", reference=REFERENCE, body=b'{"amount":1999}'
)
CHARGE = {
    "id": "ch_1",
    "amount": 1999,
    "currency": "EUR",
    "reference": REFERENCE,
    "status": "succeeded",
    "created": 1_764_417_600,
    "metadata": {"order_id": "A-1001"},
    "failure_code": None,
}
FAILED = CHARGE | {"status": "failed", "failure_code": "card_declined"}
PROBLEM = {"Content_Type": "application/problem+json"}


@pytest.fixture
def server() -> Iterator[Scripted]:
    with scripted_server() as scripted:
        yield scripted


class FakeKey:
    """Hands out `sk_1`, and `fresh` when asked for a fresh one."""

    def __init__(self, fresh: str = "sk_1") -> None:
        self.fresh = fresh
        self.current = "sk_1"

    def __call__(self, *, fresh: bool = False) -> str:
        if fresh:
            self.current = self.fresh
        return self.current


def client(
    server: Scripted,
    *,
    key: FakeKey | None = None,
    timeout: float = 5,
    seconds_left: float = 30,
) -> ProviderClient:
    return ProviderClient(
        base_url=server.url,
        api_key=key or FakeKey(),
        pool=connection_pool(),
        timeout_seconds=timeout,
        seconds_left=lambda: seconds_left,
    )


# What is sent, and what comes of it


def test_a_charge_is_asked_for_with_key_and_credentials(server: Scripted) -> None:
    server.script = [answer(201, CHARGE)]

    charge, replayed = client(server).charge(REQUEST)

    assert charge == ProviderCharge(
        id="ch_1",
        amount_minor=1999,
        currency="EUR",
        reference=REFERENCE,
        succeeded=True,
        charged_at=datetime(2025, 11, 29, 12, 0, tzinfo=UTC),
        order_id="A-1001",
        decline_reason="declined without a reason",
    )
    assert replayed is False
    (request,) = server.seen
    assert (request.method, request.path, request.body) == ("POST", "/v1/charges", REQUEST.body)
    assert request.headers["Idempotency-Key"] == REFERENCE
    assert request.headers["Authorization"] == "Bearer sk_1"
    assert request.headers["Content-Type"] == "application/json"


def test_a_replay_is_told_from_a_first_answer(server: Scripted) -> None:
    server.script = [answer(201, CHARGE, Idempotent_Replayed="true")]

    _, replayed = client(server).charge(REQUEST)

    assert replayed is True


def test_the_address_may_have_a_path(server: Scripted) -> None:
    server.script = [answer(201, CHARGE)]
    server.url += "/_aws/lambda-url/abc"

    client(server).charge(REQUEST)

    assert server.seen[0].path == "/_aws/lambda-url/abc/v1/charges"


def test_charges_are_found_by_their_reference(server: Scripted) -> None:
    server.script = [answer(200, {"data": [FAILED, CHARGE], "has_more": False})]

    failed, succeeded = client(server).find(REFERENCE)

    assert (failed.succeeded, failed.decline_reason) == (False, "card_declined")
    assert succeeded.succeeded
    (request,) = server.seen
    assert (request.method, request.body) == ("GET", b"")
    assert request.path == f"/v1/charges?reference=charge%23{'0' * 64}&limit=100"


# What answers mean


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (answer(400, {"code": "request-invalid"}, **PROBLEM), ProviderMisbehaved),
        (answer(402, {"charge": FAILED}, **PROBLEM), PaymentDeclined),
        (
            answer(402, b"<html>pay your hosting</html>", Content_Type="text/html"),
            ProviderMisbehaved,
        ),
        (answer(402, b"{", **PROBLEM), ProviderMisbehaved),
        (answer(402, {"detail": "Declined."}, **PROBLEM), ProviderMisbehaved),
        (answer(402, {"charge": CHARGE}, **PROBLEM), ProviderMisbehaved),
        (answer(402, {"charge": FAILED | {"reference": "r"}}, **PROBLEM), ProviderMisbehaved),
        (answer(404), ProviderMisbehaved),
        (answer(409, **PROBLEM), KeyInUse),
        (answer(418), ProviderMisbehaved),
        (answer(422, **PROBLEM), KeyReuseMismatch),
        (answer(429), ProviderRateLimited),
        (answer(500), ProviderUnavailable),
        (answer(502, b"<html>", Content_Type="text/html"), ProviderUnavailable),
        (answer(503, **PROBLEM), ProviderUnavailable),
        (answer(504), ProviderUnavailable),
        (answer(599), ProviderUnavailable),
        (answer(200, CHARGE), ProviderMisbehaved),
        (answer(202, CHARGE), ProviderMisbehaved),
        (b"HTTP/1.1 204 X\r\n\r\n", ProviderMisbehaved),
        (answer(201, FAILED), ProviderMisbehaved),
    ],
    ids=lambda value: value[9:12].decode() if isinstance(value, bytes) else "",
)
def test_an_answer_to_a_charge_has_one_meaning(
    server: Scripted, reply: bytes, error: type[ChargeError]
) -> None:
    server.script = [reply]

    with pytest.raises(ChargeError) as caught:
        client(server).charge(REQUEST)

    assert type(caught.value) is error
    assert len(server.seen) == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(server: Scripted, status: int) -> None:
    server.script = [answer(status, Location=f"{server.url}/elsewhere"), answer(201, CHARGE)]

    with pytest.raises(ProviderMisbehaved, match=str(status)):
        client(server).charge(REQUEST)

    assert len(server.seen) == 1


def test_a_server_error_carries_its_status(server: Scripted) -> None:
    server.script = [answer(503)]

    with pytest.raises(ProviderUnavailable) as caught:
        client(server).charge(REQUEST)

    assert caught.value.status == 503


@pytest.mark.parametrize(
    ("failure_code", "reason"),
    [
        ("card_declined", "card_declined"),
        (None, "declined without a reason"),
        (7, "declined without a reason"),
        ("x" * 201, "declined without a reason"),
        ("two\nlines", "declined without a reason"),
    ],
)
def test_a_decline_has_a_reason(server: Scripted, failure_code: object, reason: str) -> None:
    declined = {"charge": FAILED | {"failure_code": failure_code}}
    server.script = [answer(402, declined, **PROBLEM)]

    with pytest.raises(PaymentDeclined) as caught:
        client(server).charge(REQUEST)

    assert str(caught.value) == reason


@pytest.mark.parametrize("status", [409, 429])
@pytest.mark.parametrize(
    ("retry_after", "least", "most"),
    [
        ("0", 0, 0),
        ("3", 3, 3),
        ("9" * 400, 1e8, 1e9),
        # A day ahead of the collection of the tests, which may be some time before this one runs.
        (format_datetime(datetime.now(UTC) + timedelta(days=1), usegmt=True), 80_000, 86_400),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0, 0),
    ],
    ids=["now", "seconds", "for ever", "date", "past date"],
)
def test_the_wait_that_is_asked_for_is_read(
    server: Scripted, status: int, retry_after: str, least: float, most: float
) -> None:
    server.script = [answer(status, Retry_After=retry_after)]

    with pytest.raises(Busy) as caught:
        client(server).charge(REQUEST)

    assert caught.value.retry_after is not None
    assert least <= caught.value.retry_after <= most


@pytest.mark.parametrize(
    "retry_after",
    [
        *("", "-1", "1.5", "soon", "٣", "Wed, 21 Oct 2015 07:28:00"),
        f"Wed, 21 Oct {'9' * 20} 07:28:00 GMT",
        f"Wed, 21 Oct 2015 07:28:00 +{'9' * 20}",
    ],
)
def test_a_wait_that_cannot_be_read_is_none(server: Scripted, retry_after: str) -> None:
    server.script = [answer(429, Retry_After=retry_after)]

    with pytest.raises(ProviderRateLimited) as caught:
        client(server).charge(REQUEST)

    assert caught.value.retry_after is None


# What is not believed

WRONG_CHARGES: list[object] = [
    CHARGE | {"id": ""},
    CHARGE | {"id": None},
    CHARGE | {"id": "ch 1"},
    CHARGE | {"id": "c" * 256},
    CHARGE | {"amount": 1999.0},
    CHARGE | {"amount": "1999"},
    CHARGE | {"amount": True},
    CHARGE | {"amount": 0},
    CHARGE | {"amount": -1999},
    CHARGE | {"amount": 10**12},
    CHARGE | {"amount": float("nan")},
    CHARGE | {"currency": "eur"},
    CHARGE | {"currency": None},
    CHARGE | {"reference": "charge#" + "1" * 64},
    CHARGE | {"reference": None},
    CHARGE | {"status": "pending"},
    CHARGE | {"status": None},
    CHARGE | {"created": "2025-11-29"},
    CHARGE | {"created": -1},
    CHARGE | {"created": 10**15},
    {},
    [],
    [CHARGE],
    None,
    "ch_1",
]


@pytest.mark.parametrize("document", WRONG_CHARGES, ids=str)
def test_a_charge_is_believed_only_when_every_field_is_right(
    server: Scripted, document: object
) -> None:
    server.script = [answer(201, document), answer(200, {"data": [document], "has_more": False})]
    provider = client(server)

    with pytest.raises(ProviderMisbehaved):
        provider.charge(REQUEST)
    with pytest.raises(ProviderMisbehaved):
        provider.find(REFERENCE)


@pytest.mark.parametrize(
    "page",
    [
        {"data": [], "has_more": True},
        {"data": []},
        {"data": {}, "has_more": False},
        {"has_more": False},
        [],
    ],
    ids=str,
)
def test_a_list_is_believed_only_when_it_is_complete(server: Scripted, page: object) -> None:
    server.script = [answer(200, page)]

    with pytest.raises(ProviderMisbehaved):
        client(server).find(REFERENCE)


@pytest.mark.parametrize("metadata", [None, [], {}, {"order_id": 7}, {"order_id": ""}])
def test_a_charge_may_name_no_order(server: Scripted, metadata: object) -> None:
    server.script = [answer(201, CHARGE | {"metadata": metadata})]

    charge, _ = client(server).charge(REQUEST)

    assert charge.order_id is None


@pytest.mark.parametrize(
    "reply",
    [
        answer(201, b""),
        answer(201, b"{"),
        answer(201, b"\xff\xfe{}"),
        answer(201, b"[" * 100_000),
        answer(201, b'{"amount": ' + b"9" * 5_000 + b"}"),
        answer(201, CHARGE, Content_Type="text/html"),
        answer(201, CHARGE, Content_Type=""),
        answer(201, b"x" * (MAX_ANSWER_BYTES + 1)),
        answer(201, gzip.compress(json.dumps(CHARGE).encode()), Content_Encoding="gzip"),
    ],
    ids=["empty", "cut", "bytes", "deep", "digits", "HTML", "no type", "huge", "gzip"],
)
def test_nonsense_is_not_believed(server: Scripted, reply: bytes) -> None:
    server.script = [reply]

    with pytest.raises(ProviderMisbehaved):
        client(server).charge(REQUEST)


_VALUES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text("aZ1 \n\x00€", max_size=5)
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.dictionaries(st.sampled_from(sorted(CHARGE)), _VALUES))
def test_any_charge_is_sound_or_refused(server: Scripted, changes: dict[str, object]) -> None:
    server.script = [answer(201, CHARGE | changes)]

    try:
        charge, _ = client(server).charge(REQUEST)
    except ProviderMisbehaved:
        return

    assert type(charge.amount_minor) is int
    assert (charge.reference, charge.succeeded) == (REFERENCE, True)


# Credentials


@pytest.mark.parametrize("status", [401, 403])
def test_a_rotated_key_is_read_once_more(server: Scripted, status: int) -> None:
    server.script = [answer(status), answer(201, CHARGE)]

    charge, _ = client(server, key=FakeKey(fresh="sk_2")).charge(REQUEST)

    assert charge.id == "ch_1"
    sent = [request.headers["Authorization"] for request in server.seen]
    assert sent == ["Bearer sk_1", "Bearer sk_2"]


@pytest.mark.parametrize(("fresh", "requests"), [("sk_1", 1), ("sk_2", 2)])
@pytest.mark.parametrize("status", [401, 403])
def test_the_newest_key_may_be_refused(
    server: Scripted, status: int, fresh: str, requests: int
) -> None:
    server.script = [answer(status), answer(status)]

    with pytest.raises(ProviderCredentialsRefused) as caught:
        client(server, key=FakeKey(fresh=fresh)).find(REFERENCE)

    assert len(server.seen) == requests
    assert "sk_" not in str(caught.value)


# Connections


def test_a_connection_is_used_again(server: Scripted) -> None:
    server.script = [answer(500, b"{}"), answer(409), answer(201, CHARGE)]
    provider = client(server)

    for error in (ProviderUnavailable, KeyInUse):
        with pytest.raises(error):
            provider.charge(REQUEST)
    provider.charge(REQUEST)

    assert server.connections == 1


def test_a_connection_that_was_closed_meanwhile_is_replaced(server: Scripted) -> None:
    server.closes = True
    server.script = [answer(201, CHARGE), answer(201, CHARGE)]
    provider = client(server)

    provider.charge(REQUEST)
    assert server.closed.wait(5)
    provider.charge(REQUEST)

    assert (server.connections, len(server.seen)) == (2, 2)


def test_a_connection_that_breaks_under_a_request_repeats_nothing(server: Scripted) -> None:
    def hang_up(wire: BinaryIO) -> None:
        server.closes = True

    server.script = [answer(201, CHARGE), hang_up, answer(201, CHARGE)]
    provider = client(server)
    provider.charge(REQUEST)

    with pytest.raises(ProviderUnavailable) as caught:
        provider.charge(REQUEST)

    assert caught.value.status is None
    assert (server.connections, len(server.seen)) == (1, 2)


def test_an_answer_that_was_not_read_is_not_taken_for_the_next(server: Scripted) -> None:
    server.script = [answer(201, b" " * (MAX_ANSWER_BYTES * 2)), answer(201, CHARGE)]
    provider = client(server)
    with pytest.raises(ProviderMisbehaved):
        provider.charge(REQUEST)

    charge, _ = provider.charge(REQUEST)

    assert charge.id == "ch_1"
    assert server.connections == 2


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"\x00" * 100,
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 201 X\r\nContent-Length: 100\r\n\r\n{}",
        b"HTTP/1.1 201 X\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}",
        b"HTTP/1.1 201 X\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{}",
        b"HTTP/1.1 201 X\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 201 X\r\n" + b"X: y\r\n" * 200 + b"\r\n",
    ],
    ids=[
        "nothing",
        "NULs",
        "another protocol",
        "no status",
        "status in letters",
        "body breaks off",
        "chunk without size",
        "chunk breaks off",
        "endless header",
        "endless headers",
    ],
)
def test_a_broken_answer_leaves_the_outcome_unknown(server: Scripted, reply: bytes) -> None:
    server.closes = True
    server.script = [reply]

    with pytest.raises(ProviderUnavailable) as caught:
        client(server).charge(REQUEST)

    assert caught.value.status is None
    assert len(server.seen) == 1


def test_a_provider_that_does_not_listen_is_unavailable() -> None:
    with scripted_server() as server:
        pass

    with pytest.raises(ProviderUnavailable, match="NewConnectionError"):
        client(server).charge(REQUEST)


def test_a_provider_that_does_not_answer_is_given_up(server: Scripted) -> None:
    server.script = [server.stay_silent]

    with pytest.raises(ProviderUnavailable, match="ReadTimeoutError"):
        client(server, timeout=0.1).charge(REQUEST)


def test_an_answer_that_trickles_is_given_up(server: Scripted) -> None:
    def trickle(wire: BinaryIO) -> None:
        wire.write(b"HTTP/1.1 201 X\r\nContent-Length: 9999\r\n\r\n")
        for _ in range(250):  # 5 s, should nobody hang up
            wire.write(b" ")
            if server.over.wait(0.02):
                return

    server.script = [trickle]

    with pytest.raises(ProviderUnavailable, match="did not end in time"):
        client(server, timeout=0.2).charge(REQUEST)


def test_a_call_gets_no_more_than_what_is_left(server: Scripted) -> None:
    server.script = [server.stay_silent]

    with pytest.raises(ProviderUnavailable, match="ReadTimeoutError"):
        client(server, timeout=60, seconds_left=0.5).charge(REQUEST)


def test_nothing_is_sent_when_no_time_is_left_for_an_answer(server: Scripted) -> None:
    with pytest.raises(ProviderUnavailable, match="no time is left"):
        client(server, seconds_left=0.49).charge(REQUEST)

    assert server.connections == 0


def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    with (
        scripted_server(tls=self_signed(tmp_path)) as server,
        pytest.raises(ProviderUnavailable, match="SSLError"),
    ):
        client(server).charge(REQUEST)

    assert server.seen == []


def self_signed(folder: Path) -> ssl.SSLContext:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    pem = folder / "self-signed.pem"
    pem.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    return context
