"""Runs the real code of one actor up to the next question that it asks the outside world.

An execution of the state machine, a replay and a pass of the reconciler are deterministic: what
they ask next depends only on their input and on the answers so far. So an actor is told the
answers that it has had, and runs from its beginning to the next question, or to its end. Nothing
else is kept of it, which is what lets `explorer` be at any number of places at once.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, Self
from unittest.mock import patch

import time_machine
import urllib3
from botocore.exceptions import ClientError
from charge.handler import Function
from charge.order_store import S3OrderStore
from reconciler.auditing import Audit, report
from reconciler.aws import DynamoLedger, S3Bucket, StepFunctions
from reconciler.provider_client import ProviderClient

from local import orders as local_orders
from local import replay as replaying
from local.chaos.faults import Died
from local.chaos.moto_inline import forget_executions, in_this_thread
from local.inprocess import Call, InProcess, TaskFailure
from local.inprocess.provider import API_KEY, URL
from local.s3_event import object_created

Json = dict[str, Any]

NOW = datetime(2027, 1, 1, 12, tzinfo=UTC)
BODY = json.dumps(
    {
        "order_id": "A-1",
        "customer": "cus_42",
        "amount": "19.99",
        "currency": "EUR",
        "payment_method": "tok_visa",
    }
).encode()
KEY = "orders/1.json"

#: Where the answers of these services never change while an order is worked on.
_IMMUTABLE = {"list_object_versions", "head_object", "get_object", "describe_table"}


@dataclass(frozen=True)
class Question:
    """What an actor asks: `service` is ledger, queue, provider or executions.

    `text` is the whole question as JSON, the same text for the same question.
    """

    service: str
    action: str
    text: str

    @property
    def parameters(self) -> Json:
        return dict(json.loads(self.text))


@dataclass(frozen=True)
class End:
    """How an actor ended. Of an execution: status, error and path; of others what they report."""

    status: str
    error: str | None = None
    path: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    """What an actor was told: a result, an error by its name, or that its process dies."""

    result: str = "null"
    error: str | None = None
    died: bool = False
    unheard: bool = False


class _Asked(BaseException):
    def __init__(self, question: Question) -> None:
        super().__init__(question)
        self.question = question


class Scripts:
    """Runs actors. Use it as a context manager, one at a time in a process.

    `definition` replaces the one in the file, tokens included: a test breaks the product with it.
    `age` is how old the order is.
    """

    def __init__(
        self,
        *,
        definition: Json | None = None,
        age: timedelta = timedelta(minutes=1),
    ) -> None:
        self._pipeline = InProcess(charge=self._charge, around=self._around, definition=definition)
        self._age = age
        self._answers: Sequence[Answer] = ()
        self._position = 0
        self._asked: _Asked | None = None
        self._exit = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as opened:
            clock = opened.enter_context(time_machine.travel(NOW - self._age, tick=False))
            opened.enter_context(self._pipeline)
            opened.enter_context(in_this_thread())
            opened.enter_context(contextlib.redirect_stdout(io.StringIO()))
            opened.enter_context(patch.object(local_orders, "wait_for_end", self._wait_for_end))
            self.event = self._put_order()
            clock.move_to(NOW)
            self._function = self._make_function()
            self._exit = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()

    @property
    def table(self) -> str:
        return self._pipeline.stack.table

    def client(self, service: str) -> Any:
        """An unscripted client, for whoever answers."""
        return self._pipeline.client(service)

    def arn(self, name: str) -> str:
        """The ARN of the execution of that name."""
        machine = self._pipeline.stack.state_machine_arn
        return f"{machine.replace(':stateMachine:', ':execution:')}:{name}"

    # ---------------------------------------------------------------- the actors

    def execution(
        self, name: str, execution_input: str, answers: Sequence[Answer]
    ) -> Question | End:
        """An execution of the definition, with the charge function in it."""
        client = self._pipeline.client("stepfunctions")
        forget_executions(self._pipeline.stack.state_machine_arn)

        def run() -> End:
            arn = client.start_execution(
                stateMachineArn=self._pipeline.stack.state_machine_arn,
                name=name,
                input=execution_input,
            )["executionArn"]
            ended = self._pipeline.run(arn)
            return End(ended.status, ended.error, tuple(ended.path))

        return self._ask_or_end(run, answers)

    def replay(self, answers: Sequence[Answer]) -> Question | End:
        """The command `replay --all`."""

        def run() -> End:
            report = replaying.replay(self._scripted_stack())
            return End("over", findings=tuple(str(item["why"]) for item in report.left))

        return self._ask_or_end(run, answers)

    def reconcile(self, token: str, answers: Sequence[Answer]) -> Question | End:
        """A pass with repairs and without a grace time; `token` names it."""

        def run() -> End:
            stack = self._scripted_stack()
            provider = ProviderClient(URL, lambda: API_KEY)
            provider._pool = self._pool()
            audit = Audit(
                bucket=S3Bucket(stack.client("s3"), stack.bucket),
                ledger=DynamoLedger(stack.client("dynamodb"), stack.table),
                provider=provider,
                executions=StepFunctions(stack.client("stepfunctions"), stack.state_machine_arn),
                grace=timedelta(0),
                repair=True,
                now=lambda: NOW,
            )
            progress = audit.begin(token, timedelta(days=14))
            audit.carry_on(progress)
            return End(
                "over", findings=tuple(item["kind"] for item in report(progress)["findings"])
            )

        return self._ask_or_end(run, answers)

    def _ask_or_end(self, run: Callable[[], End], answers: Sequence[Answer]) -> Question | End:
        self._answers, self._position, self._asked = answers, 0, None
        try:
            end = run()
        except _Asked as asked:
            return asked.question
        except ClientError as error:
            return End("crashed", error.response["Error"]["Code"])
        if self._position < len(answers):
            raise RuntimeError(f"bug: {run} ended before it had heard all of {answers}")
        return end

    # ---------------------------------------------------------------- asking

    def _ask(self, service: str, action: str, parameters: Json) -> Answer:
        if self._asked is None and self._position == len(self._answers):
            text = json.dumps(parameters, sort_keys=True, default=str)
            self._asked = _Asked(Question(service, action, text))
        if self._asked is not None:  # also for a `finally` that asks on the way out
            raise self._asked
        answer = self._answers[self._position]
        self._position += 1
        return answer

    def _around(self, call: Call, proceed: Callable[[], Any]) -> Any:
        if call.service == "lambda":
            try:
                return proceed()
            except Died:
                raise TaskFailure("Runtime.ExitError", "died") from None
        service = {"dynamodb": "ledger", "sqs": "queue"}[call.service]
        answer = self._ask(service, call.action, call.parameters)
        if answer.error:
            raise TaskFailure(answer.error, "told so")
        return json.loads(answer.result)

    def _charge(self, payload: Json) -> Json:
        return self._function.run(
            payload, SimpleNamespace(get_remaining_time_in_millis=lambda: 45_000)
        )

    def _pool(self) -> Any:
        def request(method: str, url: str, **options: Any) -> urllib3.HTTPResponse:
            headers = options["headers"]
            answer = self._ask(
                "provider",
                method,
                {
                    "url": url,
                    "headers": {name.lower(): value for name, value in headers.items()},
                    "body": (options.get("body") or b"").decode(),
                },
            )
            if answer.died:
                raise Died("provider")
            if answer.unheard:
                raise urllib3.exceptions.ProtocolError("no answer")
            status, got, body = json.loads(answer.result)
            return urllib3.HTTPResponse(
                body=io.BytesIO(body.encode()), headers=got, status=status, preload_content=False
            )

        return SimpleNamespace(request=request)

    def _wait_for_end(self, _stack: object, arn: str, _is_given_up: object) -> None:
        self._ask("executions", "wait", {"executionArn": arn})

    def _scripted_stack(self) -> Any:
        stack = self._pipeline.stack
        return SimpleNamespace(
            client=lambda service: _ScriptedClient(self, service),
            bucket=stack.bucket,
            table=stack.table,
            failure_queue_url=stack.failure_queue_url,
            state_machine_arn=stack.state_machine_arn,
            execution_arn=stack.execution_arn,
            endpoint="in-process",
        )

    # ---------------------------------------------------------------- how it is made

    def _put_order(self) -> Json:
        event = self._pipeline.drop(KEY, BODY)
        version = event["detail"]["object"]
        return object_created(
            bucket=self._pipeline.stack.bucket,
            key=KEY,
            version_id=version["version-id"],
            etag=version["etag"],
            size=len(BODY),
        )

    def _make_function(self) -> Function:
        settings = self._pipeline.charge_settings()
        function = Function(settings, pool=self._pool(), sleep=lambda _: None)
        # What the version holds never changes: no step of its own.
        function._store = S3OrderStore(_ScriptedClient(self, "s3"))
        return function


class _ScriptedClient:
    """A boto3 client that asks; what can never change is answered at once."""

    def __init__(self, scripts: Scripts, service: str) -> None:
        self._scripts = scripts
        self._real = scripts.client(service)
        self._service = {"dynamodb": "ledger", "sqs": "queue", "stepfunctions": "executions"}.get(
            service, service
        )

    def __getattr__(self, name: str) -> Any:
        if name in _IMMUTABLE:
            return _cached(self._real, name)
        return functools.partial(self._call, name)

    def get_paginator(self, name: str) -> Any:
        def paginate(**parameters: Any) -> Iterator[Json]:
            yield self._call(name, **parameters)

        return SimpleNamespace(paginate=paginate)

    def _call(self, name: str, /, **parameters: Any) -> Json:
        answer = self._scripts._ask(self._service, name, parameters)
        if answer.died:
            raise Died(name)
        if answer.error:
            raise ClientError({"Error": {"Code": answer.error, "Message": "told so"}}, name)
        return dict(json.loads(answer.result))


def _cached(client: Any, name: str) -> Callable[..., Any]:
    def call(**parameters: Any) -> Any:
        return getattr(client, name)(**parameters)

    return call
