"""Trouble meets trouble: the provider's process may be killed while its faults are armed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from local.chaos.trouble import Trouble
from local.errors import CommandError
from local.provider_api import ProviderApi

Json = dict[str, Any]


class Provider:
    """Keeps faults as the provider does. Each of the `broken` calls to come ends in an error:
    before it was done, or `late`, when only its answer is lost."""

    def __init__(self) -> None:
        self.armed: list[Json] = []
        self.broken: list[str] = []

    def _call(self, do: Callable[[], Any]) -> Any:
        how = self.broken.pop(0) if self.broken else None
        answer = None if how == "early" else do()
        if how:
            raise CommandError("502 Runtime.ExitError")
        return answer

    def arm_fault(self, fault: Json) -> None:
        self._call(lambda: self.armed.append(fault | {"remaining": fault["times"]}))

    def faults(self) -> list[Json]:
        return list(self._call(lambda: list(self.armed)))

    def clear_faults(self) -> None:
        self._call(self.armed.clear)


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Provider:
    found = Provider()

    @contextmanager
    def of(_: object) -> Iterator[Provider]:
        yield found

    monkeypatch.setattr(ProviderApi, "of", of)
    return found


@pytest.mark.parametrize(
    "broken",
    [
        [],
        ["early"],
        ["late"],
        ["early", "early", "early"],
        ["late", "early", "early"],
    ],
    ids=["nothing", "before it was armed", "after it was armed", "again and again", "both"],
)
def test_an_outage_begins_and_ends_whatever_is_killed_meanwhile(
    provider: Provider, broken: list[str]
) -> None:
    some: Any = None
    chaos = Trouble(some, some, seed=1)
    provider.broken = list(broken)

    with chaos.outage():
        armed = list(provider.armed)
        provider.armed[0]["remaining"] -= 3  # three requests met it
        provider.broken = list(broken)

    assert armed
    assert provider.armed == []


@pytest.mark.parametrize("broken", [[], ["early"], ["late"]], ids=["nothing", "early", "late"])
def test_only_what_struck_is_counted(provider: Provider, broken: list[str]) -> None:
    some: Any = None
    chaos = Trouble(some, some, seed=1)
    provider.broken = list(broken)

    with chaos.outage():
        provider.armed[0]["remaining"] -= 3
        provider.broken = list(broken)

    assert +chaos.injected == {("provider before the money moves", "unavailable"): 3}
