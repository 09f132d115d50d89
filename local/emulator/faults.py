"""Faults on the state machine's own calls, for rehearsals: only after `--fault-points`.

The state machine calls DynamoDB, SQS and Lambda inside of the emulator, where no proxy can stand
in between. `POST /_faults` on the emulator replaces the plan, `GET` shows it with what has been
injected so far, `DELETE` clears both. A plan:

    {"seed": 1, "faults": [{"at": "Claim", "kind": "lost", "probability": 0.3, "times": 5}]}

`at` is the name of a Task state, `s3:GetObject`, or `*` for every state. Kinds:

- `error`: fails before anything has happened
- `throttle`: the same, with the service's word for it
- `lost`: happens, then fails: the caller cannot know
- `repeat`: happens twice, and the second answer is returned: what an SDK's retry looks like
- `delay`: happens after `seconds`

`error_name` overrides the name of the error. Without `probability` a fault is certain, without
`times` it never runs out. Whether a call is hit depends on the seed, the order's object key, the
place and the how-manieth call of that order at that place it is: not on the threads' timing.
"""

import collections
import json
import random
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from local.emulator import upstream
from local.emulator.error_names import ERROR_NAMES
from local.emulator.mends import running

PATH = "/_faults"
READ = "s3:GetObject"

KINDS = ("error", "throttle", "lost", "repeat", "delay")


@dataclass
class Fault:
    """One line of a plan; the names are those of its JSON."""

    at: str
    kind: str
    probability: float = 1.0
    times: int | None = None
    seconds: float = 0.0
    error_name: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind is one of {', '.join(KINDS)}, not {self.kind!r}")


@dataclass
class Plan:
    """What shall go wrong, and what has."""

    seed: int = 0
    faults: list[Fault] = field(default_factory=list)
    injected: collections.Counter[tuple[str, str]] = field(default_factory=collections.Counter)
    _calls: collections.Counter[tuple[str, str]] = field(default_factory=collections.Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def parse(cls, document: bytes) -> "Plan":
        """A plan from its JSON.

        Raises:
            ValueError, TypeError: it is not one.
        """
        plan = json.loads(document)
        return cls(plan.get("seed", 0), [Fault(**fault) for fault in plan["faults"]])

    def take(self, place: str, order: str) -> Fault | None:
        """The fault that hits this call, counted; None when the call goes well."""
        with self._lock:
            self._calls[order, place] += 1
            dice = random.Random(f"{self.seed}/{order}/{place}/{self._calls[order, place]}")  # noqa: S311
            for fault in self.faults:
                everywhere = fault.at == "*" and place != READ
                hit = dice.random() < fault.probability
                if (everywhere or fault.at == place) and hit and fault.times != 0:
                    if fault.times is not None:
                        fault.times -= 1
                    self.injected[place, fault.kind] += 1
                    return fault
        return None

    def describe(self) -> dict[str, Any]:
        """The plan as JSON, with `injected` as {place: {kind: count}}."""
        injected: dict[str, dict[str, int]] = {}
        with self._lock:
            for (place, kind), count in sorted(self.injected.items()):
                injected.setdefault(place, {})[kind] = count
            faults = [vars(fault) for fault in self.faults]
        return {"seed": self.seed, "faults": faults, "injected": injected}


def install() -> None:
    """Put the fault points in, with an empty plan, and the address that controls them."""
    stepfunctions = upstream.module("services.stepfunctions")
    s3 = upstream.module("services.s3")
    running.track()
    plan = Plan()

    def invoke(original: Any, resource: str, given: Any) -> Any:
        place = running.context().get("State", {}).get("Name", "")
        fault = plan.take(place, _order(running.execution() or {}))
        if fault is None:
            return original(resource, given)
        if fault.kind == "delay":
            time.sleep(fault.seconds)
            return original(resource, given)
        if fault.kind == "repeat":
            original(resource, given)
            return original(resource, given)
        if fault.kind == "lost":
            original(resource, given)
        service = resource.rpartition(":::")[2].partition(":")[0]
        name = fault.error_name or ERROR_NAMES.get((service, fault.kind), "States.TaskFailed")
        raise stepfunctions._ExecutionError(name, f"Injected: {fault.kind} at {place}")

    def get_object(original: Any, bucket: str, key: str, *rest: Any) -> Any:
        if plan.take(READ, key):
            return s3._error("InternalError", "Injected: error at s3:GetObject", 500)
        return original(bucket, key, *rest)

    async def control(original: Any, path: str, method: str, body: bytes) -> Any:
        nonlocal plan
        if path != PATH:
            return await original(path, method, body)
        try:
            if method in ("POST", "DELETE"):
                plan = Plan.parse(body) if method == "POST" else Plan()
        except (KeyError, TypeError, ValueError) as error:
            return _json(400, {"error": str(error)})
        return _json(200, plan.describe())

    upstream.wrap(stepfunctions, "_invoke_resource", invoke)
    upstream.wrap(s3, "_get_object", get_object)
    upstream.wrap(upstream.module("app"), "_handle_admin_config_request", control)


def _order(execution: dict[str, Any]) -> str:
    """The object key that the execution is about, so that each order has a fate of its own."""
    try:
        return str(json.loads(execution["input"])["detail"]["object"]["key"])
    except (KeyError, TypeError, ValueError):
        return str(execution.get("name", ""))


def _json(status: int, document: Any) -> tuple[int, dict[str, str], bytes]:
    return status, {"Content-Type": "application/json"}, json.dumps(document).encode()
