"""What each button means: its name on the page's log, and the work that it sets going."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from local.page.bench import Bench
from local.page.index import Index, Row
from local.page.jobs import Job
from local.page.reader import Reader

Fields = Mapping[str, str]
Work = Callable[[Job], None]


class Buttons:
    """The buttons of one page. `scenes` holds the last job of each scene of the tour."""

    def __init__(
        self,
        bench: Bench,
        index: Index,
        reader: Reader,
        remember_reset: Callable[[datetime], None],
    ) -> None:
        self.scenes: dict[str, Job] = {}
        self._bench = bench
        self._index = index
        self._reader = reader
        self._remember_reset = remember_reset
        self._actions: dict[str, Callable[[Fields], tuple[str, Work]]] = {
            "drop": self._drop,
            "deliver": lambda fields: self._deliver(fields, 1),
            "deliver-eight": lambda fields: self._deliver(fields, 8),
            "arm": lambda fields: ("Arm a fault", lambda job: bench.arm(job, fields)),
            "clear": lambda _: ("Clear all faults", bench.clear),
            "stop": lambda fields: (
                "Stop an execution",
                lambda job: bench.stop(job, fields.get("arn", "")),
            ),
            "replay": self._replay,
            "reconcile": lambda _: ("Reconcile", lambda job: self._reconcile(job, repair=False)),
            "repair": lambda _: (
                "Reconcile and repair",
                lambda job: self._reconcile(job, repair=True),
            ),
            "recover": lambda _: ("Recover, then replay", self._recover),
            "audit": lambda _: ("Hide a charge, then audit", self._audit),
            "reset": lambda _: ("Reset the stack", self._reset),
        }

    def press(self, action: str, fields: Fields) -> tuple[str, Work]:
        """A button's title and work. Raises ValueError for what cannot be meant."""
        if action not in self._actions:
            raise ValueError(f"There is no button {action!r}.")
        return self._actions[action](fields)

    def rows_of(self, scene: str) -> list[Row]:
        """The orders of a scene, found as soon as a book knows the object."""
        job = self.scenes.get(scene)
        if job is None:
            return []
        rows = [row for key in job.keys if (row := self._index.row(key)) is not None]
        if not rows and job.object_key:
            rows = list(self._index.page(text=job.object_key, size=1).rows)
        return rows

    def _drop(self, fields: Fields) -> tuple[str, Work]:
        fault = fields.get("fault")
        title = f"Drop an order, with {fault}" if fault else "Drop an order"
        return title, lambda job: self._bench.drop(job, fields)

    def _deliver(self, fields: Fields, times: int) -> tuple[str, Work]:
        row = self._index.row(fields.get("key", ""))
        if row is None:
            raise ValueError("No book knows this order.")
        title = "Deliver the event eight times at once" if times > 1 else "Deliver the event again"
        return title, lambda job: self._bench.deliver(job, row, times)

    def _replay(self, fields: Fields) -> tuple[str, Work]:
        key, discard = fields.get("key") or None, "discard" in fields
        title = "Replay this order" if key else "Replay the failure queue"
        return title, lambda job: self._bench.replay(job, key, discard=discard)

    def _reconcile(self, job: Job, *, repair: bool) -> None:
        self._index.put_findings(self._bench.reconcile(job, repair=repair))
        self._reader.look_again(job.keys)

    def _recover(self, job: Job) -> None:
        """The order of the scene before is replayed once its provider is back."""
        self._bench.clear(job)
        before = self.scenes.get("dead-provider")
        keys = list(before.keys) if before else []
        self._bench.replay(job, keys[0] if keys else None, discard=False)
        job.keys = list(dict.fromkeys([*keys, *job.keys]))

    def _audit(self, job: Job) -> None:
        """A charge that no attempt can write down is found and settled."""
        self._bench.drop(job, {"fault": "function.exit_after_charge", "times": "99"})
        hidden = list(job.keys)
        self._bench.clear(job)
        job.say("The auditor compares the books")
        self._reconcile(job, repair=True)
        job.say("What the queue still says about it is done with")
        for key in hidden:
            self._bench.replay(job, key, discard=False)
        job.keys = hidden

    def _reset(self, job: Job) -> None:
        self._bench.reset(job)
        now = datetime.now(UTC)
        self._remember_reset(now)
        self._reader.forget_everything(now)
        self.scenes.clear()
