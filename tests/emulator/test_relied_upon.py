"""What MiniStack does as AWS does, mends or not, and this project stands on."""

import base64
import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from local.emulator.mends import language
from local.waiting import wait_for
from tests.emulator.bench import WAIT_SECONDS, Bench, unique
from tests.emulator.differences import choosing, invoke_state, passing

# One worker starts the emulators, not each of them.
pytestmark = pytest.mark.xdist_group("emulator")

ORDERS = {"detail": {"object": {"key": [{"wildcard": "orders/*.json"}]}}}


@pytest.mark.parametrize(
    ("key", "matches"),
    [
        ("orders/1.json", True),
        ("orders/2026/11/1.json", True),
        ("orders/a b+c/ü.json", True),
        ("orders/.json", True),
        ("orders/a*b?[c].json", True),
        ("orders/", False),
        ("orders/photo.png", False),
        ("orders/1.json.bak", False),
        ("orders/1.JSON", False),
        ("Orders/1.json", False),
        ("other/orders/1.json", False),
    ],
)
def test_the_wildcard_matches_order_files_only(mended: Bench, key: str, matches: bool) -> None:
    event = {
        "id": "1",
        "account": "000000000000",
        "source": "aws.s3",
        "time": "2026-01-01T00:00:00Z",
        "region": "us-east-1",
        "resources": [],
        "detail-type": "Object Created",
        "detail": {"object": {"key": key}},
    }

    answer = mended.client("events").test_event_pattern(
        EventPattern=json.dumps(ORDERS), Event=json.dumps(event)
    )

    assert answer["Result"] is matches


@pytest.mark.parametrize(
    ("operator", "key", "matches"),
    [
        ({"prefix": "orders/"}, "orders/1.json", True),
        ({"suffix": ".json"}, "orders/1.png", False),
        ({"anything-but": {"wildcard": "orders/*.json"}}, "orders/1.json", False),
        ({"anything-but": {"suffix": ".json"}}, "orders/1.png", True),
    ],
)
def test_other_operators_match_keys(
    mended: Bench, operator: dict[str, Any], key: str, matches: bool
) -> None:
    url, queue = mended.queue()
    source = unique("source")
    mended.rule({"source": [source], "detail": {"key": [operator]}}, Arn=queue)
    mended.rule({"source": [source]}, Arn=queue)

    mended.put_event(source, {"key": key})

    assert len(mended.await_messages(url) + mended.receive(url)) == (2 if matches else 1)


def test_status_events_tell_how_every_execution_ends(mended: Bench) -> None:
    url, queue = mended.queue()
    machines = {
        "SUCCEEDED": mended.machine({"Pass": passing()}),
        "FAILED": mended.machine({"Fail": {"Type": "Fail", "Error": "Bad", "Cause": "why"}}),
        "TIMED_OUT": mended.machine(
            {"Wait": {"Type": "Wait", "Seconds": 9999, "End": True}}, TimeoutSeconds=1
        ),
        "ABORTED": mended.machine({"Wait": {"Type": "Wait", "Seconds": 9999, "End": True}}),
    }
    pattern = {"source": ["aws.states"], "detail": {"stateMachineArn": list(machines.values())}}
    mended.rule(pattern, Arn=queue)

    executions = {status: mended.start(machine, {"a": 1}) for status, machine in machines.items()}
    mended.client("stepfunctions").stop_execution(executionArn=executions["ABORTED"])

    events = [json.loads(message["Body"]) for message in mended.await_messages(url, 8)]
    details = {event["detail"]["status"]: event["detail"] for event in events}
    assert details.keys() == {"RUNNING", *machines}
    for status, execution in executions.items():
        assert details[status]["executionArn"] == execution
        assert json.loads(details[status]["input"]) == {"a": 1}
        assert details[status]["stopDate"] >= details[status]["startDate"] > 1_700_000_000_000
    assert (details["FAILED"]["error"], details["FAILED"]["cause"]) == ("Bad", "why")
    assert json.loads(details["SUCCEEDED"]["output"]) == {"a": 1}


def test_the_history_tells_path_attempts_and_errors(mended: Bench) -> None:
    function = mended.function("raise ConnectionError('down')")
    task = invoke_state(
        function,
        Retry=[{"ErrorEquals": ["ConnectionError"], "IntervalSeconds": 1, "MaxAttempts": 1}],
        Catch=[{"ErrorEquals": ["States.ALL"], "ResultPath": "$.error", "Next": "GiveUp"}],
    )

    run = mended.run({"Invoke": task, "GiveUp": {"Type": "Fail", "Error": "Gone"}})

    path = [
        event["stateEnteredEventDetails"]["name"]
        for event in run.events
        if event["type"].endswith("StateEntered")
    ]
    failures = [
        event["taskFailedEventDetails"]["error"]
        for event in run.events
        if event["type"] == "TaskFailed"
    ]
    assert (path, failures, run.error) == (["Invoke", "GiveUp"], ["ConnectionError"] * 2, "Gone")
    assert [event["id"] for event in run.events] == list(range(1, len(run.events) + 1))


def test_the_history_comes_in_pages_and_backwards(mended: Bench) -> None:
    run = mended.run({"A": {"Type": "Pass", "Next": "B"}, "B": {"Type": "Succeed"}})
    client = mended.client("stepfunctions")

    first = client.get_execution_history(executionArn=run.arn, maxResults=2)
    second = client.get_execution_history(
        executionArn=run.arn, maxResults=2, nextToken=first["nextToken"]
    )
    last = client.get_execution_history(executionArn=run.arn, maxResults=1, reverseOrder=True)

    assert [event["id"] for event in first["events"] + second["events"]] == [1, 2, 3, 4]
    assert last["events"][0]["type"] == "ExecutionSucceeded"


def test_a_state_machine_calls_the_version_that_it_names(mended: Bench) -> None:
    function = mended.function("return [1, context.function_version]")
    client = mended.client("lambda")
    version = client.publish_version(FunctionName=function)["FunctionArn"]
    client.update_function_configuration(FunctionName=function, Environment={"Variables": {}})

    run = mended.run({"Invoke": invoke_state(version)})

    assert (run.output["Payload"], run.output["ExecutedVersion"]) == ([1, "1"], "1")


def test_a_function_calls_the_emulator_whatever_its_settings_say(mended: Bench) -> None:
    function = mended.function(
        "return [os.environ['AWS_ENDPOINT_URL'], os.environ.get('HOME')]",
        Environment={"Variables": {"AWS_ENDPOINT_URL": "https://example.com"}},
    )

    assert mended.invoke(function) == [mended.server.url, None]


def test_an_error_of_the_ledger_keeps_its_name(mended: Bench) -> None:
    get = {
        "Type": "Task",
        "Resource": "arn:aws:states:::dynamodb:getItem",
        "Parameters": {"TableName": "nobody", "Key": {"pk": {"S": "x"}}},
        "End": True,
    }

    assert mended.run({"Read": get}).error == "DynamoDB.ResourceNotFoundException"


def test_a_projection_that_selects_nothing_is_an_empty_list(mended: Bench) -> None:
    state = passing(Parameters={"found.$": "$.items[*].id"})

    assert mended.run({"Pass": state}, {"items": [{"x": 1}]}).output == {"found": []}


@pytest.mark.parametrize(
    ("rule", "holds"),
    [
        ({"Variable": "$.key", "StringMatches": "orders/*.json"}, True),
        ({"Variable": "$.key", "StringMatches": "orders/*.png"}, False),
        ({"Variable": "$.n", "NumericGreaterThanEquals": 5}, True),
        ({"Variable": "$.n", "StringEquals": "5"}, False),
        ({"Variable": "$.none", "IsPresent": False}, True),
        ({"Variable": "$.null", "IsNull": True}, True),
        ({"Variable": "$.key", "IsTimestamp": False}, True),
        ({"Not": {"Variable": "$.yes", "BooleanEquals": True}}, False),
        (
            {
                "And": [
                    {"Variable": "$.none", "IsPresent": True},
                    {"Variable": "$.none", "StringEquals": "never looked at"},
                ]
            },
            False,
        ),
        ({"Variable": "$['a-b'].c", "IsPresent": True}, True),
        ({"Variable": "$$.Execution.Name", "IsPresent": True}, True),
    ],
)
def test_choice_rules(mended: Bench, rule: dict[str, Any], holds: bool) -> None:
    given = {"key": "orders/1.json", "n": 5, "null": None, "yes": True, "a-b": {"c": 1}}

    assert mended.run(choosing(rule), given).output is holds


def test_waits_grow_to_the_ceiling_and_jitter_below_it() -> None:
    retrier = {"IntervalSeconds": 5, "BackoffRate": 2.0, "MaxDelaySeconds": 180}

    waits = [language.retry_wait_seconds(retrier, made) for made in range(8)]
    random_waits = [
        language.retry_wait_seconds({**retrier, "JitterStrategy": "FULL"}, 7) for _ in range(50)
    ]

    assert waits == [5, 10, 20, 40, 80, 160, 180, 180]
    assert 0 <= min(random_waits) < max(random_waits) <= 180
    assert len(set(random_waits)) > 1


def test_a_new_execution_of_a_closed_name_is_refused(mended: Bench) -> None:
    machine = mended.machine({"Pass": passing()})
    client = mended.client("stepfunctions")
    mended.finish(mended.start(machine, {"a": 1}, name="one"))

    with pytest.raises(client.exceptions.ExecutionAlreadyExists):
        mended.start(machine, {"a": 1}, name="one")


def test_an_execution_with_another_input_is_another_execution(mended: Bench) -> None:
    machine = mended.machine({"Wait": {"Type": "Wait", "Seconds": 9999, "End": True}})
    client = mended.client("stepfunctions")
    mended.start(machine, {"a": 1}, name="one")

    with pytest.raises(client.exceptions.ExecutionAlreadyExists):
        mended.start(machine, {"a": 2}, name="one")


def test_a_stop_ends_a_long_wait_at_once(mended: Bench) -> None:
    arn = mended.start(
        mended.machine(
            {"Wait": {"Type": "Wait", "Seconds": 9999, "Next": "After"}, "After": passing()}
        )
    )
    mended.wait_for_event(arn, "WaitStateEntered")

    mended.client("stepfunctions").stop_execution(executionArn=arn, error="E", cause="C")

    run = mended.finish(arn)
    assert (run.status, run.error) == ("ABORTED", "E")
    assert run.types() == ["ExecutionStarted", "WaitStateEntered", "ExecutionAborted"]


def test_an_asynchronous_failure_reaches_its_destination(mended: Bench) -> None:
    url, queue = mended.queue()
    function = mended.function("raise ValueError('no')")
    mended.client("lambda").put_function_event_invoke_config(
        FunctionName=function,
        MaximumRetryAttempts=1,
        DestinationConfig={"OnFailure": {"Destination": queue}},
    )

    mended.client("lambda").invoke(
        FunctionName=function, InvocationType="Event", Payload=b'{"order": 1}'
    )

    (message,) = wait_for(lambda: mended.receive(url), WAIT_SECONDS)
    failure = json.loads(message["Body"])
    assert failure["requestPayload"] == {"order": 1}
    assert failure["responsePayload"]["errorType"] == "ValueError"


@pytest.mark.parametrize("end", ["\n", ""])
def test_an_invocation_logs_its_last_words_and_nobody_elses(mended: Bench, end: str) -> None:
    function = mended.function(f"print('first'); print(event['word'], end={end!r})")
    client = mended.client("lambda")

    def logged(word: str) -> str:
        answer = client.invoke(
            FunctionName=function, Payload=json.dumps({"word": word}), LogType="Tail"
        )
        return base64.b64decode(answer["LogResult"]).decode()

    words = [f"word-{number}" for number in range(100)]
    with ThreadPoolExecutor(8) as pool:  # a busy machine: whoever only waits a moment is late
        logs = list(pool.map(logged, words))

    assert [re.findall(r"first|word-\d+", log) for log in logs] == [["first", one] for one in words]


def test_a_crash_logs_its_last_words(mended: Bench) -> None:
    function = mended.function("print('last words', end=''); os._exit(1)")

    answer = mended.client("lambda").invoke(FunctionName=function, LogType="Tail")

    assert answer["FunctionError"] == "Unhandled"
    assert "last words" in base64.b64decode(answer["LogResult"]).decode()
