"""The pipeline inside this process: the real definition and functions on moto's interpreter.

No socket, no child process, no waiting: an execution takes some 20 ms and ends before `deliver`
returns. One order after the other: moto's conditional writes are not atomic under threads, so
nothing about races can be learnt here.

    with InProcess() as pipeline:                      # the real charge function and provider
        event = pipeline.drop("orders/a.json", body)   # what S3 would send for the new version
        run = pipeline.deliver(event)
        run.status, run.error, run.path, run.output, run.waits
        pipeline.ledger(), pipeline.queue(), pipeline.charges()

`InProcess(charge=...)` puts a callable in the place of the charge function: it gets the payload
of the state `Charge` and returns the function's answer, or raises: an exception of any class
becomes the error of that name, `TaskFailure` an error of any name and Cause.

`pipeline.around` sees every call that the state machine makes, and may fail it before or after it
has happened:

    def lose_the_answer(call, proceed):
        answer = proceed()                             # the effect takes place
        if call.state == "MarkDone":
            raise TaskFailure("States.Timeout")        # and nobody hears of it
        return answer
"""

from local.inprocess.engine import Around, Call, TaskFailure
from local.inprocess.pipeline import InProcess, Run
from local.inprocess.provider import InProcessProvider

__all__ = ["Around", "Call", "InProcess", "InProcessProvider", "Run", "TaskFailure"]
