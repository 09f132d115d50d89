"""Every command of `python -m local`. Thin: each parses, makes one call, prints.

With --json exactly one JSON document goes to stdout; all else goes to stderr. Exit status 0: the
document was produced, outcomes are in it; 1: the command failed; 2: wrong usage.

Each imports what it needs when it runs: AWS's libraries alone take longer to load than most
commands take to run, and `--help` needs none of them.
"""

from __future__ import annotations

import io
import json
import math
import secrets
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer
from rich.text import Text

from local import completion, fault_names, show, text
from local.errors import CommandError
from local.progress import counter, errors, output, step

if TYPE_CHECKING:
    from collections.abc import Callable

    from local.stack import Stack

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Typer's own would complete the word `python`: see the command `completion`.
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="charge-once on this machine, or with --stack NAME the same commands on AWS.",
    epilog="Exit status: 0 when the answer was given, whatever it says; 1 when the command failed; "
    "2 for wrong usage.",
)


class Measurements(typer.core.TyperGroup):
    """`bench` and its commands, which are imported when one of them is asked for."""

    @property
    def commands(self) -> Any:
        from local import bench

        return typer.main.get_group(bench.app).commands

    @commands.setter
    def commands(self, _: Any) -> None:
        """There are none when the group is made."""


app.add_typer(
    typer.Typer(cls=Measurements, no_args_is_help=True),
    name="bench",
    help="Measure: each figure comes with the cores and versions it is from.",
)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
OnAws = Annotated[
    str | None,
    typer.Option("--stack", metavar="NAME", help="A stack on AWS, in the shell's region."),
]
OnEngine = Annotated[
    Literal["ministack", "step-functions-local"] | None,
    typer.Option("--engine", help="What runs the executions; by default the emulator itself."),
]

#: How often `local` looks whether its stack is still there.
SERVING_LOOK_SECONDS = 1


def main() -> None:
    """Run the command line; a CommandError becomes one clear line and exit status 1."""
    # A polite end and a closed terminal count as Ctrl-C, so that all leave a clean state.
    for ending in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(ending) is not signal.SIG_IGN:  # as under nohup
            signal.signal(ending, _interrupt)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # not every terminal knows every sign
    completion.begin()
    try:
        app(complete_var=completion.VARIABLE)
    except CommandError as error:
        fail(str(error))
    except Exception as error:
        from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError

        if isinstance(error, HTTPClientError):
            fail(f"{error} If that was the local stack, start it again with `make up`.")
        if not isinstance(error, (BotoCoreError, ClientError)):
            raise
        fail(str(error))


def _interrupt(*_: object) -> NoReturn:
    # Not by way of SIGINT, which a shell's background has ignored.
    raise KeyboardInterrupt


def fail(message: str) -> NoReturn:
    """One clear line on stderr, and exit status 1."""
    errors.print(Text("Error:", "red"), show.plain(message), soft_wrap=True)
    sys.exit(1)


def chosen(name: str | None) -> Stack:
    """The stack that a command works on."""
    from local import stack

    return stack.load_local() if name is None else stack.load_aws(name)


def document(value: Any) -> None:
    """Print `value` as the one document on stdout."""
    # Elsewhere JSON's own escapes, which are the same text to whoever reads it.
    any_sign = (sys.stdout.encoding or "utf-8").lower().startswith("utf")
    sys.stdout.write(json.dumps(text.json_value(value), indent=2, ensure_ascii=not any_sign) + "\n")


# ---------------------------------------------------------------- the stack's life


@app.command()
def local(engine: OnEngine = None) -> None:
    """Start the stack, settle a sample order, and serve until Ctrl-C."""
    from local import lifecycle, orders

    was_up = lifecycle.healthy() is not None
    running = lifecycle.up(engine=engine)

    def is_ours() -> bool:
        return not was_up and lifecycle.is_ours(running)

    try:
        with step("Drop the sample order"):
            settled = orders.follow(running, orders.fresh_object_key(), orders.order_body(None, {}))
        show.order(settled)
        show.addresses(running)
        if not is_ours():
            output.print("\nThe stack goes on without this shell; `make down` stops it.")
            return
        output.print("\nServing until Ctrl-C.")
        while is_ours():
            time.sleep(SERVING_LOOK_SECONDS)
        output.print("The stack was stopped from another shell.")
    except KeyboardInterrupt:
        output.print()
    finally:
        if is_ours():
            with step("Stop the stack"):
                lifecycle.down()


@app.command()
def up(engine: OnEngine = None, as_json: AsJson = False) -> None:
    """Start the stack in the background; harmless when it is up already."""
    from local import lifecycle

    running = lifecycle.up(engine=engine)
    if as_json:
        document(running.status())
    else:
        show.addresses(running)


@app.command()
def down(as_json: AsJson = False) -> None:
    """Stop the stack and leave no process behind."""
    from local import lifecycle

    with step("Stop the stack"):
        stopped = lifecycle.down()
    if as_json:
        document({"stopped": stopped})
    elif not stopped:
        output.print("Nothing was running.")


@app.command()
def status(as_json: AsJson = False, on_aws: OnAws = None) -> None:
    """Show where everything is: addresses, names, versions."""
    from local import lifecycle

    found = chosen(on_aws)
    if on_aws is None and lifecycle.healthy() is None:
        raise CommandError("The local stack does not answer: start it again with `make up`.")
    if as_json:
        document(found.status())
    else:
        show.table([found.status()], sideways=True)


# ---------------------------------------------------------------- orders


@app.command()
def order(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="An order file, sent as it is. Default: the sample order, with the options below.",
        ),
    ] = None,
    object_key: Annotated[
        str | None, typer.Option(help="Where to put it. Default: a fresh key.")
    ] = None,
    amount: Annotated[str | None, typer.Option(help='Decimal, such as "19.99".')] = None,
    currency: Annotated[str | None, typer.Option(help="ISO 4217, such as EUR.")] = None,
    payment_method: Annotated[
        str | None, typer.Option(help="tok_visa, tok_declined or tok_insufficient_funds.")
    ] = None,
    deliver: Annotated[int, typer.Option(min=1, help="Deliveries of the event in all.")] = 1,
    concurrently: Annotated[
        bool, typer.Option("--concurrently", help="Send the repeats at once.")
    ] = False,
    fault: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME[:TIMES]", help=f"One of {', '.join(fault_names.NAMES)}."),
    ] = None,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Do not wait for the executions to end.")
    ] = False,
    as_json: AsJson = False,
    on_aws: OnAws = None,
) -> None:
    """Drop an order and follow it to its end.

    Examples:
      order --amount 5.00 --currency JPY
      order --deliver 8 --concurrently
      order --fault function.exit_after_charge:1
      order --fault provider.unavailable:99
    """
    from local import books, faults, orders

    try:
        armed = [faults.Fault.parse(one) for one in fault or []]
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--fault") from error
    try:
        body = orders.order_body(
            file.read_bytes() if file else None,
            {"amount": amount, "currency": currency, "payment_method": payment_method},
        )
    except CommandError as error:
        raise typer.BadParameter(str(error), param_hint="FILE") from error
    target = chosen(on_aws)
    key = object_key if object_key is not None else orders.fresh_object_key()
    with step(f"Order {key}"):
        result = orders.follow(
            target,
            key,
            body,
            times=deliver,
            concurrently=concurrently,
            armed=armed,
            wait=not no_wait,
        )
    if as_json:
        document(result)
    else:
        arns = [item["arn"] for item in result["executions"]]
        failed = {arn: books.execution(target, arn).failed_attempts() for arn in arns}
        show.order(result, failed)


@app.command(name="faults")
def faults_(
    clear: Annotated[bool, typer.Option("--clear", help="Disarm every fault.")] = False,
    as_json: AsJson = False,
    on_aws: OnAws = None,
) -> None:
    """Show the armed faults, or clear them."""
    from local import faults

    target = chosen(on_aws)
    if clear:
        with step(f"Disarm {len(faults.armed(target))}"):
            faults.clear(target)
    armed = faults.armed(target)
    document({"faults": armed}) if as_json else show.faults(armed)


@app.command()
def stop(
    execution: Annotated[str, typer.Option(help="The execution's name, or its ARN.")],
    as_json: AsJson = False,
    on_aws: OnAws = None,
) -> None:
    """Stop an execution, as an operator would in the console."""
    from local import books, orders

    target = chosen(on_aws)
    arn = target.execution_arn(execution)
    books.execution(target, arn)  # says clearly when there is none
    target.client("stepfunctions").stop_execution(executionArn=arn)
    orders.wait_for_end(target, arn)
    stopped = books.execution(target, arn).summary()
    document(stopped) if as_json else show.executions([stopped])


# ---------------------------------------------------------------- the books


@app.command()
def ledger(as_json: AsJson = False, on_aws: OnAws = None) -> None:
    """Show our ledger's records."""
    from local import books

    found = list(books.records(chosen(on_aws)))
    document({"records": found}) if as_json else show.ledger(found)


@app.command()
def charges(as_json: AsJson = False, on_aws: OnAws = None) -> None:
    """Show the provider's charges, oldest first."""
    from local import books, orders

    found = [orders.contract_charge(charge) for charge in books.charges(chosen(on_aws))]
    document({"charges": found}) if as_json else show.charges(found)


@app.command()
def queue(as_json: AsJson = False, on_aws: OnAws = None) -> None:
    """Show the failure queue's messages, and leave them where they are."""
    from local import books

    found = [message.summary() for message in books.messages(chosen(on_aws))]
    document({"messages": found}) if as_json else show.queue(found)


@app.command()
def executions(as_json: AsJson = False, on_aws: OnAws = None) -> None:
    """Show the executions, newest first, with their paths through the state machine."""
    from local import books

    target = chosen(on_aws)
    found = [books.execution(target, arn).summary() for arn in books.execution_arns(target)]
    document({"executions": found}) if as_json else show.executions(found)


@app.command()
def replay(
    idempotency_key: Annotated[str | None, typer.Option(help="One order, by its key.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every order in the queue.")] = False,
    discard: Annotated[
        bool, typer.Option("--discard", help="Delete the messages of rejected orders.")
    ] = False,
    as_json: AsJson = False,
    on_aws: OnAws = None,
) -> None:
    """Work again on what the failure queue holds, under the same idempotency keys.

    Harmless for what is settled or still running; says what it left, and why.
    """
    from local import replay as replaying

    if (idempotency_key is None) != everything:
        raise typer.BadParameter("give either --idempotency-key KEY or --all")
    target = chosen(on_aws)
    with counter("Replay") as announce:
        report = replaying.replay(
            target, idempotency_key=idempotency_key, discard=discard, announce=announce
        ).summary()
    document(report) if as_json else show.replay(report)


def number_to(most: int) -> Callable[[str], float]:
    """A parser of numbers from 0 to `most`, whose error names what was given.

    Without a bound of its own `inf` would reach a duration, and so would `nan`.
    """

    def number(given: str) -> float:
        try:
            value = float(given)
        except ValueError:
            value = math.nan
        if not 0 <= value <= most:
            raise typer.BadParameter(f"{given!r} is not a number from 0 to {most}")
        return value

    return number


@app.command()
def reconcile(
    repair: Annotated[
        bool, typer.Option("--repair", help="Start executions for what can be repaired.")
    ] = False,
    grace_seconds: Annotated[
        float | None,
        typer.Option(
            parser=number_to(86_400),
            help="Judge orders of this age on, instead of the stack's grace time.",
        ),
    ] = None,
    horizon_days: Annotated[
        float | None,
        typer.Option(
            parser=number_to(36_500),
            help="Instead of the stack's horizon; may be 0.01, less than RecordTtlDays minus 14.",
        ),
    ] = None,
    as_json: AsJson = False,
    on_aws: OnAws = None,
) -> None:
    """Compare orders, ledger and provider: what is wrong, since when, and what to do about it."""
    from local import reconcile as reconciling

    target = chosen(on_aws)
    with reconciling.progress() as announce:
        report = reconciling.reconcile(
            target,
            repair=repair,
            grace_seconds=grace_seconds,
            horizon_days=horizon_days,
            announce=announce,
        )
    document(report) if as_json else reconciling.show(report)


# ---------------------------------------------------------------- on AWS

InEnvironment = Annotated[
    str, typer.Option("--environment", metavar="NAME", help="A section of samconfig.toml.")
]


@app.command()
def deploy(
    parameters: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME=VALUE", help="Parameters for this deployment alone."),
    ] = None,
    environment: InEnvironment = "dev",
    yes: Annotated[
        bool, typer.Option("--yes", help="Ask nothing: for pipelines, after the first time.")
    ] = False,
) -> None:
    """Build and deploy to AWS, with the shell's credentials.

    The first time sam asks for every parameter; it always shows the change set before it asks.
    """
    from local import aws

    changed = dict(pair.partition("=")[::2] for pair in parameters or [] if "=" in pair)
    if len(changed) != len(parameters or []):
        raise typer.BadParameter("give each parameter once, as NAME=VALUE")
    deployed = aws.deploy(environment, changed, confirm=not yes)
    for link in aws.links(deployed):
        output.print(show.plain(f"{link['what']}\n  {link['where']}"), soft_wrap=True)


@app.command()
def delete(
    environment: InEnvironment = "dev",
    empty_buckets: Annotated[
        bool,
        typer.Option(
            "--empty-buckets",
            help="Delete the buckets too, with every version of every order and report.",
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete the stack from AWS, with the shell's credentials; says what it keeps.

    Orders, ledger, failure queue, reports and the key outlive the stack.
    """
    from local import aws, stack
    from local import delete as deletion

    wanted = aws.environment(environment)
    doomed = stack.load_aws(wanted.stack_name, wanted.region)
    found = deletion.kept(doomed)
    going = deletion.buckets(found) if empty_buckets else []
    staying = [one for one in found if one not in going]
    left = deletion.unfinished(doomed)
    errors.print(f"Stack {doomed.name} in {doomed.region} will be deleted.")
    errors.print(f"Kept: {', '.join(f'{one.name} ({one.id})' for one in staying) or 'nothing'}.")
    for one in going:
        warning = Text("Deleted for good, with every version in it:", "red")
        errors.print(warning, f"{one.name} ({one.id}).")
    if left.open_records or left.queued:
        errors.print(
            Text("Not settled:", "red"),
            f"{left.open_records} open orders, {left.queued} messages in the failure queue. "
            "Nothing will look after them any more.",
        )
    if not yes and typer.prompt("Type the stack's name to go on", err=True) != doomed.name:
        raise CommandError("That is not its name: nothing was deleted.")
    with step(f"Delete {doomed.name}"):
        deletion.delete_stack(doomed)
    emptied = {}
    for one in going:
        with step(f"Delete {one.id}"):
            emptied[one.id] = deletion.remove_bucket(doomed, one.id)
    if as_json:
        document(
            {
                "deleted": doomed.name,
                "kept": [one.summary() for one in staying],
                "emptied": emptied,
            }
        )


# ---------------------------------------------------------------- the page and the picture


@app.command()
def page(
    port: Annotated[int, typer.Option(min=0, max=65_535, help="0: a free one.")] = 0,
    allow_writes: Annotated[
        bool, typer.Option("--allow-writes", help="On AWS: show the buttons that change things.")
    ] = False,
    on_aws: OnAws = None,
) -> None:
    """Serve the counting-house page on this machine until Ctrl-C."""
    from local.page.serve import serve
    from local.ports import free_port

    target = chosen(on_aws)
    chosen_port = free_port(port)
    output.print(f"http://127.0.0.1:{chosen_port}")
    serve(target, chosen_port, allow_writes=allow_writes)


@app.command(name="picture")
def picture_(as_json: AsJson = False) -> None:
    """Draw the state machine again, for the docs."""
    from local import picture

    changed = picture.write()
    if as_json:
        document({"file": str(picture.PICTURE), "changed": changed})
    else:
        output.print(f"{picture.PICTURE} {'written' if changed else 'was current'}")


# ---------------------------------------------------------------- the lab


@app.command()
def sim(as_json: AsJson = False) -> None:
    """Play every handler against every fault, offline: who charges how often for one order."""
    from local.lab import show as lab_show
    from local.lab import tallies

    with step("Play the handlers"):
        rows = tallies.sim()
    document({"rows": [row.document() for row in rows]}) if as_json else lab_show.sim(rows)


@app.command()
def limits(as_json: AsJson = False) -> None:
    """Play the window between charge and commit, and what closes it."""
    from local.lab import show as lab_show
    from local.lab import tallies

    with step("Play the handlers"):
        rows = tallies.limits()
    document({"rows": [row.document() for row in rows]}) if as_json else lab_show.limits(rows)


@app.command()
def lab(
    write_docs: Annotated[
        bool, typer.Option("--write-docs", help="Put the tables into docs/lab.md and README.md.")
    ] = False,
    delete: Annotated[
        bool, typer.Option("--delete", help="With --stack: delete that stack instead.")
    ] = False,
    as_json: AsJson = False,
    on_aws: Annotated[
        str | None,
        typer.Option(
            "--stack", metavar="NAME", help="The lab's own stack on AWS; without charge-once's row."
        ),
    ] = None,
) -> None:
    """Measure every handler against every fault, as real functions on the local stack.

    Takes about two minutes. Starts the local stack when none is up, and then stops it again.
    """
    from local import stack
    from local.lab import docs, run, tallies
    from local.lab import show as lab_show

    if (delete and on_aws is None) or (write_docs and on_aws is not None):
        raise typer.BadParameter("--delete needs --stack, and --write-docs the local stack")
    if delete and on_aws:
        run.delete(stack.load_aws(on_aws))
        return
    rows = run.on_aws(on_aws) if on_aws else run.locally()
    if write_docs:
        docs.write(docs.measured_blocks(rows) | docs.played_blocks(tallies.sim()))
        docs.write(docs.readme_blocks(rows), docs.README)
    document({"rows": [row.document() for row in rows]}) if as_json else lab_show.lab(rows)


# ---------------------------------------------------------------- chaos


@app.command()
def chaos(
    orders_: Annotated[
        int | None, typer.Option("--orders", min=1, help="How many orders. Default: 2000.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Default: a fresh one, which is told.")] = None,
    in_process: Annotated[
        bool, typer.Option("--in-process", help="Simulated schedules on moto, no stack.")
    ] = False,
    schedule: Annotated[
        int | None,
        typer.Option(help="Play one simulated schedule again, shrunk to what matters if it fails."),
    ] = None,
    exhaustive: Annotated[
        bool, typer.Option("--exhaustive", help="No dice: every interleaving, on one order.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Break everything at random, repair, and compare the books. Takes some minutes.

    Runs on a stack of its own, so that nobody else's orders are among those that suffer.
    """
    from local.chaos import show as chaos_show

    mode = "--exhaustive" if exhaustive else "--schedule" if schedule is not None else None
    with_dice = in_process or orders_ is not None or seed is not None
    if mode and (with_dice or (exhaustive and schedule is not None)):
        raise typer.BadParameter("takes none of chaos's other options but --json", param_hint=mode)
    if schedule is not None:
        from local.chaos import shrink

        story = shrink.story_of(schedule)
        if as_json:
            document({"schedule": schedule, "story": story})
        else:
            output.print(show.plain(story), soft_wrap=True)
        return
    if exhaustive:
        from local.chaos import explorer

        explorations = explorer.explore_all()
        show_it = document if as_json else chaos_show.explorations
        show_it({"explorations": explorations})
        return
    orders_ = orders_ or 2000
    seed = seed if seed is not None else secrets.randbelow(1_000_000)
    errors.print(f"Seed {seed}.")
    if in_process:
        from local.chaos import schedules

        with counter("Schedules") as announce:
            report = schedules.run(orders_, seed, announce)
    else:
        from local.chaos import campaign

        report = campaign.run(orders_, seed)
    document(report.document()) if as_json else chaos_show.report(report)


# ---------------------------------------------------------------- the shell


@app.command("completion")
def completion_(
    shell: Annotated[completion.Shell, typer.Argument(help="The shell that shall evaluate it.")],
) -> None:
    """Print what gives these commands a short name, and completion, in your shell.

    In bash: eval "$(.venv/bin/python -m local completion bash)"; then: charge-once order
    """
    sys.stdout.write(completion.script(shell))
