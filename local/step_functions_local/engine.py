"""Step Functions Local as the emulator talks to it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from botocore import xform_name
from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError

from local import stack

Json = dict[str, Any]

#: Statuses that come with an error.
_BAD_ENDS = {"FAILED", "TIMED_OUT", "ABORTED"}


class EngineAway(Exception):
    """Step Functions Local did not answer: whether it has done what was asked is unknown."""


@dataclass(frozen=True)
class Machine:
    """A state machine as CloudFormation made it, substitutions filled in."""

    name: str
    definition: str
    role_arn: str


def code(error: ClientError) -> str:
    """The name of an error that AWS's API answers with."""
    return str(error.response["Error"]["Code"])


class Engine:
    """Calls to Step Functions Local, which learns of a state machine before it is asked of it.

    `machine` gives a state machine by its ARN; it raises LookupError when there is none.
    """

    def __init__(self, url: str, region: str, machine: Callable[[str], Machine]) -> None:
        self.url = url
        # One attempt: whoever asks knows better whether to ask again.
        self._client = stack.client("stepfunctions", region, url, attempts=1)
        self._machine = machine
        self._known: dict[str, Machine] = {}
        self._lock = threading.Lock()

    def call(self, action: str, parameters: Json) -> Json:
        """One action of the API, for example ("DescribeExecution", {"executionArn": …}).

        Parameters and answer are JSON as on the wire: times are epoch seconds. Raises ClientError
        with what Step Functions Local answers, `EngineAway` when it does not.
        """
        try:
            answer = getattr(self._client, xform_name(action))(**parameters)
        except ParamValidationError as error:
            refusal = {"Code": "ValidationException", "Message": str(error)}
            answered = {"HTTPStatusCode": 400}
            raise ClientError(
                {"Error": refusal, "ResponseMetadata": answered},  # type: ignore[typeddict-item]
                action,
            ) from error
        except BotoCoreError as error:
            raise EngineAway(f"Step Functions Local does not answer: {error}") from error
        del answer["ResponseMetadata"]
        plain: Json = json.loads(json.dumps(answer, default=lambda time: time.timestamp()))
        return plain

    def call_on_machine(self, machine_arn: str, action: str, parameters: Json) -> Json:
        """An action on a state machine, which is brought there first: new, changed or forgotten.

        Step Functions Local keeps everything in memory: after a restart it knows no state
        machine. Raises LookupError when the emulator has none either.
        """
        self._bring(machine_arn)
        try:
            return self.call(action, parameters)
        except ClientError as error:
            if code(error) != "StateMachineDoesNotExist":
                raise
        with self._lock:
            self._known.pop(machine_arn, None)
        self._bring(machine_arn)
        return self.call(action, parameters)

    def describe(self, execution_arn: str) -> Json:
        """DescribeExecution, with the `error` and `cause` that old versions leave out."""
        description = self.call("DescribeExecution", {"executionArn": execution_arn})
        if description["status"] in _BAD_ENDS and "error" not in description:
            history = {"executionArn": execution_arn, "reverseOrder": True, "maxResults": 1}
            for event in self.call("GetExecutionHistory", history)["events"]:
                for name, details in event.items():
                    if name.endswith("EventDetails"):
                        description |= {
                            key: details[key] for key in ("error", "cause") if details.get(key)
                        }
        return description

    def _bring(self, arn: str) -> None:
        machine = self._machine(arn)
        with self._lock:
            if self._known.get(arn) == machine:
                return
            what = {"definition": machine.definition, "roleArn": machine.role_arn}
            # In this order: CreateStateMachine may answer for one that is there, and leave it.
            try:
                self.call("UpdateStateMachine", {"stateMachineArn": arn, **what})
            except ClientError as error:
                if code(error) != "StateMachineDoesNotExist":
                    raise
                self.call("CreateStateMachine", {"name": machine.name, **what})
            self._known[arn] = machine
