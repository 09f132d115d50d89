"""Every page, in-process: what it shows, its JSON twin, its buttons."""

from __future__ import annotations

import asyncio
import html
import json
import re
import threading
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from local.books import plain_record
from local.errors import CommandError
from local.page import app as application
from local.page import tour
from local.page import watch as watching
from local.page.app import About, CountingHouse
from local.text import well_formed
from tests.unit.page.conftest import ABOUT, HERE, House
from tests.unit.page.fakes import Events, FakeBench, FakeStack, charge, message

HOSTILE = "orders/<script>alert(1)</script>\"'&.json"
PATIENCE_SECONDS = 5.0  # of whoever waits for something on a busy machine
PAGES = ["/", "/order", "/provider", "/tour", "/bench"]


def first_key(house: House) -> str:
    return next(iter(house.stack.ledger))


def settle_hostile(house: House) -> str:
    key = house.stack.settle(9, object_key=HOSTILE)
    house.stack.ledger[key] |= {"reason": HOSTILE, "order_id": HOSTILE}
    house.stack.queue = [message(key, error=HOSTILE)]
    house.stack.armed = [{"name": HOSTILE, "for": {"object_key": HOSTILE}, "remaining": 1}]
    house.stack.books[-1]["metadata"] = {"object_key": HOSTILE}
    run = house.stack.run_of(key)
    house.stack.runs[run].events[:] = Events().task("Charge", HOSTILE).list
    house.app.reader.look_at_faults()
    house.app.reader.look_at_requests([key])
    house.app.reader.refresh()
    house.app.index.put_findings([{"kind": HOSTILE, "idempotency_key": key, "detail": HOSTILE}])
    return key


class Outline(HTMLParser):
    """What a screen reader and a keyboard find."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def test_the_list_shows_both_ledgers_side_by_side(house: House) -> None:
    page = house.client.get("/").text

    assert page.count('<tr id="row-') == 3
    assert page.count("19.99 EUR") == 6
    assert page.count("Charged once") == 3


def test_the_list_draws_the_path_once_it_is_known(house: House) -> None:
    assert "beads" not in house.client.get("/").text  # asks for the paths

    house.app.reader.refresh()

    assert house.client.get("/").text.count('class="beads"') == 3


def test_filter_and_search_are_kept_by_the_links_of_the_page(house: House) -> None:
    page = house.client.get("/?q=orders&group=settled").text

    assert html.escape("/?q=orders&group=open") in page
    assert page.count('<tr id="row-') == 3
    assert house.client.get("/?group=open").text.count('<tr id="row-') == 0


@pytest.mark.parametrize(
    "query", ["?page=0", "?page=-1", "?page=x", "?page=99999999999", "?group=x"]
)
def test_nonsense_in_an_address_gives_the_first_page(house: House, query: str) -> None:
    answer = house.client.get(f"/{query}")

    assert answer.status_code == 200
    assert answer.text.count('<tr id="row-') == 3


def test_an_order_s_page_tells_its_story(house: House) -> None:
    key = first_key(house)
    house.stack.seen[key] = [{"at": 1795972770.25, "outcome": "made", "status": 201}]

    page = house.client.get(f"/order?key={quote(key, safe='')}").text

    assert "The provider makes the charge" in page
    assert "MarkDone: done" in page
    assert 'class="machine"' in page
    assert ABOUT.machine_url is not None
    assert ABOUT.machine_url in page


def test_an_order_that_no_book_knows_is_not_found(house: House) -> None:
    assert house.client.get("/order?key=charge%23unknown").status_code == 404
    assert house.client.get("/order.json?key=charge%23unknown").json()["error"]


def test_a_provider_that_tells_nothing_hides_nothing_else(house: House) -> None:
    def refuse(key: str) -> list[dict[str, object]]:
        raise CommandError("404")

    house.stack.requests_of = refuse  # type: ignore[method-assign]

    page = house.client.get(f"/order?key={quote(first_key(house), safe='')}").text

    assert "does not tell what it saw" in page
    assert "Both books agree" in page


@pytest.mark.parametrize("path", PAGES)
def test_every_page_has_a_json_twin(house: House, path: str) -> None:
    query = f"?key={quote(first_key(house), safe='')}"
    page = house.client.get(path + query)
    (link,) = [one for one in Outline(page.text).all("link") if one.get("rel") == "alternate"]

    twin = house.client.get(str(link["href"]))
    by_header = house.client.get(path + query, headers={"Accept": "application/json"})

    assert twin.headers["content-type"] == "application/json"
    assert twin.json().keys() == by_header.json().keys()


def test_the_twin_of_an_order_has_everything_the_page_has(house: House) -> None:
    key = first_key(house)

    document = house.client.get(f"/order.json?key={quote(key, safe='')}").json()

    assert document["record"] == house.stack.ledger[key]
    assert document["verdict"]["word"] == "Charged once"
    assert [step["state"] for step in document["executions"][0]["steps"]][-1] == "MarkDone"
    assert {moment["side"] for moment in document["story"]} == {"ours"}


@pytest.mark.parametrize(
    "path", [*PAGES, "/?q=" + quote(HOSTILE), "/provider?key=" + quote(HOSTILE)]
)
def test_hostile_text_is_text_everywhere(house: House, path: str) -> None:
    key = settle_hostile(house)
    house.bench.failure = CommandError(HOSTILE)
    house.post("drop", fault=HOSTILE)
    if path == "/order":
        path += f"?key={quote(key, safe='')}"

    page = house.client.get(path).text

    assert "<script>alert" not in page
    assert not [one for one in Outline(page).all("script") if one.get("src") != "/static/page.js"]


def test_a_hostile_key_reaches_its_own_page_by_its_link(house: House) -> None:
    settle_hostile(house)
    page = house.client.get("/?q=" + quote(HOSTILE)).text
    (link,) = [a for a in Outline(page).all("a") if a.get("class") == "object"]

    order = house.client.get(str(link["href"])).text

    assert html.escape(HOSTILE, quote=False).replace('"', "&#34;").replace("'", "&#39;") in order


SURROGATE = "odd \ud800 text"
#: What somebody else may have written into our table, field by field.
ODD_RECORDS: list[dict[str, Any]] = [
    {"status": ["done"]},
    {"status": SURROGATE, "reason": SURROGATE, "object_key": SURROGATE, "order_id": SURROGATE},
    {"owner": {"a": "map"}},
    {"owner": 7},
    {"owner": "arn:gone", "claimed_at": "yesterday"},
    {"claimed_at": 1795953600},
    {"claimed_at": ["then"], "settled_at": {}, "expires_at": 10**30},
    {"charge_id": ["ch_1"], "amount_minor": {"N": 1}, "currency": 978},
    {"bucket": 1, "object_key": ["x"], "version_id": 2, "order_id": {}},
    plain_record({"tags": {"SS": ["b", "a"]}, "blob": {"B": b"\xff"}, "rate": {"N": "1.5"}}),
]
#: The same of a message in the failure queue.
ODD_MESSAGES: list[dict[str, Any]] = [
    {"order": "a string"},
    {"order": ["a", "list"]},
    {"order": {"key": SURROGATE, "bucket": 1}},
    {"order": {"key": float("nan")}},
    {"execution": {"not": "an arn"}},
    {"cause": ["a", "list"]},
    {"cause": 7, "error": SURROGATE},
    {"cause": {"Cause": SURROGATE}},
    {"idempotency_key": SURROGATE},
]


def assert_every_page_survives(house: House, key: str) -> None:
    for _ in range(2):  # the first look asks for more
        house.app.reader.refresh()
        for path in [f"/?q={quote('order')}", "/provider", "/tour", "/bench", "/order"]:
            query = f"?key={quote(key, safe='')}" if path == "/order" else ""
            page = house.client.get(path + query)
            twin = house.client.get(path + query, headers={"Accept": "application/json"})

            assert (page.status_code, twin.status_code) == (200, 200)
            assert json.loads(twin.text, parse_constant=pytest.fail)
    assert house.app.reader.problem is None


@pytest.mark.parametrize("change", ODD_RECORDS)
def test_an_odd_record_breaks_no_page(house: House, change: dict[str, Any]) -> None:
    key = first_key(house)
    house.stack.ledger[key] |= change

    assert_every_page_survives(house, key)


def test_a_record_that_says_almost_nothing_breaks_no_page(house: House) -> None:
    house.stack.ledger["odd"] = {"pk": "odd", "owner": "arn:gone"}

    assert_every_page_survives(house, "odd")


@pytest.mark.parametrize("change", ODD_MESSAGES)
def test_an_odd_message_breaks_no_page(house: House, change: dict[str, Any]) -> None:
    odd = message("charge#odd") | change
    house.stack.queue = [odd]

    assert_every_page_survives(house, well_formed(odd["idempotency_key"]))


def test_odd_text_of_the_provider_and_of_an_execution_breaks_no_page(house: House) -> None:
    key = first_key(house)
    house.stack.books.append(charge("ch_odd", SURROGATE) | {"metadata": {"object_key": SURROGATE}})
    house.stack.armed = [{"name": SURROGATE, "for": {"object_key": SURROGATE}, "remaining": 1}]
    house.stack.seen[key] = [{"at": 1.0, "outcome": SURROGATE, "status": 500}]
    run = house.stack.run_of(key)
    house.stack.runs[run].events[:] = Events().task("Charge", SURROGATE).list
    house.app.index.put_findings([{"kind": "x", "idempotency_key": SURROGATE, "detail": SURROGATE}])
    house.bench.failure = CommandError(SURROGATE)
    house.post("reconcile")
    finished(house)

    house.app.reader.look_again([key])
    assert_every_page_survives(house, key)
    assert_every_page_survives(house, well_formed(SURROGATE))


def test_an_odd_key_reaches_its_own_page_by_its_link(house: House) -> None:
    house.stack.queue = [message(SURROGATE)]
    house.app.reader.refresh()
    page = house.client.get("/?q=" + quote("odd")).text
    (link,) = [a for a in Outline(page).all("a") if a.get("class") == "object"]

    order = house.client.get(str(link["href"]))

    assert order.status_code == 200
    assert "In the failure queue" in order.text


@pytest.mark.parametrize("path", PAGES)
def test_pages_can_be_used_with_keyboard_and_screen_reader(house: House, path: str) -> None:
    page = house.client.get(f"{path}?key={quote(first_key(house), safe='')}").text
    outline = Outline(page)

    assert outline.all("html")[0]["lang"] == "en"
    assert len(outline.all("main")) == 1
    assert len(outline.all("h1")) == 1
    assert all("aria-label" in nav for nav in outline.all("nav"))
    assert outline.all("a")[0]["href"] == "#main"
    assert any(one.get("role") == "status" for one in outline.all("p"))
    assert all("alt" in image for image in outline.all("img"))
    assert all(one.get("role") == "img" and one.get("aria-label") for one in outline.all("svg"))
    assert not [tag for tag, attributes in outline.tags if "style" in attributes]
    assert not [one for _, one in outline.tags if any(name.startswith("on") for name in one)]
    ids = re.findall(r'\sid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    labelled = page.count("<label>") + page.count('<label class="check">')
    fields = [one for one in outline.all("input") if one.get("type") not in {"hidden", "search"}]
    assert len(fields) + len(outline.all("select")) == labelled


@pytest.mark.parametrize(
    ("action", "fields", "pressed"),
    [
        ("drop", {"amount": "5.00"}, ("drop", {"amount": "5.00"})),
        ("arm", {"fault": "provider.slow"}, ("arm", {"fault": "provider.slow"})),
        ("clear", {}, ("clear",)),
        ("stop", {"arn": "arn:x"}, ("stop", "arn:x")),
        ("replay", {}, ("replay", None, False)),
        ("replay", {"key": "charge#1", "discard": "on"}, ("replay", "charge#1", True)),
        ("reconcile", {}, ("reconcile", False)),
        ("repair", {}, ("reconcile", True)),
        ("reset", {}, ("reset",)),
    ],
)
def test_a_button_does_its_work(
    house: House, action: str, fields: dict[str, str], pressed: tuple[object, ...]
) -> None:
    assert house.post(action, **fields) == 202

    finished(house)
    assert house.bench.pressed == [pressed]


@pytest.mark.parametrize(("action", "times"), [("deliver", 1), ("deliver-eight", 8)])
def test_an_order_s_event_can_be_delivered_again(house: House, action: str, times: int) -> None:
    key = first_key(house)

    assert house.post(action, key=key) == 202

    finished(house)
    assert house.bench.pressed == [("deliver", key, times)]


@pytest.mark.parametrize("action", ["deliver", "explode"])
def test_a_button_that_cannot_be_meant_says_so(house: House, action: str) -> None:
    assert house.post(action, key="charge#unknown") == 400
    assert house.bench.pressed == []


def test_what_a_button_did_is_told_on_the_bench(house: House) -> None:
    house.post("reconcile")
    finished(house)

    (job,) = house.client.get("/bench.json").json()["jobs"]
    assert (job["title"], job["state"], job["lines"]) == ("Reconcile", "done", ["did reconcile"])
    assert "did reconcile" in house.client.get("/bench").text


@pytest.mark.parametrize(
    ("failure", "told"),
    [(CommandError("the provider is down"), "the provider is down"), (KeyError("x"), "Unexpected")],
)
def test_a_button_that_fails_says_why_without_a_traceback(
    house: House, failure: Exception, told: str
) -> None:
    house.bench.failure = failure
    house.post("reconcile")
    finished(house)

    (job,) = house.client.get("/bench.json").json()["jobs"]
    assert job["state"] == "failed"
    assert told in job["lines"][-1]
    assert "Traceback" not in house.client.get("/bench").text


def test_findings_of_a_pass_are_shown_at_their_orders(house: House) -> None:
    house.bench.findings = [{"kind": "stuck", "idempotency_key": first_key(house), "detail": "d"}]

    house.post("reconcile")
    finished(house)

    assert house.client.get("/?group=found").text.count("found stuck") == 1


def test_a_reset_leaves_blank_books(house: House) -> None:
    house.stack.ledger.clear()
    house.stack.books.clear()

    house.post("reset")
    finished(house)

    assert house.client.get("/orders.json").json()["total"] == 0


def test_every_scene_of_the_tour_has_a_button_that_works(house: House) -> None:
    for scene in tour.SCENES:
        assert house.post(scene.action, scene=scene.name, **scene.fields) == 202
        finished(house)

    scenes = house.client.get("/tour.json").json()["scenes"]
    assert [scene["job"]["state"] for scene in scenes] == ["done"] * 6


def test_a_page_that_only_shows_has_no_buttons_and_takes_no_posts() -> None:
    stack = FakeStack()
    key = stack.settle(1)
    about = About("prod", "eu-central-1", True, None, "the AWS console")
    app = CountingHouse(about, stack, None)
    app.reader.refresh()

    with TestClient(app.app(), base_url=HERE) as client:
        pages = [client.get(f"{path}?key={quote(key, safe='')}").text for path in PAGES]
        refused = client.post("/bench/drop", data={"token": app.token.value})

    assert not [
        one for page in pages for one in Outline(page).all("form") if one["method"] != "get"
    ]
    assert refused.status_code == 403
    assert "--allow-writes" in refused.text


def test_an_execution_on_aws_is_linked_exactly() -> None:
    about = About("prod", "eu-central-1", True, None, "the AWS console")

    url = about.execution_url("arn:aws:states:eu-central-1:1:execution:Charge Order:x")

    assert url == (
        "https://eu-central-1.console.aws.amazon.com/states/home?region=eu-central-1"
        "#/v2/executions/details/arn:aws:states:eu-central-1:1:execution:Charge%20Order:x"
    )


def test_a_stack_that_does_not_answer_is_a_notice_on_every_page(house: House) -> None:
    house.stack.broken = True
    house.app.reader.refresh()

    for path in ("/", "/tour", "/bench", "/provider"):
        answer = house.client.get(path)

        assert answer.status_code == 200
        assert "nobody is at home" in answer.text


@pytest.mark.parametrize(
    ("path", "total"), [("/orders.json", 3), ("/provider.json", 3), ("/bench.json", None)]
)
def test_the_first_answer_after_the_start_is_whole(path: str, total: int | None) -> None:
    with started(three_orders()) as client:
        document = client.get(path).json()

    assert document["complete"]
    assert document.get("total") == total


def test_the_first_page_after_the_start_is_whole_when_reading_is_quick() -> None:
    with started(three_orders()) as client:
        page = client.get("/").text

    assert page.count('<tr id="row-') == 3


def test_an_answer_says_that_the_books_are_still_being_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(application, "PATIENCE_SECONDS", 0)
    stack, ledger_is_read, goes_on = three_orders(), threading.Event(), threading.Event()
    charges = stack.charges

    def slow_charges(after: str | None = None) -> Iterator[dict[str, Any]]:
        ledger_is_read.set()
        goes_on.wait()
        return charges(after)

    stack.charges = slow_charges  # type: ignore[method-assign]

    with started(stack) as client:
        try:
            client.get("/orders.json")
            assert ledger_is_read.wait(PATIENCE_SECONDS)
            document = client.get("/orders.json").json()
            unknown = client.get("/order.json?key=unknown")
        finally:
            goes_on.set()

    assert (document["complete"], document["total"]) == (False, 3)
    assert unknown.status_code == 503


def test_an_answer_after_a_long_sleep_is_fresh(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(watching, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(watching, "GLANCE_SECONDS", 0.0)
    assert house.client.get("/orders.json").json()["total"] == 3

    house.stack.settle(4)
    now += 60

    assert house.client.get("/orders.json").json()["total"] == 4


def test_a_stack_that_never_answered_is_not_taken_for_an_empty_one() -> None:
    stack = three_orders()
    stack.broken = True

    with started(stack) as client:
        document = client.get("/orders.json").json()

    assert (document["complete"], document["problem"]) == (False, "nobody is at home")


def three_orders() -> FakeStack:
    stack = FakeStack()
    for number in (1, 2, 3):
        stack.settle(number)
    return stack


def started(stack: FakeStack) -> TestClient:
    """A page that nobody has looked at yet, to be used as a context manager."""
    return TestClient(CountingHouse(ABOUT, stack, FakeBench()).app(), base_url=HERE)


def test_an_unknown_address_is_a_page_too(house: House) -> None:
    answer = house.client.get("/nothing")

    assert answer.status_code == 404
    assert "There is no such page" in answer.text


def test_pages_answer_within_200_ms_with_10_000_orders() -> None:
    stack = FakeStack()
    for number in range(10_000):
        stack.settle(number)
    app = CountingHouse(ABOUT, stack, None)
    app.reader.refresh()
    key = next(iter(stack.ledger))
    paths = ["/", "/?q=9999", "/?group=settled&page=100", "/provider", "/orders.json"]
    paths.append(f"/order?key={quote(key, safe='')}")

    with TestClient(app.app(), base_url=HERE) as client:
        client.get("/tour")  # imports and templates are ready
        best = {path: min(seconds_of(client, path) for _ in range(4)) for path in paths}

    assert {path: seconds for path, seconds in best.items() if seconds > 0.2} == {}


def seconds_of(client: TestClient, path: str) -> float:
    started = time.perf_counter()
    assert client.get(path).status_code == 200
    return time.perf_counter() - started


def finished(house: House) -> None:
    """Wait until no job is running any more."""

    async def wait() -> None:
        async with asyncio.timeout(5):
            while any(job.state == "running" for job in house.app.jobs.latest):
                await asyncio.sleep(0.005)

    assert house.client.portal is not None
    house.client.portal.call(wait)
