"""What MiniStack does differently from AWS and we put right, one function each.

`MENDS` is the whole list. Each entry names what MiniStack does without it; the function's
docstring names the rule of AWS that it restores. A test runs each difference with the mend, and
checks that it is still there without: when it is not, upstream has fixed it and the mend goes.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from local.emulator.mends import (
    cloudformation,
    events,
    executions,
    functions,
    integrations,
    language,
    permissions,
    s3,
)


@dataclass(frozen=True)
class Mend:
    """One difference and the function that puts it right."""

    name: str
    apply: Callable[[], None]
    without: str
    """What MiniStack does when the mend is left out."""


MENDS = (
    # AWS Identity and Access Management
    Mend(
        "tls-loopback",
        permissions.take_the_loopback_for_tls,
        "a policy that demands TLS denies every request on the loopback",
    ),
    # Amazon S3
    Mend(
        "s3-version-in-events",
        s3.name_the_version_in_events,
        "an Object Created event of a versioned bucket lacks object.version-id",
    ),
    Mend(
        "s3-event-time",
        s3.tell_event_times_in_seconds,
        "the time of an S3 event has milliseconds",
    ),
    Mend(
        "s3-key-length",
        s3.refuse_keys_that_are_too_long,
        "object keys of any length are accepted",
    ),
    Mend(
        "s3-version-list-encoding",
        s3.encode_keys_in_lists_of_versions,
        "ListObjectVersions ignores encoding-type: one odd key makes the whole list fail",
    ),
    # AWS CloudFormation
    Mend(
        "generated-secrets",
        cloudformation.generate_secrets_as_asked,
        "GenerateSecretString ignores ExcludePunctuation and its like",
    ),
    Mend(
        "secret-ref",
        cloudformation.refer_to_secrets_by_arn,
        "!Ref of a secret is its name",
    ),
    Mend(
        "sam-parameters",
        cloudformation.tell_the_sam_transform_the_parameters,
        "the SAM transform does not see parameter values: no new version of a function",
    ),
    # AWS Lambda
    Mend(
        "python-runtime",
        functions.run_python_under_awslambdaric,
        "every error of a Python handler is called Runtime.HandlerError",
    ),
    Mend(
        "runtime-latency",
        functions.answer_the_runtime_at_once,
        "an invocation through the Runtime API takes 50 ms longer than it must",
    ),
    Mend(
        "lambda-failure-words",
        functions.report_failures_in_lambdas_words,
        "the message of a crash or time-out lacks the request's id",
    ),
    Mend(
        "invoked-alias",
        functions.name_the_alias_that_was_invoked,
        "invoked_function_arn names the version where a service named an alias",
    ),
    Mend(
        "function-url",
        functions.give_function_urls_a_reachable_name,
        "a Function URL names a host that does not resolve",
    ),
    Mend(
        "finish-invocations",
        functions.let_invocations_finish,
        "an update of a function ends its invocations that are under way",
    ),
    # Step Functions: the language
    Mend(
        "missing-path",
        language.refuse_missing_paths,
        "a path that selects nothing yields null and the execution goes on",
    ),
    Mend(
        "choice-comparisons",
        language.compare_as_the_language_says,
        "IsPresent is false for null; comparisons with a path are always false",
    ),
    Mend(
        "terminal-errors",
        language.keep_terminal_errors_terminal,
        "States.ALL catches States.Runtime and States.DataLimitExceeded",
    ),
    Mend(
        "retry-waits",
        language.wait_between_retries_as_told,
        "MaxDelaySeconds and JitterStrategy are ignored",
    ),
    Mend(
        "result-selector-context",
        language.show_the_context_to_result_selectors,
        "a $$ path in a ResultSelector yields null",
    ),
    # Step Functions: executions
    Mend(
        "no-head-start",
        executions.start_at_once,
        "every execution sleeps 0.15 s before its first state",
    ),
    Mend(
        "start-idempotently",
        executions.start_idempotently,
        "the same name and input while the execution runs is refused",
    ),
    Mend(
        "start-checks",
        executions.check_what_starts_an_execution,
        "any name and any input start an execution",
    ),
    Mend(
        "stop-for-good",
        executions.stop_for_good,
        "a stopped execution retries on, grows its history and can turn to FAILED",
    ),
    Mend(
        "machine-time-out",
        executions.time_machines_out,
        "a state machine's TimeoutSeconds is ignored",
    ),
    Mend(
        "history",
        executions.write_the_history_that_aws_writes,
        "no TaskStarted, no TaskTimedOut, no previousEventId; resource is a whole ARN",
    ),
    Mend(
        "context-object",
        executions.complete_the_context_object,
        "$$.Execution lacks RoleArn and RedriveCount",
    ),
    Mend(
        "payload-limit",
        executions.limit_payloads,
        "payloads of any size pass",
    ),
    # Step Functions: other services
    Mend(
        "response-metadata",
        integrations.describe_the_response,
        "results lack ExecutedVersion, SdkHttpMetadata and SdkResponseMetadata",
    ),
    Mend(
        "throttling-error",
        integrations.name_throttling,
        "a throttled invocation fails as Lambda.Unknown",
    ),
    Mend(
        "machine-role",
        permissions.ask_the_machines_role,
        "a state machine may call anything, whatever its role says",
    ),
    # Outermost: a mocked response is the whole response.
    Mend(
        "mock-attempts",
        integrations.advance_mocked_responses,
        "a mocked task that throws once throws for ever",
    ),
    # Amazon EventBridge
    Mend(
        "target-dead-letters",
        events.dead_letter_what_cannot_be_delivered,
        "an event for a target that does not exist is lost",
    ),
    Mend(
        "event-retries",
        events.retry_functions,
        "a rule or schedule invokes a failing function once",
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
