"""`lab`: the measurement with its stacks around it."""

from __future__ import annotations

from local import lifecycle
from local.delete import delete_stack, remove_bucket
from local.errors import CommandError
from local.lab import show
from local.lab.measure import deploy_lab, measure
from local.lab.rows import Row
from local.progress import step
from local.stack import Stack, load_aws


def locally() -> list[Row]:
    """Measure on the local stack. One that had to be started for this is stopped again."""
    running = lifecycle.healthy()
    started_here = running is None
    running = running or lifecycle.up()
    try:
        with step("Deploy the lab beside it (sam build, sam deploy)"):
            lab_stack = deploy_lab(running)
        with step("Measure"), show.live() as board:
            return measure(running, lab_stack, board.report)
    finally:
        if started_here:
            with step("Stop the stack"):
                lifecycle.down()


def on_aws(name: str) -> list[Row]:
    """Measure the lab's handlers on the stack `name` on AWS, which `make deploy-lab` made."""
    label = "Measure; Lambda waits one minute, then two, before it tries again"
    with step(label), show.live() as board:
        return measure(None, load_aws(name), board.report)


def delete(lab_stack: Stack) -> None:
    """Delete the lab's stack, with every version of what lies in its bucket.

    Raises CommandError when `lab_stack` is no lab: nothing of it is touched then.
    """
    try:
        bucket = lab_stack.outputs["LabBucket"]
    except KeyError:
        raise CommandError(f"{lab_stack.name} is not a stack of the lab.") from None
    # CloudFormation deletes no bucket that holds something, and does not mind one that is gone.
    with step(f"Delete {bucket} with what lies in it"):
        remove_bucket(lab_stack, bucket)
    with step(f"Delete {lab_stack.name}"):
        delete_stack(lab_stack)
