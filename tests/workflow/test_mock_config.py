"""`statemachine/mock_config.json`: the format's rules, and every case run with nothing behind it.

The file is in the format of Step Functions Local. A case is chosen by starting the execution on
`<state machine ARN>#<case>`, and an execution bears its case's name: the mocked ledger record of
"OwnWrite" names that execution as its owner.

Source: https://docs.aws.amazon.com/step-functions/latest/dg/sfn-local-mock-cfg-file.html
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import boto3
import pytest
from botocore.config import Config

from local.definition import fill, load_definition, load_template
from local.emulator.server import Server
from local.paths import PROJECT
from local.s3_event import object_created
from local.waiting import wait_for
from tests.workflow.walking import Walk, walk

pytestmark = pytest.mark.xdist_group("workflow-ministack")

Json = dict[str, Any]

MOCK_CONFIG = PROJECT / "statemachine" / "mock_config.json"
MACHINE = "ChargeOrder"
#: Step Functions Local's default account, which the mocked owners are of.
ACCOUNT = "123456789012"
EXECUTIONS = f"arn:aws:states:us-east-1:{ACCOUNT}:execution:{MACHINE}"

CONFIG: Json = json.loads(MOCK_CONFIG.read_text())
CASES: Json = CONFIG["StateMachines"][MACHINE]["TestCases"]
RESPONSES: Json = CONFIG["MockedResponses"]
STATES: Json = load_definition()["States"]

ASK = "ReadRecord WhoHoldsTheClaim?"
QUEUE = "QueueFailure ChargeFailed"
REFUSED = "Claim Charge IsRefusalReadable? ReadRefusal WhichRefusal?"
LEDGER_FAILS = "DynamoDB.AmazonDynamoDBException"


@dataclass(frozen=True)
class Expected:
    """`path` after the first two states; `error` None: it succeeds. `replays` a dead owner's."""

    path: str
    error: str | None = None
    versioned: bool = True
    replays: bool = False

    @property
    def states(self) -> list[str]:
        recipe = "IdentifyByVersion" if self.versioned else "IdentifyByContent"
        return ["IsVersioned?", recipe, *self.path.split()]


EXPECTED = {
    "HappyPath": Expected("Claim Charge MarkDone"),
    "UnversionedBucket": Expected("Claim Charge MarkDone", versioned=False),
    "LateDuplicate": Expected(f"Claim {ASK} AlreadySettled"),
    "DuplicateOfADecline": Expected(f"Claim {ASK} AlreadySettled"),
    "DuplicateOfARejection": Expected(f"Claim {ASK} AlreadySettled"),
    "DuplicateBesideItsOwner": Expected(f"Claim {ASK} ClaimedElsewhere"),
    "OwnWrite": Expected(f"Claim {ASK} Charge MarkDone"),
    "VanishedRecord": Expected(f"Claim {ASK} Claim Charge MarkDone"),
    "UnknownStatus": Expected(f"Claim {ASK} ReportUnknownStatus {QUEUE}", "UnknownRecordStatus"),
    "ClaimFails": Expected(f"Claim {QUEUE}", LEDGER_FAILS),
    "ReadFails": Expected(f"Claim ReadRecord {QUEUE}", LEDGER_FAILS),
    "TakeOver": Expected(f"Claim {ASK} TakeOver Charge MarkDone", replays=True),
    "TakeOverLost": Expected(f"Claim {ASK} TakeOver {ASK} ClaimedElsewhere", replays=True),
    "TakeOverFails": Expected(f"Claim {ASK} TakeOver {QUEUE}", LEDGER_FAILS, replays=True),
    "RetriedCharge": Expected("Claim Charge MarkDone"),
    "ProviderDead": Expected(f"Claim Charge {QUEUE}", "ProviderUnavailable"),
    "ProviderMisbehaved": Expected(f"Claim Charge {QUEUE}", "ProviderMisbehaved"),
    "DeposedOwner": Expected(f"Claim Charge MarkDone {ASK} ClaimedElsewhere"),
    "SettledBySuccessor": Expected(f"Claim Charge MarkDone {ASK} AlreadySettled"),
    "ConflictingCharge": Expected(
        f"Claim Charge MarkDone {ASK} ReportConflictingCharge {QUEUE}", "ConflictingCharge"
    ),
    "MarkDoneFails": Expected(f"Claim Charge MarkDone {QUEUE}", LEDGER_FAILS),
    "Declined": Expected(f"{REFUSED} MarkDeclined Declined"),
    "DeclinedInPlainText": Expected(
        f"{REFUSED} MarkDeclined Declined".replace("ReadRefusal", "QuoteRefusal")
    ),
    "MarkDeclinedConflict": Expected(f"{REFUSED} MarkDeclined {ASK} ClaimedElsewhere"),
    "MarkDeclinedFails": Expected(f"{REFUSED} MarkDeclined {QUEUE}", LEDGER_FAILS),
    "Rejected": Expected(f"{REFUSED} MarkRejected {QUEUE}", "OrderRejected"),
    "MarkRejectedConflict": Expected(f"{REFUSED} MarkRejected {ASK} ClaimedElsewhere"),
    "MarkRejectedFails": Expected(f"{REFUSED} MarkRejected {QUEUE}", LEDGER_FAILS),
    "QueueUnreachable": Expected(
        "Claim Charge QueueFailure FailureQueueUnreachable", "FailureQueueUnreachable"
    ),
}


def targets(state: Json) -> set[str]:
    """Where a state can lead: its Next, its Catches, its branches."""
    branches = [state, *state.get("Catch", []), *state.get("Choices", [])]
    return {branch["Next"] for branch in branches if "Next" in branch} | (
        {state["Default"]} if "Default" in state else set()
    )


def attempts_of(response: Json) -> list[int]:
    """The attempts that a response has an answer for, in the file's order."""
    found: list[int] = []
    for attempts in response:
        first, _, last = attempts.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


# ---------------------------------------------------------------- the format


def test_the_file_has_the_two_parts_of_the_format() -> None:
    assert set(CONFIG) == {"StateMachines", "MockedResponses"}
    assert set(CONFIG["StateMachines"]) == {MACHINE}


@pytest.mark.parametrize("case", CASES)
def test_a_case_mocks_states_that_call_somebody(case: str) -> None:
    assert re.fullmatch(r"[A-Za-z]{1,80}", case)
    assert {STATES[state]["Type"] for state in CASES[case]} == {"Task"}
    assert set(CASES[case].values()) <= set(RESPONSES)


@pytest.mark.parametrize("name", RESPONSES)
def test_a_response_has_one_answer_for_each_attempt(name: str) -> None:
    response = RESPONSES[name]

    assert all(re.fullmatch(r"\d+|\d+-\d+", attempts) for attempts in response)
    assert attempts_of(response) == list(range(len(attempts_of(response))))
    for answer in response.values():
        assert len(answer) == 1
        assert isinstance(answer.get("Return", {}), dict)
        assert set(answer.get("Throw", {"Error": "", "Cause": ""})) == {"Error", "Cause"}


def test_no_response_is_left_over() -> None:
    assert {name for case in CASES.values() for name in case.values()} == set(RESPONSES)


# ---------------------------------------------------------------- every path


def test_every_case_is_expected_to_do_something() -> None:
    assert list(CASES) == list(EXPECTED)


@pytest.mark.parametrize("case", CASES)
def test_a_case_mocks_every_call_of_its_path(case: str) -> None:
    """Else a run with nothing behind it would reach out for AWS."""
    called = {state for state in EXPECTED[case].states if STATES[state]["Type"] == "Task"}

    assert set(CASES[case]) == called


def test_every_step_of_the_definition_has_a_case() -> None:
    steps = {step for case in EXPECTED.values() for step in itertools.pairwise(case.states)}

    assert steps == {(name, to) for name, state in STATES.items() for to in targets(state)}


def filled() -> Json:
    """The definition with tokens that stand for nothing."""
    absent = dict.fromkeys(("LedgerTable", "FailureQueue", "ChargeFunction.Version"), "absent")
    return fill(load_definition(), load_template(), absent)


def given(case: str) -> Json:
    """The input of a case's execution."""
    expected = EXPECTED[case]
    event = object_created(
        bucket="orders",
        key="orders/a.json",
        version_id="v1" if expected.versioned else None,
        etag="e",
        sequencer="1",
    )
    return event | ({"replay": {"owner": f"{EXECUTIONS}:Dead"}} if expected.replays else {})


def answers_of(case: str) -> dict[str, list[Json]]:
    """What each call of each Task state comes to, one entry a call."""
    return {
        state: [
            answer
            for attempts, answer in RESPONSES[name].items()
            for _ in attempts_of({attempts: answer})
        ]
        for state, name in CASES[case].items()
    }


@pytest.fixture(scope="module")
def executions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A Step Functions client on an emulator that has mocks, the machine, and nothing else."""
    log = tmp_path_factory.mktemp("mocked") / "emulator.log"
    flags = ("--wait-scale", "0", "--mock-config", str(MOCK_CONFIG))
    with Server.start(log, *flags) as server:
        client = boto3.client(
            "stepfunctions",
            endpoint_url=server.url,
            region_name="us-east-1",
            aws_access_key_id=ACCOUNT,  # the emulator takes it for the account
            aws_secret_access_key="any",
            config=Config(inject_host_prefix=False),  # TestState's is "sync-"
        )
        client.create_state_machine(
            name=MACHINE,
            roleArn=f"arn:aws:iam::{ACCOUNT}:role/any",
            definition=json.dumps(filled()),
        )
        yield client


@pytest.mark.parametrize("case", CASES)
def test_a_case_takes_its_path(executions: Any, case: str) -> None:
    expected = EXPECTED[case]

    started = executions.start_execution(
        stateMachineArn=f"{EXECUTIONS.replace(':execution:', ':stateMachine:')}#{case}",
        name=case,
        input=json.dumps(given(case)),
    )
    arn = started["executionArn"]
    wait_for(lambda: executions.describe_execution(executionArn=arn)["status"] != "RUNNING", 20)

    assert arn == f"{EXECUTIONS}:{case}"
    assert executions.describe_execution(executionArn=arn).get("error") == expected.error
    history = executions.get_execution_history(executionArn=arn, maxResults=1000)["events"]
    entered = [event.get("stateEnteredEventDetails") for event in history]
    assert [details["name"] for details in entered if details] == expected.states
    calls = [event for event in history if event["type"] == "TaskScheduled"]
    # Each mocked attempt was made, and no other.
    assert len(calls) == sum(len(attempts_of(RESPONSES[name])) for name in CASES[case].values())


@pytest.mark.parametrize(
    "case",
    # The emulator's TestState catches an error before it asks Retry: these two tell the difference.
    [case for case in CASES if case not in ("RetriedCharge", "TakeOver")],
)
def test_a_case_is_walked_through_state_by_state(executions: Any, case: str) -> None:
    """What `pytest tests/workflow/aws --aws` does on AWS."""
    found = walk(executions, filled(), answers_of(case), given(case), f"{EXECUTIONS}:{case}")

    assert found == Walk(EXPECTED[case].states, EXPECTED[case].error)
