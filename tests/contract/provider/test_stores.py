"""Both stores keep the same promises."""

from collections.abc import Iterator
from dataclasses import replace
from uuid import uuid4

import pytest
from provider.dynamodb import DynamoDbStore
from provider.ids import first_id, new_id
from provider.sqlite import SqliteStore
from provider.store import Answer, Fault, KeyState, Marker, Store

from tests.contract.provider.harness import Aws, at_once

NOW = 4_000_000_000.0  # no store may find these keys old by its own clock
MARKER = Marker(token="a", fingerprint="f", lease_until=NOW + 10, expires_at=int(NOW) + 86_400)
ANSWER = Answer(201, '{"é": "exact  text"}')


@pytest.fixture(scope="session")
def table(aws: Aws) -> str:
    return aws.make_table()


@pytest.fixture(params=["sqlite", "dynamodb"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """A store with nothing on order in it."""
    if request.param == "sqlite":
        embedded = SqliteStore(":memory:")
        yield embedded
        embedded.close()
    else:
        client = request.getfixturevalue("aws").client("dynamodb")
        remote = DynamoDbStore(request.getfixturevalue("table"), client)
        yield remote
        remote.clear_faults()
        remote.reset_clock()
        client.close()


@pytest.fixture
def key() -> str:
    return f"key-{uuid4()}"


def claim(store: Store, key: str, marker: Marker = MARKER, after: float = 0) -> KeyState | None:
    """Claim a key so many seconds after the marker of these tests was put."""
    return store.claim(key, marker, now=NOW + after, wall=NOW + after)


def commit(
    store: Store, key: str, marker: Marker = MARKER, *, reference: str | None = None
) -> str | None:
    """Commit a new charge; its id when that was kept."""
    charge_id = new_id("ch", NOW)
    kept = store.commit(
        key, marker, ANSWER, charge_id=charge_id, reference=reference, charge=charge_id
    )
    return charge_id if kept else None


class TestClaim:
    def test_an_unknown_key_is_claimed(self, store: Store, key: str) -> None:
        assert claim(store, key) is None

    def test_a_key_in_flight_is_not(self, store: Store, key: str) -> None:
        claim(store, key)

        assert claim(store, key, replace(MARKER, token="b")) == KeyState("f", None)

    def test_a_marker_past_its_lease_is_taken_over(self, store: Store, key: str) -> None:
        claim(store, key)

        assert claim(store, key, replace(MARKER, token="b"), after=9.9) == KeyState("f", None)
        assert claim(store, key, replace(MARKER, token="b"), after=10) is None

    def test_a_marker_past_its_lease_still_means_its_own_parameters(
        self, store: Store, key: str
    ) -> None:
        claim(store, key)
        other = replace(MARKER, token="b", fingerprint="g")

        assert claim(store, key, other, after=10) == KeyState("f", None)

    def test_a_forgotten_marker_means_nothing(self, store: Store, key: str) -> None:
        claim(store, key)
        other = replace(MARKER, token="b", fingerprint="g")

        assert claim(store, key, other, after=86_400) is None

    def test_an_answered_key_gives_the_exact_answer(self, store: Store, key: str) -> None:
        claim(store, key)
        commit(store, key)

        assert claim(store, key, replace(MARKER, token="b"), after=20) == KeyState("f", ANSWER)

    def test_a_forgotten_answer_makes_room(self, store: Store, key: str) -> None:
        claim(store, key)
        commit(store, key)
        successor = replace(MARKER, token="b", fingerprint="g")

        assert claim(store, key, successor, after=86_400) is None
        assert claim(store, key, replace(MARKER, token="c")) == KeyState("g", None)

    def test_one_of_many_wins(self, store: Store, key: str) -> None:
        markers = [replace(MARKER, token=f"t{number}") for number in range(40)]

        held = at_once(40, 20, lambda number: claim(store, key, markers[number]))

        assert held.count(None) == 1
        assert held.count(KeyState("f", None)) == 39

    def test_one_of_many_takes_an_abandoned_marker_over(self, store: Store, key: str) -> None:
        claim(store, key)
        markers = [
            replace(MARKER, token=f"t{number}", lease_until=NOW + 99) for number in range(40)
        ]

        held = at_once(40, 20, lambda number: claim(store, key, markers[number], after=10))

        assert held.count(None) == 1


class TestCommit:
    def test_it_keeps_the_charge_under_its_id_and_its_reference(
        self, store: Store, key: str
    ) -> None:
        claim(store, key)

        charge_id = commit(store, key, reference=key)

        assert charge_id is not None
        assert store.charge(charge_id) == charge_id
        assert list(store.charges(key, "", 10)) == [charge_id]

    def test_without_the_marker_nothing_is_kept(self, store: Store, key: str) -> None:
        assert commit(store, key, reference=key) is None
        assert list(store.charges(key, "", 10)) == []
        assert claim(store, key) is None

    def test_a_deposed_holder_keeps_nothing(self, store: Store, key: str) -> None:
        claim(store, key)
        successor = replace(MARKER, token="b")
        claim(store, key, successor, after=10)

        late = commit(store, key, reference=key)

        assert late is None
        assert list(store.charges(key, "", 10)) == []
        assert commit(store, key, successor, reference=key) is not None

    def test_a_holder_past_its_lease_may_commit_while_nobody_took_over(
        self, store: Store, key: str
    ) -> None:
        claim(store, key, replace(MARKER, lease_until=0))

        assert commit(store, key) is not None

    def test_one_marker_commits_once(self, store: Store, key: str) -> None:
        claim(store, key)

        kept = at_once(10, 10, lambda _: commit(store, key, reference=key))

        [winner] = [charge_id for charge_id in kept if charge_id]
        assert list(store.charges(key, "", 10)) == [winner]


class TestRelease:
    def test_it_frees_a_key_in_flight(self, store: Store, key: str) -> None:
        claim(store, key)

        store.release(key, MARKER)

        assert claim(store, key, replace(MARKER, token="b")) is None

    def test_it_leaves_a_successor_alone(self, store: Store, key: str) -> None:
        claim(store, key)
        claim(store, key, replace(MARKER, token="b"), after=10)

        store.release(key, MARKER)

        assert claim(store, key, replace(MARKER, token="c")) == KeyState("f", None)

    def test_it_leaves_an_answer_alone(self, store: Store, key: str) -> None:
        claim(store, key)
        commit(store, key)

        store.release(key, MARKER)

        assert claim(store, key, replace(MARKER, token="b")) == KeyState("f", ANSWER)


class TestCharges:
    @pytest.fixture
    def ids(self, store: Store, key: str) -> list[str]:
        """Seven charges of one reference, one second apart, committed in no order."""
        ids = [new_id("ch", NOW + second) for second in range(7)]
        for charge_id in (*ids[4:], *ids[:4]):
            claim(store, charge_id)
            store.commit(
                charge_id, MARKER, ANSWER, charge_id=charge_id, reference=key, charge=charge_id
            )
        return ids

    def test_they_come_in_the_order_of_their_ids(
        self, store: Store, key: str, ids: list[str]
    ) -> None:
        assert list(store.charges(key, "", 100)) == ids

    def test_they_start_at_a_moment(self, store: Store, key: str, ids: list[str]) -> None:
        assert list(store.charges(key, first_id("ch", NOW + 3), 100)) == ids[3:]

    def test_they_stop_at_the_limit(self, store: Store, key: str, ids: list[str]) -> None:
        assert list(store.charges(key, "", 3)) == ids[:3]

    def test_all_references_are_in_the_whole_list(self, store: Store, ids: list[str]) -> None:
        assert set(ids) <= set(store.charges(None, ids[0], 1000))

    def test_an_unknown_id_is_nothing(self, store: Store) -> None:
        assert store.charge("ch_unknown") is None


class TestFaults:
    FAULT = Fault(
        id="flt_1",
        name="slow",
        operation="charge",
        times=2,
        remaining=2,
        seconds=0.5,
        reference="r",
        metadata={"a": "b"},
    )

    def test_they_come_back_as_they_were_armed_oldest_first(self, store: Store) -> None:
        later = replace(self.FAULT, id="flt_2", reference=None, metadata={})
        store.add_fault(later)
        store.add_fault(self.FAULT)

        assert store.faults() == [self.FAULT, later]

    def test_they_count_down_and_are_gone(self, store: Store) -> None:
        store.add_fault(self.FAULT)

        left = [
            (store.take_fault(self.FAULT.id), [fault.remaining for fault in store.faults()])
            for _ in range(3)
        ]

        assert left == [(True, [1]), (True, []), (False, [])]

    def test_many_at_once_take_as_many_as_there_are(self, store: Store) -> None:
        store.add_fault(replace(self.FAULT, remaining=7))

        taken = at_once(20, 10, lambda _: store.take_fault(self.FAULT.id))

        assert taken.count(True) == 7

    def test_an_unknown_one_cannot_be_taken(self, store: Store) -> None:
        assert store.take_fault("flt_unknown") is False

    def test_clearing_takes_all(self, store: Store) -> None:
        store.add_fault(self.FAULT)

        store.clear_faults()

        assert store.faults() == []


class TestRequests:
    def test_the_log_of_a_key_is_in_order_and_has_an_end(self, store: Store, key: str) -> None:
        for entry_id in ("2", "1", "3"):
            store.log_request(key, entry_id, f"entry {entry_id}", MARKER.expires_at)
        store.log_request("another", "0", "entry", MARKER.expires_at)

        assert store.requests(key, 10) == ["entry 1", "entry 2", "entry 3"]
        assert store.requests(key, 2) == ["entry 1", "entry 2"]


class TestClock:
    def test_it_adds_up_and_goes_back(self, store: Store) -> None:
        offsets = [store.clock_offset(), store.advance_clock(5), store.advance_clock(7)]
        store.reset_clock()

        assert offsets == [0, 5, 12]
        assert store.clock_offset() == 0
