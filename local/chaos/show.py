"""A campaign's report for a person at a terminal."""

from __future__ import annotations

from rich.text import Text

from local.chaos.report import Report
from local.progress import output
from local.show import BAD, GOOD, Json, plain, table


def explorations(found: Json) -> None:
    """What was seen from each beginning, and the stories of broken promises."""
    seen = found["explorations"]
    table([exploration | {"violations": len(exploration["violations"])} for exploration in seen])
    for exploration in seen:
        for story in exploration["violations"]:
            output.print(Text("broken", BAD), plain(story))


def report(found: Report) -> None:
    """What was broken, and what that did."""
    table(
        [
            {"boundary": boundary, "faults": sum(kinds.values()), "kinds": ", ".join(kinds)}
            for boundary, kinds in found.by_boundary.items()
        ],
        empty="No fault was injected.",
    )
    document = found.document()
    output.print(
        f"{document['orders']} orders in {document['deliveries']} deliveries, "
        f"{document['faults_injected']} faults at {document['boundaries']} boundaries, "
        f"{document['seconds']} s, seed {found.seed}"
    )
    verdict = found.verdict
    output.print(
        f"{verdict.settled} settled, {verdict.open_and_reported} open and reported, "
        f"{verdict.lost} lost, {verdict.double_charges} charged twice"
    )
    for violation in verdict.violations:
        output.print(Text("broken", BAD), plain(violation))
    if not verdict.violations:
        output.print("Every promise was kept.", style=GOOD)
