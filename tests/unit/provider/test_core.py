"""The provider's rules, with the time in the test's hands."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from provider.core import Provider, fingerprint
from provider.problem import Problem
from provider.sqlite import SqliteStore
from provider.store import Answer, Marker

KEY = "key"
ORDER = {"amount": 1999, "currency": "EUR", "source": "tok_visa", "reference": "ref"}
RETENTION, LEASE = 86_400, 10


class Time:
    """A clock that moves when somebody sleeps, and lets others act in between."""

    def __init__(self) -> None:
        self.now = 4_000_000_000.0  # the store must not find these keys old by its own clock
        self.meanwhile: Callable[[], object] = lambda: None

    def wall(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        if seconds:
            self.now += seconds
            act, self.meanwhile = self.meanwhile, lambda: None
            act()


class Store(SqliteStore):
    """A store whose commit can fail before or after it was done."""

    def __init__(self) -> None:
        super().__init__(":memory:")
        self.commit_fails = ""

    def commit(self, key: str, marker: Marker, answer: Answer, **charge: Any) -> bool:
        if self.commit_fails == "before":
            raise ConnectionError
        kept = super().commit(key, marker, answer, **charge)
        if self.commit_fails == "after":
            raise ConnectionError
        return kept


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def store() -> Iterator[Store]:
    opened = Store()
    yield opened
    opened.close()


@pytest.fixture
def provider(store: Store, time: Time) -> Provider:
    return make(store, time)


def make(store: SqliteStore, time: Time, *, test_mode: bool = True) -> Provider:
    return Provider(
        store,
        key_retention_seconds=RETENTION,
        in_flight_seconds=LEASE,
        test_mode=test_mode,
        wall=time.wall,
        sleep=time.sleep,
    )


def refusal(act: Callable[[], object]) -> Problem:
    """The problem that this raises."""
    with pytest.raises(Problem) as caught:
        act()
    return caught.value


def listed(provider: Provider) -> list[dict[str, Any]]:
    charges: list[dict[str, Any]] = provider.list_charges(limit=100)["data"]
    return charges


class TestInFlight:
    def test_a_second_request_during_the_first_conflicts(
        self, provider: Provider, time: Time
    ) -> None:
        provider.arm({"fault": "slow", "seconds": LEASE - 1})
        conflicts: list[Problem] = []
        time.meanwhile = lambda: conflicts.append(refusal(lambda: provider.charge(KEY, ORDER)))

        provider.charge(KEY, ORDER)

        assert [conflict.status for conflict in conflicts] == [409]
        assert len(listed(provider)) == 1

    def test_a_holder_that_comes_back_too_late_replays_its_successor(
        self, provider: Provider, time: Time
    ) -> None:
        provider.arm({"fault": "slow", "seconds": LEASE + 1})
        answers: list[Answer] = []
        time.meanwhile = lambda: answers.append(provider.charge(KEY, ORDER))

        late = provider.charge(KEY, ORDER)

        [successor] = answers
        assert not successor.replayed
        assert late == Answer(201, successor.body, replayed=True)
        assert len(listed(provider)) == 1

    def test_a_late_holder_that_nobody_succeeded_still_charges(
        self, provider: Provider, time: Time
    ) -> None:
        provider.arm({"fault": "slow", "seconds": LEASE + 1})

        answer = provider.charge(KEY, ORDER)

        assert (answer.status, answer.replayed) == (201, False)

    def test_other_parameters_are_a_mismatch_even_in_flight(
        self, provider: Provider, time: Time
    ) -> None:
        provider.arm({"fault": "slow", "seconds": 1})
        problems: list[Problem] = []
        other = ORDER | {"amount": 1}
        time.meanwhile = lambda: problems.append(refusal(lambda: provider.charge(KEY, other)))

        provider.charge(KEY, ORDER)

        assert [problem.status for problem in problems] == [422]


class TestStoreFailure:
    def test_a_commit_that_failed_frees_the_key(self, provider: Provider, store: Store) -> None:
        store.commit_fails = "before"
        with pytest.raises(ConnectionError):
            provider.charge(KEY, ORDER)
        store.commit_fails = ""

        answer = provider.charge(KEY, ORDER)

        assert not answer.replayed
        assert len(listed(provider)) == 1

    def test_a_commit_whose_answer_was_lost_is_replayed(
        self, provider: Provider, store: Store
    ) -> None:
        store.commit_fails = "after"
        with pytest.raises(ConnectionError):
            provider.charge(KEY, ORDER)
        store.commit_fails = ""

        answer = provider.charge(KEY, ORDER)

        assert answer.replayed
        assert [json.loads(answer.body)] == listed(provider)


class TestRetention:
    @pytest.mark.parametrize(("age", "charges"), [(RETENTION - 1, 1), (RETENTION, 2)])
    def test_a_key_is_worth_something_for_exactly_as_long_as_promised(
        self, provider: Provider, time: Time, age: int, charges: int
    ) -> None:
        provider.charge(KEY, ORDER)
        time.now += age

        provider.charge(KEY, ORDER)

        assert len(listed(provider)) == charges

    def test_a_key_that_is_made_when_the_clock_is_ahead_lasts_as_long(
        self, provider: Provider, time: Time
    ) -> None:
        provider.advance_clock(RETENTION * 2)
        provider.charge(KEY, ORDER)
        provider.advance_clock(RETENTION - 1)

        assert provider.charge(KEY, ORDER).replayed

    def test_the_movable_clock_makes_no_lease_shorter(self, provider: Provider, time: Time) -> None:
        provider.arm({"fault": "slow", "seconds": 1})
        conflicts: list[Problem] = []

        def move_and_try() -> None:
            provider.advance_clock(LEASE * 2)
            conflicts.append(refusal(lambda: provider.charge(KEY, ORDER)))

        time.meanwhile = move_and_try

        provider.charge(KEY, ORDER)

        assert [conflict.status for conflict in conflicts] == [409]

    def test_the_movable_clock_makes_no_lease_longer(self, provider: Provider, time: Time) -> None:
        provider.advance_clock(LEASE * 2)
        provider.arm({"fault": "slow", "seconds": LEASE + 1})
        answers: list[Answer] = []
        time.meanwhile = lambda: answers.append(provider.charge(KEY, ORDER))

        provider.charge(KEY, ORDER)

        assert [answer.status for answer in answers] == [201]


class TestWithoutTestMode:
    def test_nothing_of_test_mode_has_an_effect(self, store: Store, time: Time) -> None:
        rehearsing, serving = make(store, time), make(store, time, test_mode=False)
        rehearsing.arm({"fault": "unavailable", "times": 100})
        rehearsing.arm({"fault": "unavailable", "times": 100, "operation": "lookup"})
        rehearsing.advance_clock(RETENTION)

        answer = serving.charge(KEY, ORDER)

        [kept] = listed(serving)
        assert json.loads(answer.body) == kept
        assert kept["created"] == time.now
        assert rehearsing.list_requests(KEY)["data"] == []


class TestHanging:
    @pytest.mark.parametrize("fault", ["timeout_before", "timeout_after_charge"])
    def test_it_takes_as_long_as_was_armed(
        self, provider: Provider, time: Time, fault: str
    ) -> None:
        provider.arm({"fault": fault, "seconds": 45})
        began = time.now

        refusal(lambda: provider.charge(KEY, ORDER))

        assert time.now - began == 45

    @pytest.mark.parametrize(("fault", "seconds"), [("timeout_before", 30), ("slow", 3)])
    def test_a_look_up_hangs_as_long_as_by_default(
        self, provider: Provider, time: Time, fault: str, seconds: int
    ) -> None:
        provider.arm({"fault": fault, "operation": "lookup"})
        began = time.now

        try:
            provider.list_charges(limit=1)
        except Problem as problem:
            assert problem.status == 504  # slow does not raise

        assert time.now - began == seconds

    def test_the_log_has_a_hanging_answer_before_it_is_given(
        self, provider: Provider, time: Time
    ) -> None:
        provider.arm({"fault": "timeout_after_charge"})
        logs: list[Any] = []
        time.meanwhile = lambda: logs.extend(provider.list_requests(KEY)["data"])

        refusal(lambda: provider.charge(KEY, ORDER))

        assert [(entry["outcome"], entry["status"]) for entry in logs] == [("made", 504)]


class TestPages:
    def test_very_large_charges_make_short_pages_and_none_is_lost(self, provider: Provider) -> None:
        large = ORDER | {"metadata": {f"m{number}": "x" * 1024 for number in range(50)}}
        for number in range(30):
            provider.charge(f"key-{number}", large)
        first = provider.list_charges(limit=100)

        rest = provider.list_charges(limit=100, starting_after=first["data"][-1]["id"])

        assert first["has_more"]
        assert not rest["has_more"]
        assert len(first["data"]) + len(rest["data"]) == 30


texts = st.text(st.characters(codec="utf-8"), max_size=40)
orders = st.fixed_dictionaries(
    {
        "amount": st.integers(1, 10**12 - 1),
        "currency": st.from_regex("[A-Z]{3}", fullmatch=True),
        "source": st.sampled_from(["tok_visa", "tok_declined", "tok_insufficient_funds"]),
    },
    optional={
        "reference": st.text(st.characters(codec="utf-8"), min_size=1, max_size=255),
        "metadata": st.dictionaries(texts.filter(bool), texts, max_size=5),
    },
)


@given(orders)
def test_any_order_is_answered_once_and_then_repeated_to_the_letter(order: dict[str, Any]) -> None:
    store, time = SqliteStore(":memory:"), Time()
    provider = make(store, time)
    first = provider.charge(KEY, order)

    again = provider.charge(KEY, json.loads(json.dumps(order, indent=1)))

    [kept] = listed(provider)
    store.close()
    assert again == Answer(first.status, first.body, replayed=True)
    assert (first.status == 201) == (order["source"] == "tok_visa")
    assert kept["amount"] == order["amount"]


@given(orders, orders)
def test_two_orders_have_one_fingerprint_only_if_they_are_equal(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    assert (fingerprint(one) == fingerprint(other)) == (one == other)


@pytest.mark.parametrize("amount", [1.0, "1", True, [1], None])
def test_a_number_in_another_type_has_another_fingerprint(amount: object) -> None:
    assert fingerprint({"amount": amount}) != fingerprint({"amount": 1})
