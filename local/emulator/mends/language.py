"""Mends of how AWS Step Functions reads a definition: the Amazon States Language.

`States Language` below is https://states-language.net/, `Developer Guide` is
https://docs.aws.amazon.com/step-functions/latest/dg/.
"""

import operator
import random
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

from local.emulator import upstream
from local.emulator.mends import running

_RUNTIME_ERROR = "States.Runtime"
_DATA_LIMIT_ERROR = "States.DataLimitExceeded"


def refuse_missing_paths() -> None:
    """A path that selects nothing ends the execution with `States.Runtime`.

    Rule: States Language, Reference Paths and Payload Template: a path must yield a value;
    Developer Guide, concepts-error-handling: `States.Runtime` for "attempting to apply InputPath
    or OutputPath on a null JSON payload" and the like. Holds for Parameters, ResultSelector,
    InputPath, OutputPath, Choice variables and arguments of intrinsic functions alike. Paths with
    a wildcard may select nothing: that is an empty list.
    """
    stepfunctions = upstream.module("services.stepfunctions")

    def resolve(original: Any, path: str, data: Any) -> Any:
        if not path or not path.startswith("$") or path == "$":
            return original(path, data)
        steps = stepfunctions._parse_jsonpath_tokens(path)
        if steps is None:
            raise stepfunctions._ExecutionError(_RUNTIME_ERROR, f"Invalid path '{path}'")
        if any(kind == "wildcard" for kind, _ in steps):
            return original(path, data)
        for kind, step in steps:
            try:
                data = _select(kind, step, data)
            except LookupError:
                raise stepfunctions._ExecutionError(
                    _RUNTIME_ERROR,
                    f"The JSONPath '{path}' could not be found in the input",
                ) from None
        return data

    upstream.wrap(stepfunctions, "_resolve_path", resolve)


def _select(kind: str, step: Any, data: Any) -> Any:
    """One step of a path, by the name of a field or the index of an element.

    Raises:
        LookupError: there is no such field or element.
    """
    if isinstance(data, dict if kind == "field" else list):
        return data[step]
    raise LookupError(step)


_COMPARISON = re.compile(
    "(String|Numeric|Boolean|Timestamp)"
    "(Equals|LessThanEquals|LessThan|GreaterThanEquals|GreaterThan)"
)
_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "Equals": operator.eq,
    "LessThan": operator.lt,
    "LessThanEquals": operator.le,
    "GreaterThan": operator.gt,
    "GreaterThanEquals": operator.ge,
}


def compare_as_the_language_says() -> None:
    """Every comparison of a Choice rule works, `…Path` ones included, and types never mix.

    Rule: States Language, Choice State, data-test expressions. `IsPresent` is true for a field
    that holds null. A value of the wrong type makes a comparison false.
    """
    stepfunctions = upstream.module("services.stepfunctions")

    def evaluate(_original: Any, rule: dict[str, Any], data: Any, context: Any = None) -> bool:
        def judge(inner: dict[str, Any]) -> bool:
            return bool(stepfunctions._evaluate_rule(inner, data, context))

        def look_up(path: str) -> Any:
            return stepfunctions._resolve_path_or_ctx(path, data, context)

        if "And" in rule or "Or" in rule:
            join = all if "And" in rule else any
            return join(judge(inner) for inner in rule.get("And") or rule["Or"])
        if "Not" in rule:
            return not judge(rule["Not"])
        if "IsPresent" in rule:
            return is_present(rule["Variable"], data, context) is rule["IsPresent"]
        value = look_up(rule["Variable"])
        for name, operand in rule.items():
            if name in _TYPE_TESTS:
                return _TYPE_TESTS[name](value) is operand
            if compare := _comparison(name.removesuffix("Path")):
                return compare(value, look_up(operand) if name.endswith("Path") else operand)
        raise stepfunctions._ExecutionError(_RUNTIME_ERROR, f"No comparison in {rule}")

    def is_present(path: str, data: Any, context: Any) -> bool:
        if path.startswith("$$"):
            path, data = path[1:], context
        try:
            for kind, step in stepfunctions._parse_jsonpath_tokens(path) or ():
                data = _select(kind, step, data)
        except LookupError:
            return False
        return True

    upstream.wrap(stepfunctions, "_evaluate_rule", evaluate)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _timestamp(value: Any) -> datetime | None:
    """An RFC 3339 timestamp with its offset; None for anything else."""
    if not isinstance(value, str) or "T" not in value:
        return None
    try:
        parsed = datetime.fromisoformat(value)
    except ValueError:
        return None
    return parsed if parsed.tzinfo else None


_TYPE_TESTS: dict[str, Callable[[Any], bool]] = {
    "IsNull": lambda value: value is None,
    "IsNumeric": _is_number,
    "IsString": lambda value: isinstance(value, str),
    "IsBoolean": lambda value: isinstance(value, bool),
    "IsTimestamp": lambda value: _timestamp(value) is not None,
}


def _comparison(name: str) -> Callable[[Any, Any], bool] | None:
    """The data-test expression of that name, for a value and an operand; None for other fields.

    It is false when a type does not fit.
    """
    if name == "StringMatches":
        return lambda value, pattern: (
            isinstance(value, str) and bool(_glob(pattern).fullmatch(value))
        )
    match = _COMPARISON.fullmatch(name)
    if match is None:
        return None
    kind, order = match.groups()

    def compare(value: Any, operand: Any) -> bool:
        left, right = _typed(kind, value), _typed(kind, operand)
        return left is not None and right is not None and _ORDER[order](left, right)

    return compare


def _typed(kind: str, value: Any) -> Any:
    """`value` when it is of the `kind` that a comparison asks for, else None."""
    if kind == "Timestamp":
        return _timestamp(value)
    test = _TYPE_TESTS["IsNumeric" if kind == "Numeric" else f"Is{kind}"]
    return value if test(value) else None


def _glob(pattern: str) -> re.Pattern[str]:
    r"""`StringMatches`: `*` stands for anything, `\*` for an asterisk, `\\` for a backslash."""
    parts = re.findall(r"\\[*\\]|.", pattern, re.DOTALL)
    return re.compile(
        "".join(".*" if part == "*" else re.escape(part[-1]) for part in parts), re.DOTALL
    )


def keep_terminal_errors_terminal() -> None:
    """No Retry and no Catch sees `States.Runtime`; `States.DataLimitExceeded` only by its name.

    Rule: Developer Guide, concepts-error-handling: `States.Runtime` "can't be retried, and will
    always cause the execution to fail"; neither is caught by `States.ALL`.
    """
    stepfunctions = upstream.module("services.stepfunctions")

    def matches(original: Any, names: list[str], error: str) -> bool:
        if error == _RUNTIME_ERROR:
            return False
        if error == _DATA_LIMIT_ERROR:
            return error in names
        return bool(original(names, error))

    upstream.wrap(stepfunctions, "_error_matches", matches)


def wait_between_retries_as_told() -> None:
    """`MaxDelaySeconds` caps the wait before a retry, `JitterStrategy: FULL` makes it random.

    Rule: States Language, Errors, Retrying after error. MiniStack caps every wait at 60 s and
    knows neither. The wait is scaled by SFN_WAIT_SCALE and ends when the execution does.
    """
    stepfunctions = upstream.module("services.stepfunctions")
    running.track()

    def find(original: Any, retriers: Any, error: str, counts: dict[int, int]) -> Any:
        retrier, index = original(retriers, error, counts)
        if retrier is None:
            return None, -1
        wait_seconds = retry_wait_seconds(retrier, counts.get(index, 0))
        running.sleep(wait_seconds * stepfunctions._SFN_WAIT_SCALE)
        # The interpreter has nothing left to wait for.
        return {**retrier, "IntervalSeconds": 0}, index

    upstream.wrap(stepfunctions, "_find_matching_retrier", find)


def retry_wait_seconds(retrier: dict[str, Any], retries_made: int) -> float:
    """Seconds to wait before the next retry, unscaled; random under `JitterStrategy: FULL`."""
    seconds = retrier.get("IntervalSeconds", 1) * retrier.get("BackoffRate", 2.0) ** retries_made
    seconds = min(seconds, retrier.get("MaxDelaySeconds", seconds))
    if retrier.get("JitterStrategy") == "FULL":
        return random.uniform(0, seconds)  # noqa: S311 - spreads load, hides nothing
    return float(seconds)


def show_the_context_to_result_selectors() -> None:
    """`$$` paths work in a ResultSelector.

    Rule: Developer Guide, input-output-contextobject: the context object is accessible in
    ResultSelector.
    """
    stepfunctions = upstream.module("services.stepfunctions")
    running.track()

    def apply(original: Any, definition: dict[str, Any], data: Any) -> Any:
        selector = definition.get("ResultSelector")
        if not selector:
            return original(definition, data)
        return stepfunctions._resolve_params_obj(selector, data, running.context())

    upstream.wrap(stepfunctions, "_apply_result_selector", apply)
