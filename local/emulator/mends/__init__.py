"""What MiniStack does differently from AWS and we put right, one function each.

`MENDS` is the whole list. Each entry names what MiniStack does without it; the function's
docstring names the rule of AWS that it restores. A test runs each difference with the mend, and
checks that it is still there without: when it is not, upstream has fixed it and the mend goes.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from local.emulator.mends import executions, functions, s3


@dataclass(frozen=True)
class Mend:
    """One difference and the function that puts it right."""

    name: str
    apply: Callable[[], None]
    without: str
    """What MiniStack does when the mend is left out."""


MENDS = (
    Mend(
        "s3-version-in-events",
        s3.name_the_version_in_events,
        "an Object Created event of a versioned bucket lacks object.version-id",
    ),
    Mend(
        "python-runtime",
        functions.run_python_under_awslambdaric,
        "every error of a Python handler is called Runtime.HandlerError",
    ),
    Mend(
        "runtime-latency",
        functions.answer_the_runtime_at_once,
        "an invocation through the Runtime API takes 45 ms longer than it must",
    ),
    Mend(
        "function-url",
        functions.give_function_urls_a_reachable_name,
        "a Function URL names a host that does not resolve",
    ),
    Mend(
        "no-head-start",
        executions.start_at_once,
        "every execution sleeps 0.15 s before its first state",
    ),
)


def apply(names: Iterable[str]) -> None:
    """Apply the named mends, in the order of `MENDS`.

    Raises:
        ValueError: a name is not in `MENDS`.
    """
    wanted = set(names)
    if unknown := wanted - {mend.name for mend in MENDS}:
        raise ValueError(f"no such mend: {', '.join(sorted(unknown))}")
    for mend in MENDS:
        if mend.name in wanted:
            mend.apply()
