"""`bench NAME`: measurements, each with the machine and the versions it was taken on."""

from __future__ import annotations

import typer

from local.bench import coldstart, cost, orders, reconcile, table, workflow

app = typer.Typer()  # its help stands in local.cli, which imports this when it is asked for
app.command(name="reconcile")(reconcile.command)
app.command(name="coldstart")(coldstart.command)
app.command(name="cost")(cost.command)
app.command(name="orders")(orders.command)
app.command(name="workflow")(workflow.command)
app.command(name="all")(table.command)
