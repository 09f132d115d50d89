"""The counting-house as a web application: pages, their JSON twins, live updates, buttons."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import jinja2
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from local import fault_names, picture
from local.page import detail, drawing, history, tour, words
from local.page.bench import MOST_DELIVERIES, PAYMENT_METHODS, Bench
from local.page.buttons import Buttons
from local.page.index import Index, Row, Run
from local.page.jobs import Job, Jobs
from local.page.reader import UNREACHABLE, Reader
from local.page.security import Guard, Token, form_of
from local.page.source import Source
from local.page.verdict import GROUPS
from local.page.watch import Watch
from local.text import json_value, money, well_formed

Json = dict[str, Any]

HERE = Path(__file__).parent
CHARGES_ON_A_PAGE = 50
#: An answer waits so long for books that nobody has read lately: a reading of 10,000 records on
#: AWS takes about as long.
PATIENCE_SECONDS = 20.0
#: A page waits only for what takes no longer than a small stack's first reading: it fills itself.
GLIMPSE_SECONDS = 1.0
FILTERS = GROUPS | {"found": "Found by the reconciler"}


@dataclass(frozen=True)
class About:
    """The stack that the page shows. `bench` is None where nothing may be changed."""

    name: str
    region: str
    on_aws: bool
    machine_url: str | None  # where a person can look at the executions
    console_name: str

    def execution_url(self, arn: str) -> str | None:
        """The address that shows one execution: exactly it on AWS, its machine in StackPort."""
        if self.on_aws:
            return (
                f"https://{self.region}.console.aws.amazon.com/states/home?region={self.region}"
                f"#/v2/executions/details/{quote(arn, safe=':')}"
            )
        return self.machine_url


class CountingHouse:
    """The application's parts and its pages."""

    def __init__(
        self,
        about: About,
        source: Source,
        bench: Bench | None,
        *,
        ignore_before: datetime | None = None,
        remember_reset: Callable[[datetime], None] = lambda _: None,
    ) -> None:
        """`remember_reset` is told when the stack was emptied, for pages started later."""
        self.about = about
        self.index = Index()
        self.reader = Reader(source, self.index, ignore_before=ignore_before)
        self.watch = Watch(self.reader)
        self.token = Token()
        self._source = source
        self._buttons = (
            None if bench is None else Buttons(bench, self.index, self.reader, remember_reset)
        )
        self.jobs = Jobs(self._job_changed)
        self._templates = _environment()
        self._templates.globals.update(
            about=about, token=self.token.value, writable=bench is not None
        )

    def app(self) -> Starlette:
        """The ASGI application."""
        pages = {
            "/": self.orders,
            "/order": self.order,
            "/provider": self.provider,
            "/tour": self.tour,
            "/bench": self.bench,
        }
        routes = [Route(path, page) for path, page in pages.items()]
        routes += [
            Route("/orders.json" if path == "/" else f"{path}.json", page)
            for path, page in pages.items()
        ]
        return Starlette(
            routes=[
                *routes,
                Route("/events", self.events),
                Route("/healthz", _healthz),
                Route("/bench/{action}", self.press, methods=["POST"]),
                Mount("/static", StaticFiles(directory=HERE / "static")),
            ],
            middleware=[Middleware(Guard)],
            lifespan=self._lifespan,
            exception_handlers={404: self._not_found},
        )

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        watching = asyncio.create_task(self.watch.run())
        try:
            yield
        finally:
            watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watching

    def _job_changed(self) -> None:
        self.watch.poke()
        self.watch.tell()

    # ---------------------------------------------------------------- pages

    async def _look(self, request: Request) -> None:
        """A script gets what is known when the books were read; a person sees the page fill."""
        await self.watch.fresh(PATIENCE_SECONDS if _wants_json(request) else GLIMPSE_SECONDS)

    async def orders(self, request: Request) -> Response:
        """The list: every order of both books, newest first."""
        await self._look(request)
        query = request.query_params
        text, group = query.get("q", ""), query.get("group", "")
        page = self.index.page(
            text=text,
            group=group if group in FILTERS else "",
            number=_page_number(query.get("page")),
        )
        if self.reader.look_at(page.rows):
            self.watch.poke()
        document = {
            "total": page.total,
            "matches": page.matches,
            "page": page.number,
            "pages": page.pages,
            "counts": dict(page.counts),
            "orders": [row.document() for row in page.rows],
        }
        return self._answer(
            request,
            "orders.html",
            document,
            page=page,
            text=text,
            group=group,
            filters=FILTERS,
            address=_address,
        )

    async def order(self, request: Request) -> Response:
        """One order, from every book."""
        await self.watch.fresh(PATIENCE_SECONDS)
        key = request.query_params.get("key", "")
        found = await run_in_threadpool(detail.read, self._source, self.index, key)
        if found is None and not self.reader.complete:
            return self._refusal(request, 503, "The books are still being read: try again.")
        if found is None:
            return self._missing(request, f"No book knows the key {words.shown(key)}.")
        shown = _chosen_run(found, request.query_params.get("run"))
        return self._answer(
            request,
            "order.html",
            found.document(),
            detail=found,
            row=found.row,
            shown=shown,
            graph=drawing.graph(shown.steps or ()) if shown else None,
            fault_names=fault_names.NAMES,
        )

    async def provider(self, request: Request) -> Response:
        """The provider's side: its charges, the keys it saw, the faults that are armed."""
        await self._look(request)
        text = request.query_params.get("q", "").strip().casefold()
        charges = self.index.charges()
        if text:
            charges = [charge for charge in charges if text in _haystack(charge)]
        pages = max(1, -(-len(charges) // CHARGES_ON_A_PAGE))
        number = min(_page_number(request.query_params.get("page")), pages)
        visible = charges[(number - 1) * CHARGES_ON_A_PAGE : number * CHARGES_ON_A_PAGE]
        self.reader.look_at_requests(str(charge["reference"]) for charge in visible)
        self.reader.look_at_faults()
        self.watch.poke()
        key = request.query_params.get("key", "").strip()
        requests, problem = await run_in_threadpool(self._requests, key)
        return self._answer(
            request,
            "provider.html",
            {
                "total": len(charges),
                "page": number,
                "pages": pages,
                "charges": [
                    charge | {"requests": self.index.request_counts(str(charge["reference"]))}
                    for charge in visible
                ],
                "faults": list(self.index.faults),
                "idempotency_key": key or None,
                "requests": requests,
            },
            charges=visible,
            taken=_taken(charges),
            total=len(charges),
            number=number,
            pages=pages,
            text=text,
            armed=self.index.faults,
            why_no_faults=self.index.why_no_faults,
            problem=problem,
            key=key,
            requests=requests,
            counts_of=self.index.request_counts,
            address=_address,
        )

    async def tour(self, request: Request) -> Response:
        """The guided tour."""
        await self._look(request)
        buttons = self._buttons
        scenes: list[tuple[int, tour.Scene, Job | None, list[Row]]] = [
            (
                number,
                scene,
                buttons.scenes.get(scene.name) if buttons else None,
                buttons.rows_of(scene.name) if buttons else [],
            )
            for number, scene in enumerate(tour.SCENES, start=1)
        ]
        for _, _, _, rows in scenes:
            if self.reader.look_at(rows):
                self.watch.poke()
        document = {
            "scenes": [
                {
                    "name": scene.name,
                    "title": scene.title,
                    "story": list(scene.story),
                    "watch": scene.watch,
                    "job": job.document() if job else None,
                    "orders": [row.document() for row in rows],
                }
                for _, scene, job, rows in scenes
            ]
        }
        return self._answer(request, "tour.html", document, scenes=scenes)

    async def bench(self, request: Request) -> Response:
        """The buttons, and what they did."""
        await self._look(request)
        self.reader.look_at_faults()
        self.watch.poke()
        running = [run for run in self.index.runs() if run.running]
        return self._answer(
            request,
            "bench.html",
            {
                "jobs": [job.document() for job in self.jobs.latest],
                "faults": list(self.index.faults),
                "running": [run.arn for run in running],
            },
            jobs=list(self.jobs.latest),
            armed=self.index.faults,
            why_no_faults=self.index.why_no_faults,
            running=running,
            fault_names=fault_names.NAMES,
            payment_methods=PAYMENT_METHODS,
            most=MOST_DELIVERIES,
        )

    async def events(self, request: Request) -> Response:
        """Server-sent events: a number that is another one whenever a page should look again."""

        async def stream() -> AsyncIterator[str]:
            async with contextlib.aclosing(self.watch.changes()) as changes:
                async for told in changes:
                    yield f"data: {told}\n\n"

        return StreamingResponse(stream(), media_type="text/event-stream")

    def _requests(self, key: str) -> tuple[list[Json], str | None]:
        try:
            return (self._source.requests_of(key) if key else []), None
        except UNREACHABLE as error:
            return [], str(error)

    # ---------------------------------------------------------------- buttons

    async def press(self, request: Request) -> Response:
        """A button: sets a job going and goes back to where it was pressed."""
        if self._buttons is None:
            return self._refusal(
                request, 403, "This page only shows: start it with --allow-writes."
            )
        try:
            fields = await form_of(request)
        except ValueError as error:
            return self._refusal(request, 400, f"This is no form of this page: {error}.")
        if not self.token.fits(fields.pop("token", "")):
            return self._refusal(
                request, 403, "This form is from an earlier run of the page: reload and try again."
            )
        back = fields.pop("back", "/bench")
        scene = fields.pop("scene", "")
        try:
            title, work = self._buttons.press(request.path_params["action"], fields)
        except ValueError as error:
            return self._refusal(request, 400, str(error))
        job = self.jobs.start(title, work)
        if tour.scene(scene):
            self._buttons.scenes[scene] = job
        if _wants_json(request):
            return JSONResponse(json_value(job.document()), 202)
        return RedirectResponse(_own_path(back), 303)

    # ---------------------------------------------------------------- answers

    def _answer(self, request: Request, template: str, document: Json, **context: Any) -> Response:
        """The page, or its JSON twin when that is what was asked for."""
        if _wants_json(request):
            return JSONResponse(
                json_value(
                    document | {"complete": self.reader.complete, "problem": self.reader.problem}
                )
            )
        html = self._templates.get_template(template).render(
            context
            | {
                "path": request.url.path,
                "here": _here(request),
                "twin": _twin(request),
                "trouble": self.reader.problem,
                "ready": self.reader.ready,
            }
        )
        return HTMLResponse(well_formed(html))

    def _missing(self, request: Request, why: str) -> Response:
        return self._refusal(request, 404, why)

    def _refusal(self, request: Request, status: int, why: str) -> Response:
        if _wants_json(request):
            return JSONResponse(json_value({"error": why}), status)
        html = self._templates.get_template("refusal.html").render(
            path=request.url.path, here="/", twin=None, trouble=None, ready=True, why=why
        )
        return HTMLResponse(well_formed(html), status)

    async def _not_found(self, request: Request, _: Exception) -> Response:
        return self._missing(request, "There is no such page.")


async def _healthz(_: Request) -> Response:
    return PlainTextResponse("ok\n")


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "money": money,
        "shown": words.shown,
        "typeset": words.typeset,
        "moment": words.moment,
        "clock": words.clock,
        "cause": _cause,
        "precise": words.precise_clock,
        "seconds": words.seconds,
        "short": words.short,
        "status": words.status,
        "query": lambda text: quote(well_formed(str(text)), safe=""),
    }
    environment.globals["beads"] = drawing.beads
    # Compiled and drawn before the first request, which would wait for it.
    for name in environment.list_templates():
        environment.get_template(name)
    picture.charge_order()
    return environment


def _cause(caught: object) -> str:
    """What a message of the failure queue says about the error, for reading."""
    cause = caught.get("Cause") if isinstance(caught, dict) else None
    return history.readable_cause(cause if isinstance(cause, str) else None) or str(caught)


def _wants_json(request: Request) -> bool:
    accept = request.headers.get("accept", "")
    return request.url.path.endswith(".json") or accept.startswith("application/json")


def _page_number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 9 else 1


def _chosen_run(found: detail.Detail, arn: str | None) -> Run | None:
    by_arn = {run.arn: run for run in found.runs}
    told_by = found.row.told_by
    chosen = by_arn.get(arn or "") or (by_arn.get(told_by.arn) if told_by else None)
    return chosen or (found.runs[-1] if found.runs else None)


def _haystack(charge: Json) -> str:
    values = [charge["id"], charge["reference"], *(charge.get("metadata") or {}).values()]
    return "\n".join(map(str, values)).casefold()


def _taken(charges: list[Json]) -> dict[str, int]:
    """Succeeded charges by currency, summed in minor units."""
    sums: dict[str, int] = {}
    for charge in charges:
        if charge["status"] == "succeeded":
            sums[charge["currency"]] = sums.get(charge["currency"], 0) + charge["amount"]
    return sums


def _address(path: str, **query: object) -> str:
    """A path with those query fields that are set."""
    fields = {name: value for name, value in query.items() if value not in {"", None, 1}}
    return f"{path}?{urlencode(fields)}" if fields else path


def _here(request: Request) -> str:
    query = request.url.query
    return request.url.path + (f"?{query}" if query else "")


def _twin(request: Request) -> str:
    path = "/orders" if request.url.path == "/" else request.url.path
    query = request.url.query
    return f"{path}.json" + (f"?{query}" if query else "")


def _own_path(back: str) -> str:
    """`back` when it is a path of this page, so that no form can send a person elsewhere."""
    parts = urlsplit(back)
    own = back.startswith("/") and not back.startswith(("//", "/\\")) and not parts.netloc
    return back if own else "/bench"
