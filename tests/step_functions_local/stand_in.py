"""A stand-in for `java`, and for Step Functions Local under it.

Checks strictly what the real program gets: the command line, every request's headers, fields and
ARNs. Executes definitions on moto's interpreter, with calls over HTTP to the endpoints named on
the command line. Like the real program it keeps everything in memory.

Kinder than the real program in one thing: STAND_IN_RETRY_SCALE shortens the waits between
retries, which `--wait-time-scale` of the real program leaves alone.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from unittest.mock import patch

Json = dict[str, Any]

VERSION = 'openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment'
PORT_VARIABLE = "STAND_IN_PORT"
RETRY_SCALE_VARIABLE = "STAND_IN_RETRY_SCALE"

#: What we ask of it; anything else would be a surprise.
ACTIONS = (
    "CreateStateMachine",
    "UpdateStateMachine",
    "ListStateMachines",
    "StartExecution",
    "DescribeExecution",
    "DescribeStateMachineForExecution",
    "ListExecutions",
    "StopExecution",
    "GetExecutionHistory",
)
NAME = re.compile(r"[A-Za-z0-9_-]{1,80}")


def main(arguments: list[str]) -> None:
    """What `java ARGUMENTS` does."""
    if arguments == ["-version"]:
        print(VERSION, file=sys.stderr)
        return
    flags = parse(arguments)
    os.environ["MOTO_ACCOUNT_ID"] = flags.aws_account  # read when moto is imported
    serve(flags, int(os.environ.get(PORT_VARIABLE, "8083")))


def parse(arguments: list[str]) -> argparse.Namespace:
    """The flags of the documented command line, each exactly once; exit status 2 for others."""
    if arguments[:1] != ["-jar"]:
        raise SystemExit(f"no -jar: {arguments}")
    names = [word for word in arguments if word.startswith("--")]
    if len(names) != len(set(names)):
        raise SystemExit(f"a flag is given twice: {names}")
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("-jar", type=_readable, required=True)
    parser.add_argument("--aws-account", type=_account, required=True)
    parser.add_argument("--aws-region", required=True)
    for service in ("lambda", "dynamodb", "sqs", "step-functions"):
        parser.add_argument(f"--{service}-endpoint", type=_loopback, required=True)
    parser.add_argument("--wait-time-scale", type=float, required=True)
    return parser.parse_args(arguments)


def _readable(path: str) -> str:
    with open(path, "rb"):  # noqa: PTH123 - as the shell would
        return path


def _account(text: str) -> str:
    if not re.fullmatch(r"\d{12}", text):
        raise ValueError(text)
    return text


def _loopback(url: str) -> str:
    if not re.fullmatch(r"http://127\.0\.0\.1:\d+", url):
        raise ValueError(url)
    return url


class Refused(Exception):
    """A request that the real service refuses, by the name of its error."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def serve(flags: argparse.Namespace, port: int) -> None:
    """Answer the API of Step Functions for ever."""
    import boto3
    from botocore.exceptions import ClientError
    from moto import mock_aws

    from local.emulator.environment import credentials

    os.environ.update(credentials(flags.aws_region))
    here = boto3.Session(region_name=flags.aws_region)
    with mock_aws(config={"stepfunctions": {"execute_state_machine": True}}):
        interpreter = here.client("stepfunctions")
        service_model = interpreter.meta.service_model
        checks = Checks(service_model, flags.aws_region, flags.aws_account)

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                try:
                    action, parameters = checks.read(self.path, self.headers, body)
                    self._answer(200, perform(interpreter, action, parameters))
                except Refused as error:
                    self._answer(400, {"__type": error.code, "message": str(error)})
                except ClientError as error:
                    told = error.response["Error"]
                    self._answer(400, {"__type": told["Code"], "message": told["Message"]})

            def _answer(self, status: int, document: Json) -> None:
                body = json.dumps(document, default=lambda moment: moment.timestamp()).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/x-amz-json-1.0")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        with in_its_hands(flags):
            server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
            server.daemon_threads = True
            print(f"Starting server on port {port} with account {flags.aws_account}", flush=True)
            server.serve_forever()


class Checks:
    """What the real service demands of a request."""

    def __init__(self, service_model: Any, region: str, account: str) -> None:
        self._model = service_model
        prefix = f"arn:aws:states:{region}:{account}"
        name = r"[A-Za-z0-9_-]{1,80}"
        self._arns = {
            "stateMachineArn": re.compile(rf"{prefix}:stateMachine:{name}(#{name})?"),
            "executionArn": re.compile(rf"{prefix}:execution:{name}:{name}"),
        }

    def read(self, path: str, headers: Any, body: bytes) -> tuple[str, Json]:
        """The action and its parameters. Raises `Refused`."""
        prefix, _, action = headers.get("X-Amz-Target", "").rpartition(".")
        if path != "/" or prefix != "AWSStepFunctions" or action not in ACTIONS:
            raise Refused("UnknownOperationException", f"{path} {headers.get('X-Amz-Target')}")
        if headers.get("Content-Type") != "application/x-amz-json-1.0":
            raise Refused("SerializationException", "Content-Type")
        if not headers.get("Authorization", "").startswith("AWS4-HMAC-SHA256 Credential="):
            raise Refused("MissingAuthenticationTokenException", "the request is not signed")
        parameters = json.loads(body)
        self._fits(action, parameters)
        for field, pattern in self._arns.items():
            if field in parameters and not pattern.fullmatch(parameters[field]):
                raise Refused("InvalidArn", parameters[field])
        if "name" in parameters and not NAME.fullmatch(parameters["name"]):
            raise Refused("InvalidName", parameters["name"])
        if action == "StartExecution":
            json.loads(parameters["input"])
        if "definition" in parameters:
            self._is_complete(parameters)
        return action, parameters

    def _fits(self, action: str, parameters: Json) -> None:
        """Every field is known and of its type, and none is missing."""
        from botocore.validate import ParamValidator

        shape = self._model.operation_model(action).input_shape
        if unknown := parameters.keys() - shape.members.keys():
            raise Refused("SerializationException", f"unknown: {', '.join(sorted(unknown))}")
        report = ParamValidator().validate(parameters, shape)
        if report.has_errors():
            raise Refused("ValidationException", report.generate_report())

    @staticmethod
    def _is_complete(parameters: Json) -> None:
        definition = json.loads(parameters["definition"])
        if "${" in parameters["definition"] or "StartAt" not in definition:
            raise Refused("InvalidDefinition", "a substitution was left out")
        if not re.fullmatch(r"arn:aws:iam::\d{12}:role/.+", parameters["roleArn"]):
            raise Refused("InvalidArn", parameters["roleArn"])


def perform(interpreter: Any, action: str, parameters: Json) -> Json:
    """Carry the action out on moto's interpreter, and mend its answer."""
    from botocore import xform_name

    # Moto knows neither order nor pages of a history, and has no versions without error and cause.
    reverse = parameters.pop("reverseOrder", False)
    most = parameters.pop("maxResults", None) if action == "GetExecutionHistory" else None
    if "executionArn" in parameters:
        wait_for_the_first_event(interpreter, parameters["executionArn"])
    answer: Json = getattr(interpreter, xform_name(action))(**parameters)
    del answer["ResponseMetadata"]
    if action == "GetExecutionHistory":
        answer["events"] = (answer["events"][::-1] if reverse else answer["events"])[:most]
    if action == "DescribeExecution":
        answer = {key: value for key, value in answer.items() if key not in {"error", "cause"}}
    return answer


def wait_for_the_first_event(interpreter: Any, execution_arn: str) -> None:
    """Moto cannot stop an execution whose thread has not begun."""
    from local.waiting import wait_for

    wait_for(lambda: interpreter.get_execution_history(executionArn=execution_arn)["events"], 5)


def in_its_hands(flags: argparse.Namespace) -> Any:
    """Executions on threads of their own; calls to the endpoints of the command line."""
    import contextlib
    import importlib

    import boto3
    from botocore.config import Config

    from local.inprocess import engine

    # The calls of executions stand for the real program's, which is patient and asks once.
    config = Config(read_timeout=70, retries={"total_max_attempts": 1}, proxies={})
    endpoints = {
        "dynamodb": flags.dynamodb_endpoint,
        "sqs": flags.sqs_endpoint,
        "lambda": flags.lambda_endpoint,
    }
    session = boto3.Session(region_name=flags.aws_region)
    clients = {
        name: session.client(name, endpoint_url=endpoint, config=config)  # type: ignore[call-overload]
        for name, endpoint in endpoints.items()
    }
    retry_scale = float(os.environ.get(RETRY_SCALE_VARIABLE, "1"))
    tasks = "moto.stepfunctions.parser.asl.component.state.exec.state_task"
    lambda_task = importlib.import_module(f"{tasks}.service.state_task_service_lambda")
    worker = importlib.import_module("moto.stepfunctions.parser.backend.execution_worker")

    def invoke(_task: Any, *, env: Any, normalised_parameters: Json, **_: Any) -> None:
        answer = clients["lambda"].invoke(**normalised_parameters)
        payload = answer["Payload"].read().decode()
        if "FunctionError" in answer:
            failure = json.loads(payload)
            raise engine.TaskFailure(failure["errorType"], payload)
        selected = {key: answer[key] for key in ("ExecutedVersion", "StatusCode")}
        env.stack.append(selected | {"Payload": json.loads(payload)})

    def start(self: Any) -> None:
        threading.Thread(target=self._execution_logic, daemon=True).start()

    environment = importlib.import_module(
        "moto.stepfunctions.parser.asl.eval.environment"
    ).Environment
    set_error = environment.set_error

    def keep_stopped(self: Any, error: Any) -> None:
        """Moto turns a stopped run into a failed one when its task in flight fails."""
        if self.is_running():
            set_error(self, error)

    stack = contextlib.ExitStack()
    stack.enter_context(
        engine.in_our_hands(
            client=clients.__getitem__,
            charge=lambda payload: payload,  # replaced below
            around=engine.unhindered,
            sleep=lambda seconds: time.sleep(seconds * retry_scale),
        )
    )
    task = lambda_task.StateTaskServiceLambda
    stack.enter_context(patch.object(task, "_eval_service_task", invoke))
    stack.enter_context(patch.object(worker.ExecutionWorker, "start", start))
    stack.enter_context(patch.object(environment, "set_error", keep_stopped))
    return stack


if __name__ == "__main__":
    main(sys.argv[1:])
