"""The product, broken on purpose: a campaign that does not notice is worth nothing."""

from __future__ import annotations

import contextlib
import copy
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from charge.charging import Charging
from charge.provider_client import ProviderClient

from local.definition import load_definition

Json = dict[str, Any]


@dataclass(frozen=True)
class Mutation:
    """One way to break the product: `states` changes the definition's states, `code` the function
    while it lasts. `needs_a_night`: it shows only when the provider has forgotten its keys."""

    name: str
    states: Callable[[Json], None] = lambda _: None
    code: Callable[[], contextlib.AbstractContextManager[object]] = contextlib.nullcontext
    needs_a_night: bool = False

    def definition(self) -> Json:
        """The definition, broken."""
        definition = copy.deepcopy(load_definition())
        self.states(definition["States"])
        return definition


def _claim_without_condition(states: Json) -> None:
    del states["Claim"]["Parameters"]["ConditionExpression"]


def _take_over_from_anybody(states: Json) -> None:
    parameters = states["TakeOver"]["Parameters"]
    parameters["ConditionExpression"] = "#status = :in_progress"
    del parameters["ExpressionAttributeValues"][":old"]


def _anybody_settles(states: Json) -> None:
    parameters = states["MarkDone"]["Parameters"]
    parameters["ConditionExpression"] = (
        "#status = :in_progress OR (#status = :done AND charge_id = :charge_id)"
    )
    del parameters["ExpressionAttributeValues"][":me"]
    del parameters["ExpressionAttributeNames"]["#owner"]


@contextlib.contextmanager
def _another_key_each_time() -> Iterator[None]:
    original = ProviderClient._send

    def send(
        client: ProviderClient,
        method: str,
        url: str,
        headers: dict[str, str],
        body: bytes | None,
        key: str,
    ) -> Any:
        if "Idempotency-Key" in headers:
            headers = headers | {"Idempotency-Key": str(uuid.uuid4())}
        return original(client, method, url, headers, body, key)

    with patch.object(ProviderClient, "_send", send):
        yield


@contextlib.contextmanager
def _never_look_up_first() -> Iterator[None]:
    no = property(lambda _: False, lambda *_: None)
    with (
        patch.object(Charging, "_key_is_alive", lambda *_: True),
        patch.object(Charging, "is_restart", no),
    ):
        yield


MUTATIONS = (
    Mutation("the claim has no condition", states=_claim_without_condition),
    Mutation("each attempt has a key of its own", code=_another_key_each_time),
    Mutation("anybody may be taken over from", states=_take_over_from_anybody),
    Mutation("anybody may settle a record", states=_anybody_settles),
    Mutation(
        "an old order is charged without a look-up",
        code=_never_look_up_first,
        needs_a_night=True,
    ),
)
