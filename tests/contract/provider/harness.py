"""The provider in each of its forms, as an HTTP client sees it."""

import base64
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar
from uuid import uuid4

import boto3
import httpx
from provider.api import Api, Request

from local.ports import free_port
from local.waiting import wait_for

ROOT = Path(__file__).parents[3]
API_KEY = "sk_test_conformance"
PATIENCE_SECONDS = 30  # of whoever waits for something on a busy machine

Found = TypeVar("Found")

# ---------------------------------------------------------------- a client's words


def order(**changes: Any) -> dict[str, Any]:
    """A valid charge request, with a reference that nothing else uses."""
    return {
        "amount": 1999,
        "currency": "EUR",
        "source": "tok_visa",
        "reference": f"ref-{uuid4()}",
        "metadata": {"order_id": "A-1001"},
    } | changes


def fresh_key() -> str:
    """An idempotency key that nothing else uses."""
    return f"key-{uuid4()}"


def charge(api: httpx.Client, key: str, body: dict[str, Any]) -> httpx.Response:
    """POST a charge under a key."""
    return api.post("/v1/charges", json=body, headers={"Idempotency-Key": key})


def charges(api: httpx.Client, **filters: str | int) -> list[dict[str, Any]]:
    """All charges that match, over all pages."""
    found: list[dict[str, Any]] = []
    while True:
        page = api.get("/v1/charges", params=filters).raise_for_status().json()
        found += page["data"]
        if not page["has_more"]:
            return found
        filters["starting_after"] = found[-1]["id"]


def arm(api: httpx.Client, fault: str, **details: Any) -> None:
    """Arm a fault of test mode."""
    api.post("/v1/test/faults", json={"fault": fault} | details).raise_for_status()


def is_armed(api: httpx.Client, reference: str) -> bool:
    """Whether a fault for this reference has something left."""
    armed = api.get("/v1/test/faults").raise_for_status().json()["data"]
    return reference in {fault["reference"] for fault in armed}


def seen(api: httpx.Client, key: str) -> list[tuple[str, int]]:
    """Outcome and status of each request with a key, oldest first."""
    answer = api.get("/v1/test/requests", params={"idempotency_key": key})
    return [
        (entry["outcome"], entry["status"]) for entry in answer.raise_for_status().json()["data"]
    ]


def at_once(calls: int, threads: int, act: Callable[[int], Found]) -> list[Found]:
    """What `act(0)`, `act(1)` and so on give, from many threads."""
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(act, range(calls)))


def until(find: Callable[[], Found | None]) -> Found:
    """Wait until something is found."""
    found: Found = wait_for(find, PATIENCE_SECONDS)
    return found


# ---------------------------------------------------------------- over HTTP


def client(
    url: str, key: str = API_KEY, transport: httpx.BaseTransport | None = None
) -> httpx.Client:
    """A client with the API key, which many threads may share."""
    return httpx.Client(
        base_url=url,
        headers={"Authorization": f"Bearer {key}"},
        transport=transport,
        timeout=PATIENCE_SECONDS,
        trust_env=False,
    )


class StandAlone:
    """The server of `python -m provider` in a process of its own."""

    def __init__(self, *options: str, test_mode: bool = True) -> None:
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "provider", "--port", "0", "--api-key", API_KEY),
                *(["--test-mode"] if test_mode else []),
                *options,
            ],
            env=os.environ | {"PYTHONPATH": str(ROOT / "functions/provider")},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout
        self.url = self._process.stdout.readline().split()[-1]
        self.api = client(self.url)

    def send(self, number: signal.Signals) -> None:
        """SIGSTOP, SIGCONT and the like."""
        self._process.send_signal(number)

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End it; the return code."""
        self.send(number)
        code = self._process.wait(PATIENCE_SECONDS)
        assert self._process.stdout
        self._process.stdout.close()
        self.api.close()
        return code


@contextmanager
def stand_alone(*options: str) -> Iterator[StandAlone]:
    """A server that ends with the block."""
    server = StandAlone(*options)
    try:
        yield server
    finally:
        server.end()


# ---------------------------------------------------------------- without a server


class InProcess(httpx.BaseTransport):
    """Hands requests to an Api."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """One request, one response."""
        response = self._api.respond(
            Request(
                method=request.method,
                path=request.url.raw_path.partition(b"?")[0].decode(),
                query=request.url.query.decode(),
                headers={name.lower(): value for name, value in request.headers.items()},
                body=request.read(),
            )
        )
        return httpx.Response(response.status, headers=response.headers, text=response.body)


class FunctionUrl(httpx.BaseTransport):
    """Hands requests to a Lambda handler, in a Function URL's payload format 2.0."""

    def __init__(self, handle: Callable[[dict[str, Any], object], dict[str, Any]]) -> None:
        self._handle = handle

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """One request, one response."""
        event = {
            "version": "2.0",
            "rawPath": request.url.raw_path.partition(b"?")[0].decode(),
            "rawQueryString": request.url.query.decode(),
            "headers": dict(request.headers),
            "requestContext": {"http": {"method": request.method}},
            "body": base64.b64encode(request.read()).decode(),
            "isBase64Encoded": True,
        }
        # Through JSON, as everything that enters and leaves a Lambda.
        answer = json.loads(json.dumps(self._handle(json.loads(json.dumps(event)), None)))
        return httpx.Response(answer["statusCode"], headers=answer["headers"], text=answer["body"])


# ---------------------------------------------------------------- the emulator


@dataclass(frozen=True)
class Aws:
    """An emulator. `environment` points a program at it, and never at AWS."""

    environment: dict[str, str]

    def client(self, service: str) -> Any:
        """A boto3 client of it, whatever this process's own environment says."""
        make: Any = boto3.client  # its stubs want the service as a literal
        return make(
            service,
            endpoint_url=self.environment["AWS_ENDPOINT_URL"],
            region_name=self.environment["AWS_DEFAULT_REGION"],
            aws_access_key_id=self.environment["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=self.environment["AWS_SECRET_ACCESS_KEY"],
        )

    def make_table(self) -> str:
        """A new table of the provider, as the template defines it."""
        name = f"provider-{uuid4()}"
        self.client("dynamodb").create_table(
            TableName=name,
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[
                {"AttributeName": "pk", "AttributeType": "S"},
                {"AttributeName": "sk", "AttributeType": "S"},
            ],
            KeySchema=[
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "sk", "KeyType": "RANGE"},
            ],
        )
        return name


@contextmanager
def ministack() -> Iterator[Aws]:
    """MiniStack on a free port."""
    port = free_port()
    endpoint = f"http://127.0.0.1:{port}"
    environment = {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "eu-central-1",
    }
    with TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        process = subprocess.Popen(
            [sys.executable, "-m", "ministack"],
            env=os.environ
            | environment
            | {
                "TMPDIR": scratch,
                "GATEWAY_PORT": str(port),
                "BIND_HOST": "127.0.0.1",
                "IOT_MTLS_ENABLED": "0",
                "SFTP_ENABLED": "0",
            },
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            until(lambda: _answers(f"{endpoint}/_ministack/health"))
            yield Aws(environment)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False).is_success
    except httpx.HTTPError:
        return False
