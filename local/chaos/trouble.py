"""What goes wrong around the local stack while a campaign runs, and how often it did."""

from __future__ import annotations

import contextlib
import random
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import httpx
import psutil
from botocore.exceptions import BotoCoreError, ClientError

from local import processes
from local.emulator.faults import PATH
from local.errors import CommandError
from local.ports import free_port
from local.provider_api import ProviderApi
from local.stack import Stack
from local.waiting import wait_for

_Answer = TypeVar("_Answer")
Json = dict[str, Any]

#: How often each call of the state machine suffers each kind of fault.
_MACHINE = {"error": 0.03, "throttle": 0.03, "lost": 0.05, "repeat": 0.04, "delay": 0.02}
_STATES = (
    "Claim", "ReadRecord", "TakeOver", "Charge", "MarkDone", "MarkDeclined", "MarkRejected",
    "QueueFailure",
)  # fmt: skip
_READ_FAILS = 0.05
#: A killed process is replaced in a second.
PATIENCE_SECONDS = 30

#: What the proxy does to the calls that the functions make themselves; the rest passes.
_PROXY_RULES: list[Json] = [
    # Before the provider's books hear of it, and after they have done it.
    {"service": "dynamodb", "operation": "PutItem", "probability": 0.01,
     "error": {"code": "InternalServerError"}},
    {"service": "dynamodb", "operation": "TransactWriteItems", "probability": 0.02,
     "error": {"code": "ThrottlingException"}},
    {"service": "dynamodb", "operation": "TransactWriteItems", "probability": 0.02,
     "response": {"abort_frac": 0.3}},
    {"service": "dynamodb", "operation": "Query", "probability": 0.005, "reset": True},
    {"service": "s3", "operation": "GetObject", "probability": 0.02,
     "response": {"abort_frac": 0.3}},
    {"service": "s3", "operation": "GetObject", "probability": 0.02, "latency": 200},
]  # fmt: skip

#: The provider's faults that leave the outcome of an order as it must be, and how long each takes.
_PROVIDER: tuple[Json, ...] = (
    {"fault": "unavailable"},
    {"fault": "rate_limit"},
    {"fault": "error_after_charge"},
    {"fault": "unavailable", "operation": "lookup"},
    {"fault": "slow", "seconds": 0.3},
    # Above the charge function's time-out for one request, which is 3 s on the local stack.
    {"fault": "timeout_after_charge", "seconds": 4},
    {"fault": "timeout_before", "seconds": 4},
)
_OUTAGE: Json = {"fault": "unavailable", "times": 10_000}
_BEFORE_MONEY = ("unavailable", "rate_limit", "timeout_before", "slow")


class Proxy:
    """microburst between the functions and the emulator. `port` is taken before it starts."""

    def __init__(self) -> None:
        self.port = free_port()
        self._control = f"http://127.0.0.1:{self.port}/_microburst"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, upstream: str) -> None:
        arguments = [
            *(sys.executable, "-m", "microburst"),
            *("--upstream", upstream),
            *("--host", "127.0.0.1"),
            *("--port", str(self.port)),
        ]
        process = processes.start("proxy", arguments, processes.clean_environment())
        processes.wait_until(lambda: processes.answers(f"{self._control}/health"), "proxy", process)

    def begin(self) -> None:
        """From here on calls fail."""
        httpx.post(f"{self._control}/rules", json=_PROXY_RULES, trust_env=False).raise_for_status()

    def end(self) -> Counter[tuple[str, str]]:
        """Let everything pass. Gives what was injected."""
        found: Counter[tuple[str, str]] = Counter()
        fired = httpx.get(f"{self._control}/fired", params={"limit": 100_000}, trust_env=False)
        for event in fired.raise_for_status().json():
            found[f"{event['service']} for the functions", str(event["action"])] += 1
        httpx.post(f"{self._control}/rules", json=[], trust_env=False).raise_for_status()
        return found


class Trouble:
    """Begins and ends everything that goes wrong, and counts it in `injected`."""

    def __init__(self, stack: Stack, proxy: Proxy, seed: int) -> None:
        self._stack = stack
        self._proxy = proxy
        self._seed = seed
        self._lock = threading.Lock()
        self.injected: Counter[tuple[str, str]] = Counter()
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []

    def begin(self) -> None:
        plan = [
            {"at": state, "kind": kind, "probability": share}
            for state in _STATES
            for kind, share in _MACHINE.items()
            if not (state == "Charge" and kind == "delay")
        ]
        plan = [fault | {"seconds": 0.2} for fault in plan]
        plan.append({"at": "s3:GetObject", "kind": "error", "probability": _READ_FAILS})
        self._faults("POST", {"seed": self._seed, "faults": plan})
        self._proxy.begin()
        self._repeat("provider", 1.0, self._annoy_the_provider)
        self._repeat("stops", 2.0, self._stop_an_execution)
        self._repeat("kills", 4.0, self._kill_a_worker)

    @contextlib.contextmanager
    def outage(self) -> Iterator[None]:
        """The provider answers nothing but 503 while this lasts."""
        wait_for(self._is_out, PATIENCE_SECONDS)
        yield
        self._clear_provider()

    def end(self) -> None:
        """Everything works again from here on."""
        self._over.set()
        for thread in self._threads:
            thread.join()
        for place, kinds in self._faults("GET")["injected"].items():
            for kind, count in kinds.items():
                self.injected[place, kind] += count
        self._faults("DELETE")
        self._clear_provider()
        self.injected += self._proxy.end()

    def kill_reconciler(self) -> None:
        """End the reconciler's process in the middle of its work."""
        self._kill("reconciler")

    # ---------------------------------------------------------------- one at a time

    def _repeat(self, name: str, seconds: float, act: Callable[[random.Random], None]) -> None:
        dice = random.Random(f"{self._seed} {name}")  # noqa: S311 - chaos, no secret

        def run() -> None:
            while not self._over.wait(dice.uniform(0, 2 * seconds)):
                with contextlib.suppress(
                    CommandError, ClientError, BotoCoreError
                ):  # trouble meets it
                    act(dice)

        thread = threading.Thread(target=run, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _annoy_the_provider(self, dice: random.Random) -> None:
        fault = dice.choice(_PROVIDER)
        self._arm(fault | {"times": 1 if "seconds" in fault else dice.randint(1, 4)})
        if dice.random() < 0.1:  # it looks at each fault for every charge, also at used-up ones
            self._clear_provider()

    def _is_out(self) -> bool:
        """Whether the outage could be armed: the process that is asked for it may be killed."""
        with contextlib.suppress(CommandError):
            self._arm(_OUTAGE)
            return True
        with contextlib.suppress(CommandError), self._lock, ProviderApi.of(self._stack) as provider:
            if any(fault["times"] == _OUTAGE["times"] for fault in provider.faults()):
                self._count(_OUTAGE)  # it was, and only the answer was lost
                return True
        return False

    def _arm(self, fault: Json) -> None:
        with self._lock, ProviderApi.of(self._stack) as provider:
            provider.arm_fault(fault)
            self._count(fault)

    def _count(self, fault: Json) -> None:
        self.injected[_boundary(fault), fault["fault"]] += fault["times"]

    def _clear_provider(self) -> None:
        """Disarm the provider's faults; those that never struck were not injected."""
        with self._lock, ProviderApi.of(self._stack) as provider:
            left = _insist(provider.faults)
            _insist(provider.clear_faults)
            for fault in left:
                self.injected[_boundary(fault), fault["fault"]] -= fault["remaining"]

    def _stop_an_execution(self, dice: random.Random) -> None:
        client = self._stack.client("stepfunctions")
        running = client.list_executions(
            stateMachineArn=self._stack.state_machine_arn, statusFilter="RUNNING"
        )["executions"]
        if running:
            arn = dice.choice(running)["executionArn"]
            client.stop_execution(executionArn=arn)
            self.injected["execution", "stopped"] += 1

    def _kill_a_worker(self, dice: random.Random) -> None:
        self._kill(dice.choice(("charge", "charge", "provider")))

    def _kill(self, package: str) -> None:
        handler = f"{package}.handler.handle"
        for process in _functions_processes():
            with contextlib.suppress(psutil.Error):
                if process.environ().get("_HANDLER") == handler:
                    process.kill()
                    self.injected[f"{package} function", "process killed"] += 1
                    return

    def _faults(self, method: str, plan: Json | None = None) -> Json:
        answer = httpx.request(
            method, f"{self._stack.endpoint}{PATH}", json=plan, timeout=30, trust_env=False
        )
        return dict(answer.raise_for_status().json())


def _insist(ask: Callable[[], _Answer]) -> _Answer:
    """What `ask` gives, although the process that it asks may be killed under it."""
    answers: list[_Answer] = []

    def is_answered() -> bool:
        with contextlib.suppress(CommandError):
            answers.append(ask())
        return bool(answers)

    wait_for(is_answered, PATIENCE_SECONDS)
    return answers[0]


def _functions_processes() -> list[psutil.Process]:
    """The emulator's children: it starts one process for each environment of a function."""
    found = []
    for process in processes.running():
        with contextlib.suppress(psutil.Error):
            found += process.children(recursive=True)
    return found


def _boundary(fault: Json) -> str:
    if fault.get("operation") == "lookup":
        return "provider look-up"
    after = fault["fault"] not in _BEFORE_MONEY
    return f"provider {'after' if after else 'before'} the money moves"
