"""A whole pass over books in memory: what is found, what is started, and what is left alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from reconciler import auditing
from reconciler.auditing import Audit, Progress, pass_name, repair_name, report
from reconciler.books import Money, Place, Run
from reconciler.judging import Case, Rules, judge

from tests.unit.reconciler.fakes import GRACE, HORIZON, HOUR, NOW, World, kinds


@pytest.fixture
def world() -> World:
    """Five orders with which everything is right: three pages of each book."""
    world = World()
    for number in range(5):
        world.settle(f"good-{number}.json")
    return world


# ---------------------------------------------------------------- each kind of finding

Break = Callable[[World], Place | None]


def missing(world: World) -> Place:
    return world.land("bad.json")


def stuck(world: World) -> Place:
    place = world.land("bad.json")
    world.open_record(place)
    return place


def stuck_with_a_failed_charge(world: World) -> Place:
    place = stuck(world)
    world.charge(place, succeeded=False)
    return place


def charged_without_a_record(world: World) -> Place:
    place = world.land("bad.json")
    world.charge(place)
    return place


def charged_without_record_or_metadata(world: World) -> Place:
    place = world.land("bad.json")
    world.charge(place, place=None)
    return place


def charged_and_left_open(world: World) -> Place:
    place = stuck(world)
    world.charge(place)
    return place


def charged_for_an_object_that_is_gone(world: World) -> Place:
    place = world.land("bad.json")
    world.versions_.pop()
    world.charge(place)
    return place


def recorded_without_a_charge(world: World) -> Place:
    place = world.land("bad.json")
    world.record(place)
    return place


def recorded_with_another_charge(world: World) -> Place:
    place = world.land("bad.json")
    world.record(place, charge_id="ch_other")
    world.charge(place)
    return place


def recorded_with_a_failed_charge(world: World) -> Place:
    place = world.land("bad.json")
    world.record(place)
    world.charge(place, succeeded=False)
    return place


def recorded_without_a_charge_for_an_object_that_is_gone(world: World) -> Place:
    place = recorded_without_a_charge(world)
    world.versions_.pop()
    return place


def charged_but_declined(world: World) -> Place:
    place = world.land("bad.json")
    world.record(place, status="declined", charge_id=None, reason="card_declined")
    world.charge(place)
    return place


def charged_but_rejected(world: World) -> Place:
    place = charged_but_declined(world)
    world.record(place, status="rejected", charge_id=None, reason="amount: expected more")
    return place


def charged_twice(world: World) -> Place:
    place = world.settle("bad.json")
    for number in range(3):
        world.settle(f"between-{number}.json")
    world.charge(place, id="ch_second")
    return place


def charged_twice_without_a_record(world: World) -> Place:
    place = charged_without_a_record(world)
    world.charge(place, id="ch_second")
    return place


def amount_differs(world: World) -> Place:
    place = world.land("bad.json")
    world.record(place, amount_minor=2000)
    world.charge(place)
    return place


def currency_differs(world: World) -> Place:
    place = world.land("bad.json")
    world.record(place, currency="USD")
    world.charge(place)
    return place


def charge_differs_from_the_order_file(world: World) -> Place:
    world.ordered_ = Money(500, "EUR")
    return charged_without_a_record(world)


def charge_without_metadata_differs_from_the_order_file(world: World) -> Place:
    world.ordered_ = Money(500, "EUR")
    return charged_without_record_or_metadata(world)


def overwritten_while_open(world: World) -> Place:
    place = stuck(world)
    world.settle("bad.json", version_id="v2")
    return place


def deleted_before_it_was_delivered(world: World) -> Place:
    place = world.land("bad.json")
    world.versions_[-1] = world.versions_[-1]._replace(is_latest=False)
    return place


def gone_while_open(world: World) -> Place:
    place = stuck(world)
    world.versions_.pop()
    return place


CASES: list[tuple[Break, str, bool]] = [
    (missing, "missing", True),
    (stuck, "stuck", True),
    (stuck_with_a_failed_charge, "stuck", True),
    (charged_without_a_record, "charged_not_recorded", True),
    (charged_without_record_or_metadata, "charged_not_recorded", True),
    (charged_and_left_open, "charged_not_recorded", True),
    (charged_for_an_object_that_is_gone, "charged_not_recorded", True),
    (recorded_without_a_charge, "recorded_not_charged", False),
    (recorded_with_another_charge, "recorded_not_charged", False),
    (recorded_with_a_failed_charge, "recorded_not_charged", False),
    (recorded_without_a_charge_for_an_object_that_is_gone, "recorded_not_charged", False),
    (charged_but_declined, "charged_but_refused", False),
    (charged_but_rejected, "charged_but_refused", False),
    (charged_twice, "charged_twice", False),
    (charged_twice_without_a_record, "charged_twice", False),
    (amount_differs, "amount_mismatch", False),
    (currency_differs, "amount_mismatch", False),
    (charge_differs_from_the_order_file, "amount_mismatch", False),
    (charge_without_metadata_differs_from_the_order_file, "amount_mismatch", False),
    (overwritten_while_open, "superseded", False),
    (deleted_before_it_was_delivered, "superseded", False),
    (gone_while_open, "superseded", False),
]


@pytest.mark.parametrize(
    ("break_it", "kind", "repairable"), CASES, ids=lambda value: getattr(value, "__name__", None)
)
def test_what_is_wrong_is_found_once_and_repaired_if_a_run_can_mend_it(
    world: World, break_it: Break, kind: str, repairable: bool
) -> None:
    place = break_it(world)
    assert place is not None

    progress = world.reconcile(repair=True)

    (finding,) = progress.findings
    assert finding["kind"] == kind
    assert finding["idempotency_key"] == place.idempotency_key
    assert finding["object"] == place._asdict()
    assert [item["idempotency_key"] for item in progress.repaired] == (
        [place.idempotency_key] if repairable else []
    )


@pytest.mark.parametrize("break_it", [case[0] for case in CASES], ids=lambda f: f.__name__)
def test_without_permission_nothing_is_started(world: World, break_it: Break) -> None:
    break_it(world)

    progress = world.reconcile(repair=False)

    assert len(progress.findings) == 1
    assert world.started == {}


def test_books_that_agree_give_no_finding(world: World) -> None:
    progress = world.reconcile(repair=True)

    assert progress.findings == []
    assert progress.scanned == {"objects": 5, "records": 5, "charges": 5}
    assert (progress.orders_in, progress.records_out) == (5, 5)


def test_a_repair_is_the_orders_own_event_and_names_the_owner_it_succeeds(world: World) -> None:
    place = stuck(world)

    progress = world.reconcile(repair=True)

    (name,) = world.started
    assert name == repair_name(progress.name, place.idempotency_key)
    assert world.started[name]["detail"] == {
        "bucket": {"name": "bucket"},
        "object": {"key": "orders/bad.json", "version-id": "v1", "etag": "etag"},
    }
    assert world.started[name]["replay"] == {"owner": "arn:owner"}
    assert progress.repaired[0]["execution"] == f"arn:{name}"


def test_a_repair_without_a_record_succeeds_nobody(world: World) -> None:
    missing(world)

    world.reconcile(repair=True)

    assert [item["replay"] for item in world.started.values()] == [{}]


def test_two_versions_under_one_order_id_are_both_named(world: World) -> None:
    first, second = world.settle("first.json"), world.settle("second.json")
    for place in (first, second):
        world.record(place, order_id="A-1")

    progress = world.reconcile(repair=True)

    assert kinds(progress) == ["same_order_id", "same_order_id"]
    assert {item["idempotency_key"] for item in progress.findings} == {
        first.idempotency_key,
        second.idempotency_key,
    }
    assert "orders/second.json" in progress.findings[0]["detail"]


def test_of_two_charges_the_recorded_one_is_kept(world: World) -> None:
    place = world.land("bad.json")
    world.charge(place, id="ch_first")
    world.charge(place, id="ch_recorded")
    world.record(place, charge_id="ch_recorded")

    (finding,) = world.reconcile().findings

    assert "Refund ch_first (1999 EUR in minor units); ch_recorded is the one" in finding["detail"]


def test_a_record_that_vanished_from_an_old_order_does_not_make_it_missing(world: World) -> None:
    place = world.land("old.json", age=HORIZON + HOUR)
    version = world.version(place)
    case = Case(key=place.idempotency_key, place=place, version=version, record=None, charges=[])

    assert judge(case, Rules(grace=GRACE, horizon=NOW - HORIZON), NOW) == []


def test_a_version_without_a_charge_does_not_share_its_order_id(world: World) -> None:
    world.record(world.settle("first.json"), order_id="A-1")
    world.record(world.land("second.json"), order_id="A-1")

    assert kinds(world.reconcile()) == ["recorded_not_charged"]


def test_an_order_id_whose_charges_cannot_be_read_is_reported_as_that(world: World) -> None:
    first, second = world.settle("first.json"), world.settle("second.json")
    for place in (first, second):
        world.record(place, order_id="A-1")
    world.unreadable = {first.idempotency_key}

    progress = world.reconcile()

    assert [item["idempotency_key"] for item in progress.unreadable] == [first.idempotency_key]
    assert progress.findings == []


def test_an_order_id_that_was_charged_twice_long_ago_is_not_reported_for_ever(
    world: World,
) -> None:
    for name in ("first.json", "second.json"):
        place = world.settle(name)
        world.record(place, order_id="A-1", settled_at=(NOW - HORIZON - HOUR).isoformat())

    assert world.reconcile().findings == []


# ---------------------------------------------------------------- what is no finding


def test_a_young_order_is_on_its_way(world: World) -> None:
    world.land("new.json", age=GRACE - timedelta(seconds=1))

    progress = world.reconcile()

    assert progress.findings == []
    assert (progress.orders_in, progress.records_out) == (5, 5)


def test_orders_younger_than_the_grace_time_are_counted_whatever_became_of_them(
    world: World,
) -> None:
    young = (NOW - GRACE + timedelta(seconds=1)).isoformat()
    world.land("unclaimed.json", age=GRACE - timedelta(seconds=1))
    world.open_record(world.land("open.json"), open_since=young)
    world.record(world.settle("settled.json"), settled_at=young)

    progress = world.reconcile()

    assert progress.findings == []
    assert progress.young == report(progress)["younger_than_grace"] == 3


def gone_and_charged_without_a_record(world: World) -> None:
    charged_for_an_object_that_is_gone(world)
    world.charges_[-1] = world.charges_[-1]._replace(created=NOW)


def of_unknown_status(world: World, name: str = "odd.json") -> None:
    place = world.land(name)
    world.record(place, status="paid", claimed_at=NOW.isoformat(), order_id=None)


def of_unknown_status_and_charged(world: World) -> None:
    of_unknown_status(world)
    world.charge(world.versions_[-1].place, created=NOW)


def gone_of_unknown_status_and_charged(world: World) -> None:
    of_unknown_status_and_charged(world)
    world.versions_.pop()


def open_since_no_time(world: World) -> None:
    world.open_record(world.land("odd.json"), open_since="yesterday", claimed_at=NOW.isoformat())


def charged_without_a_record_yet(world: World) -> None:
    world.charge(world.land("new.json", age=timedelta(minutes=1)), created=NOW)


@pytest.mark.parametrize(
    "make",
    [
        gone_and_charged_without_a_record,
        of_unknown_status,
        of_unknown_status_and_charged,
        gone_of_unknown_status_and_charged,
        open_since_no_time,
        charged_without_a_record_yet,
    ],
    ids=lambda make: make.__name__,
)
def test_what_is_looked_at_and_found_too_young_is_counted_once(
    world: World, make: Callable[[World], None]
) -> None:
    make(world)

    early = world.reconcile()
    world.now += GRACE + timedelta(minutes=1)
    late = world.reconcile()

    assert (kinds(early), early.young) == ([], 1)
    assert (len(late.findings), late.young) == (1, 0)


def test_a_young_refusal_is_held_against_every_book(world: World) -> None:
    world.record(world.land("declined.json"), status="declined", settled_at=NOW.isoformat())

    assert world.reconcile().young == 0


def test_a_page_that_is_done_twice_counts_what_is_too_young_once() -> None:
    world = World()
    for name in ("odd.json", "other.json"):
        of_unknown_status(world, name)
    audit = world.audit()
    progress = audit.begin("one", HORIZON)
    over = iter([False, False, True])
    audit.is_over = lambda: next(over, False)

    audit.carry_on(progress)
    audit.carry_on(progress)

    assert progress.is_complete
    assert progress.young == 2


def test_a_young_order_whose_charge_is_there_and_whose_record_is_not_is_on_its_way(
    world: World,
) -> None:
    world.charge(world.land("new.json", age=GRACE - timedelta(seconds=1)))

    assert world.reconcile(repair=True).findings == []


def test_an_open_record_within_the_grace_time_is_left_alone(world: World) -> None:
    place = world.land("new.json")
    world.open_record(place, open_since=(NOW - timedelta(minutes=1)).isoformat())

    assert world.reconcile().findings == []
    assert world.asked == []


@pytest.mark.parametrize("status", ["RUNNING", "PENDING_REDRIVE"])
def test_an_order_whose_owner_lives_is_left_alone(world: World, status: str) -> None:
    place = stuck(world)
    world.charge(place)
    world.runs["arn:owner"] = Run(status, None)

    progress = world.reconcile(repair=True)

    assert progress.findings == []
    assert world.started == {}
    assert world.asked == ["arn:owner"]


def test_a_candidate_that_settles_while_it_is_looked_at_is_no_finding(world: World) -> None:
    place = stuck(world)
    world.charge(place)
    world.looked_at = lambda _: void(world.record(place))

    progress = world.reconcile(repair=True)

    assert progress.findings == []
    assert world.started == {}


def test_a_record_that_keeps_changing_is_being_worked_on(world: World) -> None:
    place = stuck(world)
    turn = iter(range(1000))
    world.looked_at = lambda _: void(world.open_record(place, owner=f"arn:{next(turn)}"))

    progress = world.reconcile(repair=True)

    assert progress.findings == []
    assert world.started == {}


def void(_: object) -> None:
    return None


def test_a_declined_order_with_its_failed_charge_is_settled(world: World) -> None:
    place = world.land("declined.json")
    world.record(place, status="declined", charge_id=None, order_id=None)
    world.charge(place, succeeded=False)

    assert world.reconcile().findings == []


def test_charges_of_others_at_the_same_provider_are_counted(world: World) -> None:
    place = world.land("good.json")
    world.settle("good.json")
    for reference in (None, "invoice-7", "charge#short"):
        world.charge(place, reference=reference)

    progress = world.reconcile()

    assert progress.findings == []
    assert progress.foreign_charges == 3


def test_a_charge_for_an_order_of_another_bucket_is_its_own_pipelines(world: World) -> None:
    elsewhere = Place("another-bucket", "orders/theirs.json", "v1")
    world.charge(elsewhere)

    progress = world.reconcile(repair=True)

    assert progress.findings == []
    assert progress.foreign_charges == 1
    assert world.started == {}


@pytest.mark.parametrize("status", ["declined", "rejected"])
def test_money_that_moved_for_an_order_of_another_bucket_that_we_refused_is_found(
    world: World, status: str
) -> None:
    elsewhere = Place("another-bucket", "orders/refused.json", "v1")
    world.record(elsewhere, status=status, charge_id=None, order_id=None)
    world.charge(elsewhere)
    world.unreadable = {elsewhere.key}  # we may not look into another bucket

    progress = world.reconcile(repair=True)

    assert kinds(progress) == ["charged_but_refused"]
    assert (progress.unreadable, progress.foreign_charges) == ([], 0)


def test_an_order_of_another_bucket_that_we_charged_is_in_agreement(world: World) -> None:
    elsewhere = Place("another-bucket", "orders/ours-once.json", "v1")
    world.record(elsewhere)
    world.charge(elsewhere)

    progress = world.reconcile()

    assert (progress.findings, progress.foreign_charges) == ([], 0)
    assert world.asked == []


def test_books_that_agree_are_compared_without_a_look_up(world: World) -> None:
    world.reconcile()

    assert world.asked == []


@pytest.mark.parametrize(
    "settled_at", [NOW - HORIZON - HOUR, NOW - timedelta(minutes=1)], ids=["old", "just now"]
)
def test_what_settled_before_the_horizon_or_just_now_is_not_tallied(
    world: World, settled_at: datetime
) -> None:
    place = world.land("odd.json")
    world.record(place, settled_at=settled_at.isoformat())

    world.reconcile()

    assert world.asked == []


# ---------------------------------------------------------------- the horizon


def test_older_than_the_horizon_an_order_without_a_record_is_counted_only(world: World) -> None:
    world.land("old.json", age=HORIZON + HOUR)

    progress = world.reconcile(repair=True)

    assert progress.findings == []
    assert progress.beyond_horizon == 1
    assert world.started == {}


@pytest.mark.parametrize(
    ("status", "changes"),
    [
        ("done", {"charge_id": "ch_wrong"}),
        ("declined", {"charge_id": None, "order_id": None}),
        ("rejected", {"charge_id": None}),
    ],
)
def test_what_settled_beyond_the_horizon_is_counted_as_not_compared(
    world: World, status: str, changes: dict[str, str | None]
) -> None:
    place = world.land("old.json", age=HORIZON + 2 * HOUR)
    settled_at = (NOW - HORIZON - HOUR).isoformat()
    world.record(place, status=status, settled_at=settled_at, **changes)

    progress = world.reconcile()

    assert progress.findings == []
    assert progress.settled_beyond_horizon == 1
    assert report(progress)["settled_beyond_horizon"] == 1


def test_nothing_from_before_the_ledger_is_missing(world: World) -> None:
    world.founded = NOW - timedelta(hours=2)
    world.land("inherited.json", age=timedelta(hours=3))

    progress = world.reconcile(repair=True)

    assert progress.findings == []
    assert progress.beyond_horizon == 1


def test_an_order_that_is_stuck_beyond_the_horizon_is_reported_but_not_restarted(
    world: World,
) -> None:
    place = world.land("old.json", age=HORIZON + HOUR)
    world.open_record(place, open_since=(NOW - HORIZON - HOUR).isoformat())

    progress = world.reconcile(repair=True)

    assert kinds(progress) == ["stuck"]
    assert "Older than the horizon" in progress.findings[0]["detail"]
    assert world.started == {}


@pytest.mark.parametrize(
    "error", ["KeyReuseMismatch", "ProviderCredentialsRefused", "ProviderMisbehaved"]
)
def test_after_an_error_that_no_run_can_mend_a_person_goes_first(world: World, error: str) -> None:
    stuck(world)
    world.runs["arn:owner"] = Run("FAILED", error)

    progress = world.reconcile(repair=True)

    assert kinds(progress) == ["stuck"]
    assert error in progress.findings[0]["detail"]
    assert world.started == {}


def test_a_record_in_no_state_that_a_run_knows_is_left_to_a_person(world: World) -> None:
    place = world.land("odd.json")
    world.record(place, status="paid")
    world.charge(place)

    progress = world.reconcile(repair=True)

    assert kinds(progress) == ["charged_not_recorded"]
    assert world.started == {}


def test_a_done_record_without_a_time_is_compared_with_the_provider_too(world: World) -> None:
    place = world.land("odd.json")
    world.record(place, settled_at="yesterday")

    assert kinds(world.reconcile()) == ["recorded_not_charged"]


@pytest.mark.parametrize("charged", [False, True])
def test_an_open_record_that_its_index_lacks_is_found_all_the_same(
    world: World, charged: bool
) -> None:
    place = world.land("odd.json")
    world.open_record(place, open_since=None)
    if charged:
        world.charge(place)

    assert kinds(world.reconcile()) == ["charged_not_recorded" if charged else "stuck"]


def test_an_open_record_of_an_object_that_is_gone_is_found_through_its_charge(
    world: World,
) -> None:
    place = charged_for_an_object_that_is_gone(world)
    world.open_record(place, open_since=None)

    assert kinds(world.reconcile()) == ["charged_not_recorded"]


def test_an_open_record_without_any_time_is_found_although_its_object_is_gone(
    world: World,
) -> None:
    place = gone_while_open(world)
    world.open_record(place, open_since="yesterday", claimed_at=None)

    progress = world.reconcile(repair=True)

    assert kinds(progress) == ["superseded"]
    assert "Since an unknown time." in progress.findings[0]["detail"]
    assert world.started == {}


@pytest.mark.parametrize("lie", [{"key": "orders/lie.json"}, {"bucket": "another-bucket"}])
def test_a_charge_whose_object_nobody_names_is_left_to_a_person(
    world: World, lie: dict[str, str]
) -> None:
    place = charged_for_an_object_that_is_gone(world)
    world.charges_[-1] = world.charges_[-1]._replace(place=place._replace(**lie))

    progress = world.reconcile(repair=True)

    (finding,) = progress.findings
    assert finding["kind"] == "charged_not_recorded"
    assert finding["object"] is None
    assert world.started == {}


# ---------------------------------------------------------------- objects that are no orders


@pytest.mark.parametrize("name", ["photo.png", "a.JSON", "sub/", "x.json.bak", "json"])
def test_an_upload_that_the_rule_does_not_match_is_reported(world: World, name: str) -> None:
    world.land(name)

    progress = world.reconcile(repair=True)

    (finding,) = progress.findings
    assert finding["kind"] == "unmatched_object"
    assert finding["idempotency_key"] is None
    assert finding["object"]["key"] == f"orders/{name}"


def test_what_was_deleted_is_no_longer_unmatched(world: World) -> None:
    world.land("photo.png")
    world.versions_[-1] = world.versions_[-1]._replace(is_latest=False)

    assert world.reconcile().findings == []


def test_an_empty_folder_marker_is_nothing(world: World) -> None:
    world.land("")
    world.versions_[-1] = world.versions_[-1]._replace(size=0)

    progress = world.reconcile()

    assert progress.findings == []
    assert progress.scanned["objects"] == 5


def test_an_order_without_a_version_is_neither_new_nor_charged(world: World) -> None:
    world.land("before-versioning.json", version_id="null")

    progress = world.reconcile(repair=True)

    assert kinds(progress) == ["unversioned_object"]
    assert world.started == {}


# ---------------------------------------------------------------- running, stopping, going on


def break_a_lot(world: World) -> None:
    """Three orders missing, one stuck: four repairs. And something for a person, in each book."""
    for number in range(3):
        world.land(f"missing-{number}.json")
    world.open_record(world.land("stuck.json"))
    world.charge(world.settle("twice.json"), id="ch_second")
    world.land("photo.png")
    world.record(world.land("uncharged.json"))
    for name in ("first.json", "second.json"):
        world.record(world.settle(name), order_id="A-1")


def one_page_is_enough(audit: Audit) -> None:
    turned: list[Progress] = []
    audit.on_page = turned.append
    audit.is_over = lambda: bool(turned)


def test_a_pass_that_stops_after_every_page_finds_the_same(world: World) -> None:
    break_a_lot(world)
    whole = world.reconcile()

    progress = world.audit().begin("one", HORIZON)
    runs = 0
    while not progress.is_complete:
        audit = world.audit()
        one_page_is_enough(audit)
        progress = Progress.load(json.loads(json.dumps(progress.dump())))
        audit.carry_on(progress)
        runs += 1

    assert runs > 10
    assert progress.findings == whole.findings
    assert report(progress)["scanned"] == report(whole)["scanned"]


def test_a_run_that_is_over_at_once_changes_nothing(world: World) -> None:
    missing(world)
    audit = world.audit(repair=True)
    audit.is_over = lambda: True
    progress = audit.begin("one", HORIZON)

    audit.carry_on(progress)

    assert not progress.is_complete
    assert (progress.phase, progress.cursor) == ("objects", None)
    assert world.started == {}


def test_a_page_that_is_done_twice_starts_each_repair_once(world: World) -> None:
    break_a_lot(world)
    first, second = world.audit(repair=True), world.audit(repair=True)
    progress = first.begin("one", HORIZON)
    twin = Progress.load(progress.dump())

    first.carry_on(progress)
    second.carry_on(twin)

    assert progress.repaired == twin.repaired
    assert len(world.started) == len(progress.repaired) == 4


def test_two_passes_start_runs_of_different_names_and_leave_the_claim_to_decide(
    world: World,
) -> None:
    missing(world)

    world.reconcile(repair=True)
    world.reconcile(repair=True, name="two")

    assert len(world.started) == 2


def test_a_book_that_fails_ends_the_run_and_the_pass_goes_on_from_there(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing(world)
    audit = world.audit()
    progress = audit.begin("one", HORIZON)

    with monkeypatch.context() as away, pytest.raises(ConnectionError):
        away.setattr(world, "charges", refuse)
        audit.carry_on(progress)
    phase = progress.phase
    world.audit().carry_on(progress)

    assert phase == "charges"
    assert progress.is_complete
    assert kinds(progress) == ["missing"]


def refuse(*_: Any) -> Any:
    raise ConnectionError("the provider is away")


@pytest.mark.parametrize("what", ["orders/bad.json", "key", "repair-"])
def test_one_bad_entry_is_reported_and_the_rest_goes_on(world: World, what: str) -> None:
    place = missing(world)
    other = world.land("other.json")
    world.unreadable = {place.idempotency_key if what == "key" else what}

    progress = world.reconcile(repair=what == "repair-")

    assert place.idempotency_key in [item["idempotency_key"] for item in progress.unreadable]
    assert other.idempotency_key in [item["idempotency_key"] for item in progress.findings]


def test_an_object_that_cannot_be_read_is_reported_by_name(world: World) -> None:
    place = world.land("photo.png")
    world.unreadable = {place.key}

    progress = world.reconcile()

    (entry,) = progress.unreadable
    assert entry["object"] == place._asdict()


def test_beyond_the_most_findings_the_rest_is_counted_and_not_started(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auditing, "MOST_FINDINGS", 2)
    for number in range(5):
        world.land(f"missing-{number}.json")

    progress = world.reconcile(repair=True)

    assert (len(progress.findings), progress.omitted) == (2, 3)
    assert len(world.started) == 2


def test_beyond_the_most_findings_what_cannot_be_read_is_counted_too(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auditing, "MOST_FINDINGS", 2)
    for number in range(5):
        world.land(f"missing-{number}.json")
    world.unreadable = {"orders/missing"}

    progress = world.reconcile()

    assert (len(progress.unreadable), progress.omitted) == (2, 3)


def test_the_grace_time_ends_between_two_passes(world: World) -> None:
    world.land("new.json", age=timedelta(0))
    early = world.reconcile()
    world.now += GRACE

    late = world.reconcile()

    assert (kinds(early), kinds(late)) == ([], ["missing"])


def test_names_of_repairs_fit_into_80_characters() -> None:
    name = repair_name(pass_name(NOW, "0123456789abcdef"), "charge#" + "f" * 64)

    assert len(name) <= 80
    assert name.isascii()


def test_every_place_of_a_pass_is_json(world: World) -> None:
    break_a_lot(world)
    places = []
    audit = world.audit()
    audit.on_page = lambda progress: places.append(json.dumps(progress.dump()))
    progress = audit.begin("one", HORIZON)

    audit.carry_on(progress)

    assert all(Progress.load(json.loads(text)).dump() == json.loads(text) for text in places)
    assert json.loads(places[-1])["phase"] == "complete"
