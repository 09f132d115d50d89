"""The provider's books over HTTP: paging, patience, and answers outside the contract."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from reconciler import provider_client
from reconciler.books import Charge, Place, Unreadable
from reconciler.provider_client import ProviderClient, ProviderUnreachable

SINCE = datetime(2026, 11, 1, tzinfo=UTC)
CHARGE: dict[str, Any] = {
    "id": "ch_1",
    "amount": 1999,
    "currency": "EUR",
    "reference": "charge#1",
    "status": "succeeded",
    "created": 1_795_000_000,
    "metadata": {"bucket": "b", "object_key": "orders/a.json", "version_id": "v"},
}


class Answers:
    """What the server says, one answer for each request, and what it was asked."""

    def __init__(self, *answers: tuple[int, Any]) -> None:
        self.answers = list(answers)
        self.asked: list[dict[str, str]] = []
        self.keys: list[str] = []
        self.key = "first"

    def api_key(self) -> str:
        key, self.key = self.key, "second"
        return key


def page(*charges: dict[str, Any], more: bool = False) -> tuple[int, Any]:
    return 200, {"object": "list", "data": charges, "has_more": more}


@contextmanager
def served(answers: Answers) -> Iterator[ProviderClient]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            query = parse_qs(urlsplit(self.path).query)
            answers.asked.append({name: values[0] for name, values in query.items()})
            answers.keys.append(self.headers["Authorization"].removeprefix("Bearer "))
            status, document = answers.answers.pop(0)
            body = document if isinstance(document, bytes) else json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            if status == 429:
                self.send_header("Retry-After", "0")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    client = ProviderClient(f"http://127.0.0.1:{server.server_port}/", answers.api_key)
    try:
        yield client
    finally:
        client.close()
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        provider_client,
        "RETRIES",
        provider_client.RETRIES.new(backoff_factor=0, backoff_jitter=0),
    )


def test_charges_are_listed_page_by_page_from_the_horizon_on() -> None:
    answers = Answers(page(CHARGE, more=True), page(CHARGE | {"id": "ch_2"}))

    with served(answers) as client:
        first = client.charges(None, SINCE + timedelta(milliseconds=1))
        second = client.charges(first.next, SINCE)

    assert first.items == [
        Charge(
            id="ch_1",
            reference="charge#1",
            succeeded=True,
            amount_minor=1999,
            currency="EUR",
            created=datetime.fromtimestamp(1_795_000_000, UTC),
            place=Place("b", "orders/a.json", "v"),
        )
    ]
    assert second.next is None
    assert answers.asked == [
        {"limit": "1000", "created_gte": str(int(SINCE.timestamp()) + 1)},
        {"limit": "1000", "created_gte": str(int(SINCE.timestamp())), "starting_after": "ch_1"},
    ]


def test_a_look_up_reads_all_pages_and_only_its_own_reference() -> None:
    stranger = CHARGE | {"id": "ch_2", "reference": "charge#2"}
    answers = Answers(page(CHARGE, stranger, more=True), page(CHARGE | {"id": "ch_3"}))

    with served(answers) as client:
        found = client.find("charge#1")

    assert [charge.id for charge in found] == ["ch_1", "ch_3"]


@pytest.mark.parametrize("metadata", [None, {}, {"bucket": "b"}, {"bucket": 1}, "text"])
def test_metadata_that_names_no_object_names_none(metadata: Any) -> None:
    with served(Answers(page(CHARGE | {"metadata": metadata}))) as client:
        (charge,) = client.find("charge#1")

    assert charge.place is None


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_provider_is_asked_again(status: int) -> None:
    answers = Answers((status, {}), (status, {}), page(CHARGE))

    with served(answers) as client:
        found = client.find("charge#1")

    assert len(found) == 1


def test_a_provider_that_stays_away_ends_the_run() -> None:
    with (
        served(Answers(*[(503, {})] * 7)) as client,
        pytest.raises(ProviderUnreachable, match="503"),
    ):
        client.find("charge#1")


def test_where_nobody_listens_the_run_ends() -> None:
    with pytest.raises(ProviderUnreachable, match="no answer"):
        ProviderClient("http://127.0.0.1:9", lambda: "key").find("charge#1")


def test_a_rotated_key_is_read_again_once() -> None:
    answers = Answers((401, {}), page(CHARGE))

    with served(answers) as client:
        found = client.find("charge#1")

    assert len(found) == 1
    assert answers.keys == ["first", "second"]


def test_a_key_that_is_refused_twice_ends_the_run() -> None:
    with (
        served(Answers((401, {}), (403, {}))) as client,
        pytest.raises(ProviderUnreachable, match="403"),
    ):
        client.find("charge#1")


def test_a_reference_that_the_provider_refuses_concerns_that_reference_alone() -> None:
    with served(Answers((400, {}))) as client, pytest.raises(Unreadable, match="400"):
        client.find("charge#1")


@pytest.mark.parametrize(
    "nonsense",
    [
        (302, {}),
        (200, b"<html>"),
        (200, []),
        (200, {"data": [CHARGE]}),
        (200, {"data": 7, "has_more": False}),
        page(more=True),
        page({**CHARGE, "amount": 19.99}),
        page({**CHARGE, "amount": True}),
        page({**CHARGE, "status": "pending"}),
        page({**CHARGE, "created": "today"}),
        page({**CHARGE, "created": 10**20}),
        page({**CHARGE, "currency": None}),
        page({name: CHARGE[name] for name in CHARGE if name != "id"}),
    ],
    ids=range(13),
)
def test_an_answer_outside_the_contract_ends_the_run(nonsense: tuple[int, Any]) -> None:
    with served(Answers(nonsense)) as client, pytest.raises(ProviderUnreachable):
        client.find("charge#1")
