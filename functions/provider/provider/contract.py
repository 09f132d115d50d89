"""Reads the contract, and holds requests to it: the published schemas are the validators."""

import json
import re
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any, NoReturn
from urllib.parse import parse_qsl

import fastjsonschema

from provider.problem import Problem, invalid

DOCUMENT = files("provider").joinpath("openapi.json").read_text(encoding="utf-8")

MAX_BODY_BYTES = 64 * 1024  # with its copies and escapes well below a DynamoDB item's 400 KB

Validate = Any  # compiled by fastjsonschema: returns its argument or raises


@dataclass(frozen=True)
class Operation:
    """One method of one path; `public` needs no credential."""

    name: str
    path: re.Pattern[str]
    method: str
    public: bool
    query: dict[str, dict[str, Any]]
    check_query: Validate
    check_body: Validate | None

    @property
    def test_only(self) -> bool:
        """Whether it exists in test mode only."""
        return self.path.pattern.startswith("/v1/test/")

    def parameters(self, query: str) -> dict[str, Any]:
        """The query string as typed values. Raises Problem 400.

        An unknown name is refused: a misspelt filter that is ignored would list everything.
        """
        try:
            pairs = parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=20)
        except ValueError as error:
            raise invalid(f"query: {error}") from None
        values: dict[str, Any] = {}
        for name, text in pairs:
            if name in values:
                raise invalid(f"query: {name} is given twice")
            number = self.query.get(name, {}).get("type") == "integer"
            values[name] = int(text) if number and re.fullmatch("[0-9]{1,18}", text) else text
        return checked(self.check_query, values, "query")

    def body(self, content_type: str, body: bytes) -> dict[str, Any]:
        """The body as checked values. Raises Problem 400, 413 or 415."""
        if len(body) > MAX_BODY_BYTES:
            raise Problem(
                413, "body-too-large", "The body is too large", f"At most {MAX_BODY_BYTES} bytes."
            )
        if content_type.partition(";")[0].strip().lower() not in ("", "application/json"):
            raise Problem(
                415,
                "media-type-unsupported",
                "The media type is not supported",
                "Send application/json.",
            )
        return checked(self.check_body, parse(body), "body")


def parse(body: bytes) -> Any:
    """Strict JSON: UTF-8, no duplicate names, no NaN, and 1.0 is not 1. Raises Problem 400."""
    try:
        value = json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_unique,
            # Not a float: that would make 1.0 an integer to JSON Schema, and 1e999 infinite.
            parse_float=Decimal,
            parse_constant=_no_constant,
        )
        # An escaped half of a surrogate pair parses, but is no text that could be sent back.
        json.dumps(value, default=str, ensure_ascii=False).encode("utf-8")
        return value
    except (ValueError, RecursionError) as error:
        raise invalid(f"body: not JSON: {error}") from None


def checked(check: Validate, value: Any, where: str) -> dict[str, Any]:
    """The value, if it is as the schema says. Raises Problem 400 that names the field."""
    try:
        check(value)
    except fastjsonschema.JsonSchemaValueException as error:
        raise invalid(error.message.replace("data", where, 1)) from None
    return dict(value)


@cache
def operations() -> tuple[Operation, ...]:
    """Every operation of the contract."""
    document = json.loads(DOCUMENT)
    return tuple(
        _operation(path, method, operation, document)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    )


@cache
def key_pattern() -> re.Pattern[str]:
    """What an Idempotency-Key header looks like."""
    parameters = json.loads(DOCUMENT)["paths"]["/v1/charges"]["post"]["parameters"]
    return re.compile(parameters[0]["schema"]["pattern"])


def _operation(
    path: str, method: str, operation: dict[str, Any], document: dict[str, Any]
) -> Operation:
    query = {
        parameter["name"]: parameter
        for parameter in operation.get("parameters", ())
        if parameter["in"] == "query"
    }
    body = operation.get("requestBody")
    return Operation(
        name=operation["operationId"],
        path=re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(path))),
        method=method.upper(),
        public=operation.get("security") == [],
        query={name: parameter["schema"] for name, parameter in query.items()},
        check_query=fastjsonschema.compile(
            {
                "type": "object",
                "properties": {name: parameter["schema"] for name, parameter in query.items()},
                "required": [name for name, parameter in query.items() if parameter["required"]],
                "additionalProperties": False,
            }
        ),
        check_body=body
        and fastjsonschema.compile(
            body["content"]["application/json"]["schema"] | {"components": document["components"]}
        ),
    )


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a name is given twice in one object")
    return members


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")
