"""The index joins the books by key and answers from memory."""

from __future__ import annotations

from datetime import timedelta

import pytest

from local.page.index import Index, Run
from tests.unit.page.fakes import MACHINE, START, FakeStack, charge, message


@pytest.fixture
def index() -> Index:
    """Three orders, charged once each, as a reader would have put them."""
    stack, index = FakeStack(), Index()
    for number in (1, 2, 3):
        stack.settle(number)
    index.put_all_records(stack.ledger.values())
    for one in stack.books:
        index.put_charge(one)
    index.charges_are_complete()
    return index


def key_of(index: Index, number: int) -> str:
    (row,) = index.page(text=f"orders/{number}.json").rows
    return row.key


def test_orders_come_newest_first(index: Index) -> None:
    assert [row.object_key for row in index.page().rows] == [
        "orders/3.json",
        "orders/2.json",
        "orders/1.json",
    ]


@pytest.mark.parametrize(
    "text", ["orders/2", "ORDERS/2", "a-2", "ch_00000002", "version-2", " a-2 "]
)
def test_search_looks_into_every_name_in_any_letter_case(index: Index, text: str) -> None:
    assert [row.order_id for row in index.page(text=text).rows] == ["A-2"]


def test_a_page_number_beyond_the_last_gives_the_last(index: Index) -> None:
    page = index.page(number=99, size=2)

    assert (page.number, page.pages) == (2, 2)
    assert [row.object_key for row in page.rows] == ["orders/1.json"]


def test_counts_are_of_what_matches_and_do_not_depend_on_the_group(index: Index) -> None:
    page = index.page(group="open")

    assert page.rows == ()
    assert page.counts == {"disagree": 0, "open": 0, "running": 0, "settled": 3, "found": 0}


def test_a_record_that_vanished_leaves_its_charge_behind(index: Index) -> None:
    key = key_of(index, 1)

    index.put_all_records([])

    row = index.row(key)
    assert row is not None
    assert row.verdict.word == "Charged, not recorded"


def test_a_second_charge_turns_the_verdict(index: Index) -> None:
    key = key_of(index, 1)

    index.put_charge(charge("ch_second", key))

    assert [row.key for row in index.page(group="disagree").rows] == [key]


def test_a_message_that_left_the_queue_is_gone_from_its_order(index: Index) -> None:
    key = key_of(index, 1)
    index.put_messages([message(key)])
    assert index.row(key).messages  # type: ignore[union-attr]

    index.put_messages([])

    assert not index.row(key).messages  # type: ignore[union-attr]


def test_findings_can_be_filtered(index: Index) -> None:
    key = key_of(index, 2)

    index.put_findings([{"kind": "stuck", "idempotency_key": key, "detail": "why"}])

    page = index.page(group="found")
    assert [row.key for row in page.rows] == [key]
    assert page.counts["found"] == 1


def test_what_says_nothing_new_changes_nothing(index: Index) -> None:
    row = index.row(key_of(index, 1))
    assert row is not None
    version = index.version

    index.put_record(row.key, row.record)
    index.put_charge(row.charges[0])
    index.put_messages([])
    index.put_record("charge#unknown", None)

    assert index.version == version


def test_a_run_keeps_what_an_earlier_look_found_out(index: Index) -> None:
    key = key_of(index, 1)
    arn = f"{MACHINE}:late"
    index.put_run(Run(arn, "RUNNING", START, key=key, steps=()))

    index.put_run(Run(arn, "SUCCEEDED", START))

    run = index.run(arn)
    assert run is not None
    assert (run.status, run.key, run.steps) == ("SUCCEEDED", key, ())


def test_the_owner_s_path_is_shown_even_when_duplicates_came_later(index: Index) -> None:
    key = key_of(index, 1)
    owner = Run(f"{MACHINE}:run-1", "SUCCEEDED", START, key=key)
    duplicate = Run(f"{MACHINE}:dup", "SUCCEEDED", START + timedelta(hours=1), key=key)

    index.put_run(duplicate)
    index.put_run(owner)

    row = index.row(key)
    assert row is not None
    assert row.told_by == owner
    assert row.runs == (owner, duplicate)


def test_an_order_that_only_the_provider_knows_is_a_row(index: Index) -> None:
    stray = charge("ch_stray", "somebody's reference")

    index.put_charge(stray | {"metadata": {"object_key": "orders/stray.json"}})

    (row,) = index.page(text="stray.json").rows
    assert (row.key, row.verdict.group) == ("somebody's reference", "disagree")


def test_forgetting_leaves_nothing(index: Index) -> None:
    index.forget_everything()

    assert index.page().total == 0
    assert index.charges() == []
