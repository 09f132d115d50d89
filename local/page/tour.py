"""The guided tour: six scenes that show why an order is charged exactly once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Scene:
    """One scene. `action` and `fields` are what its button does; `watch` what to look for."""

    name: str
    title: str
    story: tuple[str, ...]
    button: str
    action: str
    fields: Mapping[str, str] = field(default_factory=dict)
    watch: str = ""


SCENES = (
    Scene(
        name="one-order",
        title="One order, one entry",
        story=(
            "A file lands in a bucket, and that file is an order. The clerk first pencils it "
            "into our ledger as claimed, in a single conditional write that only one clerk can "
            "win. Then the payment provider is asked for the money, and only when it has "
            "answered is the entry inked in as done.",
            "There are two ledgers from now on: ours, and the provider's. This page always "
            "shows them side by side.",
        ),
        button="Drop an order",
        action="drop",
        watch="Both ledgers show one line each, and they name the same charge.",
    ),
    Scene(
        name="knocks-twice",
        title="The messenger knocks again",
        story=(
            "Events are delivered at least once. Losing one would be worse, so now and then the "
            "same event comes twice, seconds or hours apart. Here it comes eight times at the "
            "same moment.",
            "Seven clerks find the claim taken and stand down. Nobody asks the clock, and no "
            "lock can expire: the ledger's condition decides.",
        ),
        button="Deliver one order eight times at once",
        action="drop",
        fields={"deliver": "8", "concurrently": "on"},
        watch="Eight executions, one claim, one charge.",
    ),
    Scene(
        name="crash",
        title="The clerk faints with the money in hand",
        story=(
            "The worst moment to fail is after the money has moved and before the ink is dry. "
            "Whoever tries again cannot know that it moved, and bookkeeping on our side alone "
            "cannot help: most systems charge a second time here, and no log shows an error.",
            "So every request carries a key, made from the order and never from the attempt. "
            "The provider keeps a ledger of keys: the second request under the same key gets "
            "the first answer again.",
        ),
        button="Crash right after the charge",
        action="drop",
        fields={"fault": "function.exit_after_charge", "times": "1"},
        watch="Two requests reached the provider: one made the charge, one was a replay.",
    ),
    Scene(
        name="dead-provider",
        title="Nobody answers at the provider's door",
        story=(
            "Now the provider is down, for longer than all retries last. Claiming the order and "
            "then forgetting it would be the quiet disaster: the system would take it for done.",
            "Instead our entry stays in pencil, and the order goes to the failure queue, where a "
            "person sees it. Nothing was charged, and nothing is lost.",
        ),
        button="Drop an order at a dead provider",
        action="drop",
        fields={"fault": "provider.unavailable", "times": "99"},
        watch="No charge, a record in progress, a message in the failure queue.",
    ),
    Scene(
        name="replay",
        title="The second visit",
        story=(
            "The provider is back. A replay starts a new execution for the same order. It takes "
            "the entry over from its dead owner, on condition that the owner is still the same, "
            "so of several helpful people only one succeeds. And it uses the same key.",
        ),
        button="Let the provider recover, and replay",
        action="recover",
        watch="The entry is inked in, the queue is empty, and there is one charge.",
    ),
    Scene(
        name="auditor",
        title="The auditor closes the day",
        story=(
            "Prevention is not proof. So the auditor compares what landed in the bucket, what "
            "our ledger says, and what the provider's books say, line by line.",
            "To give him something to find, this order is charged while every attempt to write "
            "it down fails: the money has moved, our entry is still in pencil. The auditor "
            "finds it and has it settled, without a second charge.",
        ),
        button="Hide a charge, then send in the auditor",
        action="audit",
        watch="A finding, a repair, and still one charge.",
    ),
)


def scene(name: str) -> Scene | None:
    """The scene with this name."""
    return next((one for one in SCENES if one.name == name), None)
