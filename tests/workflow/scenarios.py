"""Every path of the definition, as a table: what happens around a run, and what comes of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Json = dict[str, Any]

#: Stands in an owner's place for the execution under test, whose ARN is known only later.
ME = "the execution under test"
OTHER = "arn:aws:states:us-east-1:123456789012:execution:ChargeOrder:other"
DEAD = "arn:aws:states:us-east-1:123456789012:execution:ChargeOrder:dead"

CONFLICT = "DynamoDB.ConditionalCheckFailedException"
LEDGER_FAILS = "DynamoDB.InternalServerErrorException"
QUEUE_FAILS = "SQS.AmazonSQSException"

CHARGE: Json = {
    "charge_id": "ch_1",
    "amount_minor": 1999,
    "currency": "EUR",
    "order_id": "A-1001",
    "replayed": False,
    "charged_at": "2026-11-29T12:00:00Z",
    "expires_at": 1_900_000_000,
}


@dataclass(frozen=True)
class Raises:
    """The charge function raises an exception of the class `error`."""

    error: str
    message: str = "so it is"


@dataclass(frozen=True)
class Fault:
    """The call at the state `at` goes wrong; the words are those of the emulator's fault points.

    "error": before anything has happened; "lost": after it has; "repeat": it happens twice, as
    when an SDK asks again; "delay": it happens after `seconds`. `times` None: for ever.
    """

    at: str
    kind: Literal["error", "lost", "repeat", "delay"]
    error: str = ""
    times: int | None = 1
    seconds: float = 0.0


@dataclass(frozen=True)
class Meanwhile:
    """Somebody else changes the record just before the call of the state `before`.

    `changes` None: the record vanishes.
    """

    before: str
    changes: Json | None


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """What surrounds a run, and what is expected of it.

    `charge`: what the function does at each attempt, the last for all further ones. `record`: what
    the ledger holds beforehand. `path` is what follows the first two states. `attempts`: calls
    of a state where there is not one for each entry. `settled`: status and further attributes of
    the record afterwards; None: as beforehand. `queued`: error names of the messages.
    """

    name: str
    version: str | None = "v1"
    charge: tuple[Json | Raises, ...] = (CHARGE,)
    faults: tuple[Fault, ...] = ()
    meanwhile: Meanwhile | None = None
    record: Json | None = None
    replay_of: str | None = None
    path: str
    status: str = "SUCCEEDED"
    error: str | None = None
    attempts: dict[str, int] = field(default_factory=dict)
    after: Json | None
    queued: tuple[str, ...] = ()

    @property
    def states(self) -> list[str]:
        """The whole path, the first two states included."""
        recipe = "IdentifyByContent" if self.version in (None, "null") else "IdentifyByVersion"
        return ["IsVersioned?", recipe, *self.path.split()]

    @property
    def object_key(self) -> str:
        return f"orders/{self.name}.json"

    def errors(self, state: str) -> list[str]:
        """The names of the errors that the calls of a state end in."""
        found = [fault.error for fault in self.faults if fault.at == state and fault.error]
        if state == "Charge":
            found += [answer.error for answer in self.charge if isinstance(answer, Raises)]
        if self.meanwhile and self._is_refused(state):
            found.append(CONFLICT)
        if self._meets_a_record(state):
            found.append(CONFLICT)
        return found

    def _is_refused(self, state: str) -> bool:
        """Whether the change in the meantime makes the condition of this state's write fail."""
        assert self.meanwhile is not None
        first_write = {"Charge": ("MarkDone", "MarkDeclined", "MarkRejected")}
        return state in first_write.get(self.meanwhile.before, (self.meanwhile.before,))

    def _meets_a_record(self, state: str) -> bool:
        repeated = any(fault.at == state and fault.kind != "error" for fault in self.faults)
        return state == "Claim" and (self.record is not None or repeated)


def record(status: str = "in_progress", owner: str = OTHER, **more: Any) -> Json:
    """What the ledger holds of the order, apart from what the order itself says."""
    return {"status": status, "owner": owner, **more}


DONE = record("done", ME, charge_id="ch_1", amount_minor=1999, currency="EUR", order_id="A-1001")
DECLINED = record("declined", ME, reason="card_declined")
REJECTED = record("rejected", ME, reason="amount: expected a positive number, found -1")
OPEN = record(owner=ME)

DECLINE = Raises("PaymentDeclined", DECLINED["reason"])
REJECTION = Raises("OrderRejected", REJECTED["reason"])

ASK = "ReadRecord WhoHoldsTheClaim?"
QUEUE = "QueueFailure ChargeFailed"
DECLINING = "Claim Charge IsRefusalReadable? ReadRefusal WhichRefusal? MarkDeclined"
REJECTING = "Claim Charge IsRefusalReadable? ReadRefusal WhichRefusal? MarkRejected"

#: The names that the state Charge retries, and how often it calls in all.
RETRIED = (
    "ProviderUnavailable",
    "ProviderRateLimited",
    "KeyInUse",
    "OrderUnreadable",
    "Lambda.ClientExecutionTimeoutException",
    "Lambda.ServiceException",
    "Lambda.AWSLambdaException",
    "Lambda.SdkClientException",
    "Lambda.TooManyRequestsException",
    "Lambda.Unknown",
    "Sandbox.Timedout",
    "Runtime.ExitError",
    "States.Timeout",
)
CHARGE_ATTEMPTS = 9
LEDGER_ATTEMPTS = 7

#: Nothing of this gets better by asking again.
ALERTING = (
    "KeyReuseMismatch",
    "ProviderCredentialsRefused",
    "ProviderMisbehaved",
    "BugInDefinition",
    "SettingInvalid",
    "Runtime.ImportModuleError",
)


def failed(error: str, path: str, **more: Any) -> Scenario:
    """A run that ends open: queued, and failed with the error that it met."""
    return Scenario(path=f"{path} {QUEUE}", status="FAILED", error=error, queued=(error,), **more)


NEW = (
    Scenario(name="a new order is charged", path="Claim Charge MarkDone", after=DONE),
    Scenario(
        name="an order without a version is told by its content",
        version=None,
        path="Claim Charge MarkDone",
        after=DONE,
    ),
    Scenario(
        name="the version null is no version",
        version="null",
        path="Claim Charge MarkDone",
        after=DONE,
    ),
)

DUPLICATES = (
    Scenario(
        name="a duplicate stands down before another owner",
        record=record(),
        path=f"Claim {ASK} ClaimedElsewhere",
        after=record(),
    ),
    *(
        Scenario(
            name=f"a duplicate leaves what is {status} alone",
            record=record(status),
            path=f"Claim {ASK} AlreadySettled",
            after=record(status),
        )
        for status in ("done", "declined", "rejected")
    ),
    failed(
        "UnknownRecordStatus",
        f"Claim {ASK} ReportUnknownStatus",
        name="a status of somebody else is reported",
        record=record("refunded"),
        after=record("refunded"),
    ),
)

CLAIMING = (
    Scenario(
        name="a claim that the SDK sent twice is ours",
        faults=(Fault("Claim", "repeat"),),
        path=f"Claim {ASK} Charge MarkDone",
        after=DONE,
    ),
    Scenario(
        name="a claim whose answer was lost is ours",
        faults=(Fault("Claim", "lost", "States.Timeout"),),
        path=f"Claim {ASK} Charge MarkDone",
        attempts={"Claim": 2},
        after=DONE,
    ),
    Scenario(
        name="a claim is tried again after an error",
        faults=(Fault("Claim", "error", LEDGER_FAILS, times=3),),
        path="Claim Charge MarkDone",
        attempts={"Claim": 4},
        after=DONE,
    ),
    failed(
        LEDGER_FAILS,
        "Claim",
        name="a ledger that takes no claim ends in the queue",
        faults=(Fault("Claim", "error", LEDGER_FAILS, times=None),),
        attempts={"Claim": LEDGER_ATTEMPTS},
        after=None,
    ),
    Scenario(
        name="a record that vanished before it was read is claimed afresh",
        faults=(Fault("Claim", "error", CONFLICT),),
        path=f"Claim {ASK} Claim Charge MarkDone",
        attempts={"Claim": 2},
        after=DONE,
    ),
    *(
        Scenario(
            name=f"a read is tried again after {error}",
            record=record(),
            faults=(Fault("ReadRecord", "error", error),),
            path=f"Claim {ASK} ClaimedElsewhere",
            attempts={"ReadRecord": 2},
            after=record(),
        )
        for error in (LEDGER_FAILS, "States.Timeout")
    ),
    failed(
        LEDGER_FAILS,
        "Claim ReadRecord",
        name="a record that cannot be read ends in the queue",
        record=record(),
        faults=(Fault("ReadRecord", "error", LEDGER_FAILS, times=None),),
        attempts={"ReadRecord": LEDGER_ATTEMPTS},
        after=record(),
    ),
)

TAKEOVERS = (
    Scenario(
        name="a replay takes over from a dead owner",
        record=record(owner=DEAD),
        replay_of=DEAD,
        path=f"Claim {ASK} TakeOver Charge MarkDone",
        after=DONE,
    ),
    Scenario(
        name="a takeover that the SDK sent twice is one",
        record=record(owner=DEAD),
        replay_of=DEAD,
        faults=(Fault("TakeOver", "repeat"),),
        path=f"Claim {ASK} TakeOver Charge MarkDone",
        after=DONE,
    ),
    *(
        Scenario(
            name=f"a takeover is repeated after {error} took its answer",
            record=record(owner=DEAD),
            replay_of=DEAD,
            faults=(Fault("TakeOver", "lost", error),),
            path=f"Claim {ASK} TakeOver Charge MarkDone",
            attempts={"TakeOver": 2},
            after=DONE,
        )
        for error in (LEDGER_FAILS, "States.Timeout")
    ),
    Scenario(
        name="a second successor stands down",
        record=record(owner=DEAD),
        replay_of=DEAD,
        meanwhile=Meanwhile("TakeOver", {"owner": OTHER}),
        path=f"Claim {ASK} TakeOver {ASK} ClaimedElsewhere",
        after=record(),
    ),
    Scenario(
        name="an owner that settles after all is left alone",
        record=record(owner=DEAD),
        replay_of=DEAD,
        meanwhile=Meanwhile("TakeOver", {"status": "done", "charge_id": "ch_1"}),
        path=f"Claim {ASK} TakeOver {ASK} AlreadySettled",
        after=record("done", DEAD, charge_id="ch_1"),
    ),
    Scenario(
        name="a replay finds another owner than it was told",
        record=record(),
        replay_of=DEAD,
        path=f"Claim {ASK} ClaimedElsewhere",
        after=record(),
    ),
    Scenario(
        name="a replay of a vanished record claims it",
        replay_of=DEAD,
        path="Claim Charge MarkDone",
        after=DONE,
    ),
    failed(
        LEDGER_FAILS,
        f"Claim {ASK} TakeOver",
        name="a takeover that the ledger refuses ends in the queue",
        record=record(owner=DEAD),
        replay_of=DEAD,
        faults=(Fault("TakeOver", "error", LEDGER_FAILS, times=None),),
        attempts={"TakeOver": LEDGER_ATTEMPTS},
        after=record(owner=DEAD),
    ),
)

CHARGING = (
    *(
        Scenario(
            name=f"one {error} is forgotten",
            faults=(Fault("Charge", "error", error),),
            path="Claim Charge MarkDone",
            attempts={"Charge": 2},
            after=DONE,
        )
        for error in RETRIED
    ),
    *(
        failed(
            error,
            "Claim Charge",
            name=f"{error} for ever ends in the queue",
            faults=(Fault("Charge", "error", error, times=None),),
            attempts={"Charge": CHARGE_ATTEMPTS},
            after=OPEN,
        )
        for error in RETRIED
    ),
    Scenario(
        name="an exception of the function is retried by its class",
        charge=(Raises("ProviderUnavailable"), Raises("KeyInUse"), CHARGE),
        path="Claim Charge MarkDone",
        attempts={"Charge": 3},
        after=DONE,
    ),
    Scenario(
        name="a charge whose answer was lost is asked for again",
        faults=(Fault("Charge", "lost", "Lambda.SdkClientException"),),
        path="Claim Charge MarkDone",
        attempts={"Charge": 2},
        after=DONE,
    ),
    Scenario(
        name="a function that was called twice has charged",
        faults=(Fault("Charge", "repeat"),),
        path="Claim Charge MarkDone",
        after=DONE,
    ),
    *(
        failed(
            error,
            "Claim Charge",
            name=f"{error} is queued at once",
            charge=(Raises(error),),
            after=OPEN,
        )
        for error in ALERTING
    ),
    failed(
        "ProviderMisbehaved",
        "Claim Charge",
        name="a failure after a retry is queued",
        charge=(Raises("ProviderUnavailable"), Raises("ProviderMisbehaved")),
        attempts={"Charge": 2},
        after=OPEN,
    ),
)

SETTLING = (
    *(
        Scenario(
            name=f"settling is repeated after {error} took its answer",
            faults=(Fault("MarkDone", "lost", error),),
            path="Claim Charge MarkDone",
            attempts={"MarkDone": 2},
            after=DONE,
        )
        for error in (LEDGER_FAILS, "States.Timeout")
    ),
    Scenario(
        name="settling that the SDK sent twice is done once",
        faults=(Fault("MarkDone", "repeat"),),
        path="Claim Charge MarkDone",
        after=DONE,
    ),
    failed(
        LEDGER_FAILS,
        "Claim Charge MarkDone",
        name="a charge that cannot be recorded ends in the queue",
        faults=(Fault("MarkDone", "error", LEDGER_FAILS, times=None),),
        attempts={"MarkDone": LEDGER_ATTEMPTS},
        after=OPEN,
    ),
    Scenario(
        name="a deposed owner leaves cleanly",
        meanwhile=Meanwhile("Charge", {"owner": OTHER}),
        path=f"Claim Charge MarkDone {ASK} ClaimedElsewhere",
        after=record(),
    ),
    Scenario(
        name="a deposed owner finds its charge recorded by the successor",
        meanwhile=Meanwhile("Charge", {"owner": OTHER, "status": "done", "charge_id": "ch_1"}),
        path=f"Claim Charge MarkDone {ASK} AlreadySettled",
        after=record("done", charge_id="ch_1"),
    ),
    *(
        failed(
            "ConflictingCharge",
            f"Claim Charge MarkDone {ASK} ReportConflictingCharge",
            name=f"a charge beside {what} is reported",
            meanwhile=Meanwhile("Charge", {"owner": OTHER, **changes}),
            after=record(**changes),
        )
        for what, changes in {
            "another charge": {"status": "done", "charge_id": "ch_2"},
            "a decline": {"status": "declined"},
            "a rejection": {"status": "rejected"},
        }.items()
    ),
    Scenario(
        name="a record that vanished under its owner is made again",
        meanwhile=Meanwhile("Charge", None),
        path=f"Claim Charge MarkDone {ASK} Claim Charge MarkDone",
        after=DONE,
    ),
)

REFUSALS = (
    Scenario(
        name="a decline is final",
        charge=(DECLINE,),
        path=f"{DECLINING} Declined",
        after=DECLINED,
    ),
    failed(
        "OrderRejected",
        REJECTING,
        name="a rejected order is final and seen by a person",
        charge=(REJECTION,),
        after=REJECTED,
    ),
    Scenario(
        name="a decline in plain text is quoted",
        faults=(Fault("Charge", "error", "PaymentDeclined"),),
        path=f"{DECLINING} Declined".replace("ReadRefusal", "QuoteRefusal"),
        after=record("declined", ME),
    ),
    failed(
        "OrderRejected",
        REJECTING.replace("ReadRefusal", "QuoteRefusal"),
        name="a rejection in plain text is quoted",
        faults=(Fault("Charge", "error", "OrderRejected"),),
        after=record("rejected", ME),
    ),
    *(
        scenario
        for mark, refusal, path, after in (
            ("MarkDeclined", DECLINE, DECLINING, DECLINED),
            ("MarkRejected", REJECTION, REJECTING, REJECTED),
        )
        for scenario in (
            *(
                Scenario(
                    name=f"{mark} is repeated after {error} took its answer",
                    charge=(refusal,),
                    faults=(Fault(mark, "lost", error),),
                    path=f"{path} {'Declined' if refusal is DECLINE else QUEUE}",
                    status="SUCCEEDED" if refusal is DECLINE else "FAILED",
                    error=None if refusal is DECLINE else REJECTION.error,
                    attempts={mark: 2},
                    after=after,
                    queued=() if refusal is DECLINE else (REJECTION.error,),
                )
                for error in (LEDGER_FAILS, "States.Timeout")
            ),
            failed(
                LEDGER_FAILS,
                path,
                name=f"{mark} that the ledger refuses ends in the queue",
                charge=(refusal,),
                faults=(Fault(mark, "error", LEDGER_FAILS, times=None),),
                attempts={mark: LEDGER_ATTEMPTS},
                after=OPEN,
            ),
            Scenario(
                name=f"{mark} by a deposed owner is left to its successor",
                charge=(refusal,),
                meanwhile=Meanwhile("Charge", {"owner": OTHER}),
                path=f"{path} {ASK} ClaimedElsewhere",
                after=record(),
            ),
            Scenario(
                name=f"{mark} after the successor has settled is left alone",
                charge=(refusal,),
                meanwhile=Meanwhile("Charge", {"owner": OTHER, "status": "done"}),
                path=f"{path} {ASK} AlreadySettled",
                after=record("done"),
            ),
        )
    ),
)

QUEUEING = (
    failed(
        "ProviderMisbehaved",
        "Claim Charge",
        name="a message is sent again after an error",
        charge=(Raises("ProviderMisbehaved"),),
        faults=(Fault("QueueFailure", "error", QUEUE_FAILS),),
        attempts={"QueueFailure": 2},
        after=OPEN,
    ),
    Scenario(
        name="a message whose answer was lost is sent twice",
        charge=(Raises("ProviderMisbehaved"),),
        faults=(Fault("QueueFailure", "lost", "States.Timeout"),),
        path=f"Claim Charge {QUEUE}",
        status="FAILED",
        error="ProviderMisbehaved",
        attempts={"QueueFailure": 2},
        after=OPEN,
        queued=("ProviderMisbehaved", "ProviderMisbehaved"),
    ),
    Scenario(
        name="a queue that takes nothing has a name of its own",
        charge=(Raises("ProviderMisbehaved"),),
        faults=(Fault("QueueFailure", "error", QUEUE_FAILS, times=None),),
        path="Claim Charge QueueFailure FailureQueueUnreachable",
        status="FAILED",
        error="FailureQueueUnreachable",
        attempts={"QueueFailure": LEDGER_ATTEMPTS},
        after=OPEN,
    ),
)

SCENARIOS = (
    *NEW,
    *DUPLICATES,
    *CLAIMING,
    *TAKEOVERS,
    *CHARGING,
    *SETTLING,
    *REFUSALS,
    *QUEUEING,
)

#: Answers that lack a field: no path of the definition leads on from there.
BROKEN = tuple(
    Scenario(
        name=f"no {missing}",
        charge=({name: value for name, value in CHARGE.items() if name != missing},),
        path="Claim Charge",
        status="FAILED",
        error="States.Runtime",
        after=OPEN,
    )
    for missing in CHARGE
)
