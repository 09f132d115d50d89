"""Every interleaving of a few actors at work on one order, with failures at every step.

Two deliveries, a replay and a reconciler with repairs, and the executions that these start, each
run by `scripts` from the real definition and the real functions. A step is the answer to one
question: the ledger's, the queue's, the provider's or Step Functions'. In every state every actor
may take its next step, or be stopped there for good, or suffer a fault, as long as the budget for
such misfortunes lasts. States are visited once each; the promise about every write is checked on
every step. Where no actor can go on, repair runs without misfortune until it changes nothing, and
then the order must be settled, once.

What answers is real too: the ledger is moto's DynamoDB, asked one question at a time, and the
provider is its own rules over its own store. Each answer is computed once for each state of the
book that gives it.

Steps that nobody else can notice are taken at once, which leaves out interleavings that differ in
nothing: deleting one's own messages, asking about an execution that has ended.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from unittest.mock import patch

from botocore.exceptions import ClientError
from provider import core
from provider.api import Api, Request
from provider.core import Provider
from provider.sqlite import SqliteStore

from local import progress
from local.books import plain_record
from local.chaos.invariants import TERMINAL, Books, Version, Writer, judge, judge_write
from local.chaos.scripts import BODY, KEY, NOW, Answer, End, Question, Scripts
from local.inprocess.provider import API_KEY

Json = dict[str, Any]

#: A call is tried seven times by the state that makes it, a charge nine times.
_UNTIL_RETRIES_END = 9
#: Repairs that it takes at most: a replay and a pass, and again for what the first left queued.
_REPAIRS = 6


class Actor:
    """Somebody, and all the answers so far. There is one object for each such history, so that
    two worlds are compared at the cost of a few pointers.

    `stopped`: an execution that was aborted; `last` is the call that it was making, if that
    arrives all the same. `over`: how the actor ended before its time.
    """

    __slots__ = (
        "_following", "answers", "asked", "given", "kind", "last", "name", "over", "stopped"
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        kind: str,
        given: str = "",
        answers: tuple[Answer, ...] = (),
        *,
        stopped: bool = False,
        last: Question | None = None,
        over: End | None = None,
    ) -> None:
        self.name = name
        self.kind = kind  # execution, replay or reconcile
        self.given = given
        self.answers = answers
        self.stopped = stopped
        self.last = last
        self.over = over
        self.asked: Question | End | None = over
        self._following: dict[object, Actor] = {}

    def told(self, answer: Answer) -> Actor:
        """The same one, with one more answer."""
        return self._follow(
            answer,
            lambda: Actor(
                self.name, self.kind, self.given, (*self.answers, answer), stopped=self.stopped
            ),
        )

    def stop(self, last: Question | None = None) -> Actor:
        """The same one, aborted; `last` is under way and arrives at some time."""
        return self._follow(
            last or "stop",
            lambda: Actor(self.name, self.kind, self.given, self.answers, stopped=True, last=last),
        )

    def crash(self) -> Actor:
        """The same one, dead."""
        return self._follow(
            "crash",
            lambda: Actor(self.name, self.kind, self.given, self.answers, over=End("crashed")),
        )

    def _follow(self, what: object, make: Callable[[], Actor]) -> Actor:
        if what not in self._following:
            self._following[what] = make()
        return self._following[what]


class World(NamedTuple):
    """All there is. `charged` is what the provider has worked on, in order; `hidden` are messages
    that a replay has taken. `misfortunes` is how many may still happen."""

    record: str | None
    charged: tuple[str, ...]
    queue: tuple[str, ...]
    hidden: tuple[str, ...]
    actors: tuple[Actor, ...]
    misfortunes: int


@dataclass
class Result:
    """What an exploration has seen. `violations` holds stories: steps, and what they led to."""

    states: int = 0
    steps: int = 0
    ends: int = 0
    violations: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Beginning:
    """Where a story begins: what earlier runs, all of them dead, have left behind."""

    name: str
    claimed: bool
    charged: bool
    queued: bool


BEGINNINGS = (
    Beginning("fresh", claimed=False, charged=False, queued=False),
    Beginning("never claimed, queued", claimed=False, charged=False, queued=True),
    Beginning("claimed and died, queued", claimed=True, charged=False, queued=True),
    Beginning("charged and died, queued", claimed=True, charged=True, queued=True),
)

#: The execution that died before the story begins.
DEAD = "dead-before"


class Explorer:
    """Explores one order's stories with `scripts`."""

    def __init__(self, scripts: Scripts) -> None:
        self.scripts = scripts
        place = scripts.event["detail"]
        self._version = Version(place["bucket"]["name"], KEY, place["object"]["version-id"], BODY)
        self._actor = functools.cache(Actor)
        self._next = functools.cache(self._ask_script)
        self._from_ledger = functools.cache(self._ask_ledger)
        self._from_provider = functools.cache(self._ask_provider)
        self._after = functools.cache(self._repair)

    def explore(
        self,
        beginning: Beginning,
        *,
        deliveries: int = 2,
        replays: int = 1,
        reconciles: int = 1,
        misfortunes: int = 1,
        until_violation: bool = False,
    ) -> Result:
        """Visit every state that can be reached from `beginning`."""
        result = Result()
        event = json.dumps(self.scripts.event)
        actors = [
            *(self._actor(f"delivery-{n + 1}", "execution", event) for n in range(deliveries)),
            *(self._actor(f"replay-{n + 1}", "replay", "") for n in range(replays)),
            *(self._actor(f"reconcile-{n + 1}", "reconcile", f"p{n}") for n in range(reconciles)),
        ]
        first = self.begin(beginning)._replace(actors=tuple(actors), misfortunes=misfortunes)
        seen = {first}
        came_from: dict[World, tuple[World, str]] = {}
        waiting = [first]
        while waiting:
            world = waiting.pop()
            result.states += 1
            is_end = True
            for step, following, wrong in self._steps(world):
                is_end = is_end and step.startswith("misfortune")
                result.steps += 1
                if wrong:
                    story = [*_story(world, came_from), step]
                    result.violations.append("; ".join(story) + f" => {wrong}")
                    if until_violation:
                        return result
                    continue
                if following not in seen:
                    seen.add(following)
                    came_from[following] = (world, step)
                    waiting.append(following)
            if is_end:
                result.ends += 1
                for what in self._after(_settled_down(world)):
                    steps = "; ".join(_story(world, came_from))
                    result.violations.append(f"{steps}; repair => {what}")
                    if until_violation:
                        return result
        return result

    def run_alone(self, world: World, name: str, execution_input: Json) -> tuple[World, End]:
        """One execution to its end, while everybody else stands still."""
        actor = self._actor(name, "execution", json.dumps(execution_input))
        following, wrong = self._run_out(world._replace(actors=(actor,)))
        end = self._asked(following.actors[0])
        if wrong or not isinstance(end, End):
            raise RuntimeError(f"bug: {name} came to no good end: {wrong or end}")
        return following._replace(actors=world.actors), end

    # ---------------------------------------------------------------- steps

    def _steps(self, world: World) -> Iterator[tuple[str, World, str | None]]:
        """Every step that can follow, as (what, where it leads, what is wrong with it)."""
        active = [
            (number, asked)
            for number, actor in enumerate(world.actors)
            if isinstance(asked := self._asked(actor), Question)
        ]
        for number, asked in active:
            if self._is_unnoticed(world, asked):
                active = [(number, asked)]
                break
        else:
            active = _first_comes_first(world, active)
        for number, asked in active:
            yield from self._honest(world, number, asked)
            if world.misfortunes:
                poorer = world._replace(misfortunes=world.misfortunes - 1)
                yield from self._misfortunes(poorer, number, asked)

    def _is_unnoticed(self, world: World, question: Question) -> bool:
        """Whether the order of this step and anybody else's makes no difference to anybody."""
        match question.service, question.action:
            case "queue", "delete_message" | "change_message_visibility_batch":
                return True  # of messages that only this replay has
            case "queue", "get_queue_attributes":
                return True  # a number in its report
            case "executions", "start_execution":
                return True  # no record names the new run before it has claimed
            case "executions", _:
                arn = question.parameters["executionArn"]
                return not self._runs(world, arn)  # how it ended will not change
            case "ledger", _:
                # Settled for good: every step that would change it is a violation by itself.
                return world.record is not None and _status_of(world.record) in TERMINAL
        return False

    def _asked(self, actor: Actor) -> Question | End:
        if actor.asked is None:
            asked = self._next(actor.kind, actor.name, actor.given, actor.answers)
            # A stopped run makes no further call; its function, which is another process, may.
            if (
                actor.stopped
                and isinstance(asked, Question)
                and asked.service != "provider"
                and asked != actor.last
            ):
                asked = End("ABORTED")
            actor.asked = asked
        return actor.asked

    def _honest(
        self, world: World, number: int, question: Question
    ) -> Iterator[tuple[str, World, str | None]]:
        actor = world.actors[number]
        told = self._answer(world, actor, question)
        if told is not None:
            answer, following, wrong = told
            yield f"{actor.name} {_words(question)}", _tell(following, number, answer), wrong

    def _misfortunes(
        self, world: World, number: int, question: Question
    ) -> Iterator[tuple[str, World, str | None]]:
        actor = world.actors[number]
        words = f"misfortune of {actor.name} at {_words(question)}"
        if actor.kind != "execution":
            ended = actor.crash()
            yield f"{words}: crashed", _put(world, number, ended), None
            return
        if not actor.stopped:
            yield f"{words}: stopped", _put(world, number, actor.stop()), None
            if question.service != "provider":
                late = _put(world, number, actor.stop(question))
                yield f"{words}: stopped, the call arrives all the same", late, None
        told = self._answer(world, actor, question)
        assert told is not None  # noqa: S101 - only replays wait
        _, following, wrong = told
        if question.service == "provider":
            for loss in (Answer(died=True), Answer(unheard=True)):
                kind = "dies" if loss.died else "hears nothing"
                yield f"{words}: {kind} before", _tell(world, number, loss), None
                yield f"{words}: {kind} after", _tell(following, number, loss), wrong
        else:
            lost = Answer(error=_sdk_error(question))
            yield f"{words}: answer lost", _tell(following, number, lost), wrong
            gone = self._unavailable(world, number, question)
            yield f"{words}: unavailable", gone, None

    def _unavailable(self, world: World, number: int, question: Question) -> World:
        """The same call fails until the state gives up."""
        for _ in range(_UNTIL_RETRIES_END):
            world = _tell(world, number, Answer(error=_sdk_error(question)))
            if self._asked(world.actors[number]) != question:
                return world
        raise RuntimeError(f"bug: {question} is retried for ever")

    # ---------------------------------------------------------------- answers

    def _answer(
        self, world: World, actor: Actor, question: Question
    ) -> tuple[Answer, World, str | None] | None:
        """What the outside world says and becomes; None while it says nothing yet."""
        match question.service:
            case "ledger":
                record, answer = self._from_ledger(world.record, question)
                wrong = self._judge(world, actor, record)
                return answer, world._replace(record=record), wrong
            case "provider":
                charged, answer = self._from_provider(world.charged, question)
                wrong = self._double(charged) if charged != world.charged else None
                return answer, world._replace(charged=charged), wrong
            case "queue":
                answer, following = self._from_queue(world, question)
                return answer, following, None
            case "executions":
                told = self._from_executions(world, question)
                return None if told is None else (*told, None)
        raise RuntimeError(f"bug: nobody answers {question}")

    def _judge(self, world: World, actor: Actor, record: str | None) -> str | None:
        if record == world.record:
            return None
        given = json.loads(actor.given) if actor.kind == "execution" else {}
        writer = Writer(self.scripts.arn(actor.name), given.get("replay", {}).get("owner"))
        return judge_write(
            writer, _plain(world.record), _plain(record), lambda arn: self._runs(world, arn)
        )

    def _runs(self, world: World, arn: str) -> bool:
        return self._status(world, arn).status == "RUNNING"

    def _status(self, world: World, arn: str) -> End:
        for actor in world.actors:
            if self.scripts.arn(actor.name) == arn:
                if actor.stopped:
                    return End("ABORTED")
                asked = self._asked(actor)
                return asked if isinstance(asked, End) else End("RUNNING")
        return End("FAILED", "ProviderUnavailable")  # who died before the story began

    def _ask_script(
        self, kind: str, name: str, given: str, answers: tuple[Answer, ...]
    ) -> Question | End:
        match kind:
            case "execution":
                return self.scripts.execution(name, given, answers)
            case "replay":
                return self.scripts.replay(answers)
        return self.scripts.reconcile(given, answers)

    def _ask_ledger(self, record: str | None, question: Question) -> tuple[str | None, Answer]:
        """Moto's DynamoDB, with this record in the table and nothing else."""
        client, table = self.scripts.client("dynamodb"), self.scripts.table
        key = {"pk": {"S": self._version.reference}}
        if record is None:
            client.delete_item(TableName=table, Key=key)
        else:
            client.put_item(TableName=table, Item=json.loads(record))
        try:
            result = getattr(client, question.action)(**question.parameters)
        except ClientError as error:
            return record, Answer(error=f"DynamoDB.{error.response['Error']['Code']}")
        result.pop("ResponseMetadata")
        item = client.get_item(TableName=table, Key=key, ConsistentRead=True).get("Item")
        after = None if item is None else json.dumps(item, sort_keys=True)
        return after, Answer(json.dumps(result, sort_keys=True))

    def _ask_provider(
        self, charged: tuple[str, ...], question: Question
    ) -> tuple[tuple[str, ...], Answer]:
        """The provider after it has worked on `charged`; what changes nothing is not added."""
        with _provider() as (api, store):
            for earlier in charged:
                api.respond(_request(json.loads(earlier)))
            before = len(list(store.charges(None, "", 100)))
            asked = {"method": question.action, **question.parameters}
            response = api.respond(_request(asked))
            changed = len(list(store.charges(None, "", 100))) != before
        answer = Answer(json.dumps([response.status, response.headers, response.body]))
        return (*charged, json.dumps(asked)) if changed else charged, answer

    def _charges(self, charged: tuple[str, ...]) -> list[Json]:
        with _provider() as (api, store):
            for earlier in charged:
                api.respond(_request(json.loads(earlier)))
            return [json.loads(text) for text in store.charges(None, "", 100)]

    def _double(self, charged: tuple[str, ...]) -> str | None:
        paid = [item for item in self._charges(charged) if item["status"] == "succeeded"]
        return f"charged {len(paid)} times" if len(paid) > 1 else None

    def _from_queue(self, world: World, question: Question) -> tuple[Answer, World]:
        parameters = question.parameters
        match question.action:
            case "send_message":
                queue = (*world.queue, json.dumps(parameters["MessageBody"], sort_keys=True))
                return Answer('{"MessageId": "1"}'), world._replace(queue=queue)
            case "receive_message":
                messages = [_message(number, body) for number, body in enumerate(world.queue)]
                taken = world._replace(queue=(), hidden=world.hidden + world.queue)
                return Answer(json.dumps({"Messages": messages})), taken
            case "get_queue_attributes":
                counts = {
                    "ApproximateNumberOfMessages": str(len(world.queue)),
                    "ApproximateNumberOfMessagesNotVisible": str(len(world.hidden)),
                }
                return Answer(json.dumps({"Attributes": counts})), world
            case "delete_message":
                hidden = list(world.hidden)
                hidden.remove(parameters["ReceiptHandle"])
                return Answer("{}"), world._replace(hidden=tuple(hidden))
            case "change_message_visibility_batch":
                hidden = list(world.hidden)
                for entry in parameters["Entries"]:
                    hidden.remove(entry["ReceiptHandle"])
                    world = world._replace(queue=(*world.queue, entry["ReceiptHandle"]))
                return Answer("{}"), world._replace(hidden=tuple(hidden))
        raise RuntimeError(f"bug: nobody answers {question}")

    def _from_executions(self, world: World, question: Question) -> tuple[Answer, World] | None:
        parameters = question.parameters
        if question.action == "start_execution":
            name, given = parameters["name"], parameters["input"]
            if all(actor.name != name for actor in world.actors):
                actors = (*world.actors, self._actor(name, "execution", given))
                world = world._replace(actors=actors)
            return Answer(json.dumps({"executionArn": self.scripts.arn(name)})), world
        run = self._status(world, parameters["executionArn"])
        match question.action:
            case "wait":
                return None if run.status == "RUNNING" else (Answer(), world)
            case "describe_execution":
                described = {"status": run.status, "input": "{}"}
                described |= {"error": run.error} if run.error else {}
                return Answer(json.dumps(described)), world
            case "get_execution_history":
                events = [{"stateEnteredEventDetails": {"name": name}} for name in run.path]
                return Answer(json.dumps({"events": events})), world
        raise RuntimeError(f"bug: nobody answers {question}")

    # ---------------------------------------------------------------- before and after

    def begin(self, beginning: Beginning) -> World:
        """The world as the dead have left it; nobody acts in it yet."""
        world = World(None, (), (), (), (), 0)
        order = Actor(DEAD, "execution", json.dumps(self.scripts.event))
        world = world._replace(actors=(order,))
        wanted = {"charged": beginning.charged, "claimed": beginning.claimed}
        while isinstance(asked := self._asked(world.actors[0]), Question):
            if asked.action == "put_item" and not wanted["claimed"]:
                break
            if asked.service == "provider" and not wanted["charged"]:
                break
            if asked.action == "update_item":
                break
            told = self._answer(world, world.actors[0], asked)
            assert told is not None  # noqa: S101 - an execution waits for nobody
            world = _tell(told[1], 0, told[0])
        if beginning.queued:
            body = {
                "execution": self.scripts.arn(DEAD),
                "idempotency_key": self._version.reference,
                "order": self._order(),
                "error": {"Error": "ProviderUnavailable", "Cause": ""},
            }
            world = world._replace(queue=(json.dumps(body, sort_keys=True),))
        return world._replace(actors=())

    def _order(self) -> Json:
        placed = self.scripts.event["detail"]["object"]
        return {
            "bucket": self._version.bucket,
            "key": KEY,
            "version_id": placed["version-id"],
            "etag": placed["etag"],
            "idempotency_key": self._version.reference,
        }

    def _repair(self, world: World) -> tuple[str, ...]:
        """Repair without misfortune until nothing changes. Gives what is wrong then."""
        for number in range(_REPAIRS):
            before = world
            for actor in (
                self._actor(f"repairing-replay-{number}", "replay", ""),
                self._actor(f"repairing-pass-{number}", "reconcile", f"late{number}"),
            ):
                world, wrong = self._run_out(world._replace(actors=(*world.actors, actor)))
                if wrong:
                    return (wrong,)
                world = _settled_down(world)
            if (world.record, world.charged, world.queue) == (
                before.record,
                before.charged,
                before.queue,
            ):
                break
        record = _plain(world.record)
        books = Books(
            [self._version], [record] if record else [], self._charges(world.charged), set()
        )
        return tuple(judge(books).violations)

    def _run_out(self, world: World) -> tuple[World, str | None]:
        """Whoever can take a step takes it, until nobody can."""
        moved = True
        while moved:
            moved = False
            for number, actor in enumerate(world.actors):
                asked = self._asked(actor)
                if isinstance(asked, End):
                    continue
                for _, following, wrong in self._honest(world, number, asked):
                    if wrong:
                        return following, wrong
                    world, moved = following, True
        return world, None


# ---------------------------------------------------------------- small parts


def _first_comes_first(
    world: World, active: list[tuple[int, Question]]
) -> list[tuple[int, Question]]:
    """Of several deliveries that have not begun, only the first: they differ in nothing else."""
    waiting = [
        number
        for number, _ in active
        if world.actors[number].name.startswith("delivery-")
        and not world.actors[number].answers
        and not world.actors[number].stopped
    ]
    return [(number, asked) for number, asked in active if number not in waiting[1:]]


def _tell(world: World, number: int, answer: Answer) -> World:
    return _put(world, number, world.actors[number].told(answer))


def _put(world: World, number: int, actor: Actor) -> World:
    actors = (*world.actors[:number], actor, *world.actors[number + 1 :])
    return world._replace(actors=actors)


def _settled_down(world: World) -> World:
    """Later: what was hidden is visible again, and only how executions ended still matters."""
    return world._replace(queue=tuple(sorted(world.queue + world.hidden)), hidden=())


def _story(world: World, came_from: dict[World, tuple[World, str]]) -> list[str]:
    steps = []
    while world in came_from:
        world, step = came_from[world]
        steps.append(step)
    return steps[::-1]


def _words(question: Question) -> str:
    return f"{question.service}.{question.action}"


def _sdk_error(question: Question) -> str:
    return {"ledger": "DynamoDB.SdkClientException", "queue": "SQS.SdkClientException"}[
        question.service
    ]


@functools.cache
def _status_of(record: str) -> str:
    return str(json.loads(record)["status"]["S"])


def _plain(record: str | None) -> Json | None:
    return None if record is None else plain_record(json.loads(record))


def _message(number: int, body: str) -> Json:
    key = json.loads(body)["idempotency_key"]
    return {
        "MessageId": str(number),
        "ReceiptHandle": body,
        "Body": body,
        "Attributes": {"SentTimestamp": str(number)},
        "MessageAttributes": {
            "idempotency_key": {"StringValue": key},
            "error": {"StringValue": "ProviderUnavailable"},
        },
    }


def _request(asked: Json) -> Request:
    path, _, query = str(asked["url"]).partition("provider.invalid")[2].partition("?")
    headers = asked["headers"] | {"authorization": f"Bearer {API_KEY}"}
    return Request(asked["method"], path, query, headers, asked["body"].encode())


class _provider:  # noqa: N801 - used as a function
    """A provider with empty books, whose charges are numbered."""

    def __enter__(self) -> tuple[Api, SqliteStore]:
        self._store = SqliteStore(":memory:")
        numbers = iter(range(1, 100))
        self._ids = patch.object(core, "new_id", lambda prefix, _: f"{prefix}_{next(numbers):026}")
        self._ids.start()
        provider = Provider(
            self._store,
            key_retention_seconds=86_400,
            in_flight_seconds=10,
            test_mode=False,
            wall=NOW.timestamp,
        )
        return Api(provider, lambda key: key == API_KEY), self._store

    def __exit__(self, *_: object) -> None:
        self._ids.stop()
        self._store.close()


def explore_all(
    *, deliveries: int = 2, replays: int = 1, reconciles: int = 1, misfortunes: int = 1
) -> list[Json]:
    """Explore from every beginning: what was seen from each. The scope is that of `explore`."""
    explorations = []
    with Scripts() as scripts:
        explorer = Explorer(scripts)
        for beginning in BEGINNINGS:
            with progress.step(f"Every interleaving, beginning {beginning.name}"):
                found = explorer.explore(
                    beginning,
                    deliveries=deliveries,
                    replays=replays,
                    reconciles=reconciles,
                    misfortunes=misfortunes,
                )
            explorations.append(
                {
                    "beginning": beginning.name,
                    "states": found.states,
                    "steps": found.steps,
                    "endings": found.ends,
                    "violations": found.violations,
                }
            )
    return explorations
