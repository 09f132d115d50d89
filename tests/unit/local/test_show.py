"""What a person reads on a terminal, also on a narrow one."""

from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console

from local import progress, show

OBJECT = f"orders/{'0123456789abcdef' * 2}.json"
KEY = f"charge#{'0123456789abcdef' * 4}"
RECORD: dict[str, Any] = {
    "pk": KEY,
    "status": "done",
    "bucket": "charge-once-orderbucket-5f6cb0a1ae0f1",
    "object_key": OBJECT,
    "order_id": "A-1",
    "charge_id": "ch_06C5RQ9V6TB13CC31GW19XYJ08",
    "amount_minor": 1999,
    "currency": "EUR",
    "claimed_at": "2026-11-29T12:00:00.000Z",
}
REFUSED: dict[str, Any] = {
    "status": "rejected",
    "object_key": "orders/refused.json",
    "reason": 'amount: expected at most 2 fraction digits, found "19.999"',
    "claimed_at": "2026-11-29T12:00:01.000Z",
}
CHARGE: dict[str, Any] = {
    "id": "ch_06C5RQ9V6TB13CC31GW19XYJ08",
    "amount_minor": 500,
    "currency": "JPY",
    "reference": KEY,
    "status": "succeeded",
}
MESSAGE: dict[str, Any] = {
    "error": "ProviderUnavailable",
    "idempotency_key": KEY,
    "order": {"key": OBJECT},
}
EXECUTION: dict[str, Any] = {
    "arn": "arn:aws:states:us-east-1:000000000000:execution:ChargeOrder:run-1",
    "status": "FAILED",
    "error": "OrderRejected",
    "path": [
        "IsVersioned?",
        "IdentifyByVersion",
        "Claim",
        "Charge",
        "QueueFailure",
        "ChargeFailed",
    ],
}
HOSTILE = "orders/[red]\x1b[31m\nx\ud800.json"
#: Each alone, and the one before with the one after, would be markup to rich.
MARKUP = ("[/foo", "bar]", "[conceal", "ch]", "orders/:key:-:bomb:.json", "it ends in \\", "[/]")
SETTLED: dict[str, Any] = {
    "object": {"bucket": "orders", "key": OBJECT, "version_id": "v1"},
    "idempotency_key": KEY,
    "executions": [EXECUTION],
    "record": RECORD,
    "charges": [CHARGE],
    "queued": 0,
}


def terminal(monkeypatch: pytest.MonkeyPatch, width: int, *, is_terminal: bool = True) -> Console:
    """A recording terminal of that many columns in place of stdout."""
    monkeypatch.delenv("COLUMNS", raising=False)
    console = progress.console(width=width, force_terminal=is_terminal, record=True)
    monkeypatch.setattr(show, "output", console)
    return console


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> Console:
    return terminal(monkeypatch, 80)


def lines(console: Console) -> list[str]:
    return [line.rstrip() for line in console.export_text().splitlines()]


def test_a_settled_record_is_one_line_of_a_narrow_terminal(narrow: Console) -> None:
    show.ledger([RECORD])

    head, line = lines(narrow)
    assert head.split("  ")[0] == "status"
    assert "19.99 EUR" in line
    assert line.startswith("done    orders/0")
    assert line.endswith("XYJ08")
    assert len(line) <= 80


def test_a_reason_wraps_and_is_never_cut(narrow: Console) -> None:
    show.ledger([RECORD, REFUSED])

    printed = lines(narrow)
    assert max(map(len, printed)) <= 80
    assert "…" not in "".join(line for line in printed if "refused" in line)
    assert [word for word in REFUSED["reason"].split() if word not in " ".join(printed)] == []


def test_the_newest_record_comes_first(narrow: Console) -> None:
    show.ledger([RECORD, REFUSED])

    assert [line.split()[0] for line in lines(narrow) if line[0] != " "] == [
        "status",
        "rejected",
        "done",
    ]


def test_where_there_is_room_nothing_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = terminal(monkeypatch, 160)

    show.ledger([RECORD])

    _, line = lines(wide)
    assert RECORD["object_key"] in line
    assert RECORD["charge_id"] in line


def test_what_goes_into_a_file_is_one_whole_line(monkeypatch: pytest.MonkeyPatch) -> None:
    file = terminal(monkeypatch, 80, is_terminal=False)

    show.ledger([RECORD])
    show.executions([EXECUTION])

    _, record, _, path = lines(file)
    assert OBJECT in record
    assert path.strip() == " → ".join(EXECUTION["path"])


def test_a_width_that_the_environment_asks_for_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    file = terminal(monkeypatch, 80, is_terminal=False)
    monkeypatch.setenv("COLUMNS", "80")

    show.ledger([RECORD])

    assert max(map(len, lines(file))) <= 80


def test_columns_that_are_empty_in_every_row_are_left_out(narrow: Console) -> None:
    show.ledger([{"status": "in_progress", "object_key": "orders/x.json"}])

    assert lines(narrow)[0].split() == ["status", "object"]


def test_a_charge_is_one_line_with_its_id_whole(narrow: Console) -> None:
    show.charges([CHARGE])

    _, line = lines(narrow)
    assert line.startswith(f"{CHARGE['id']}  succeeded  500 JPY  charge#0")
    assert len(line) <= 80


def test_a_queued_key_can_be_copied_from_a_narrow_terminal(narrow: Console) -> None:
    show.queue([MESSAGE])

    assert lines(narrow) == [f"ProviderUnavailable {OBJECT}", f"  {KEY}"]


@pytest.mark.parametrize("order", [None, "odd", ["odd"], 1])
def test_somebody_else_s_message_is_shown(narrow: Console, order: object) -> None:
    show.queue([{"error": "unknown", "idempotency_key": None, "order": order}])

    assert lines(narrow)[0] == "unknown names no object"


def test_an_execution_s_path_stands_below_its_name(narrow: Console) -> None:
    show.executions([EXECUTION])

    assert lines(narrow)[0] == "FAILED OrderRejected run-1"
    assert all(line.startswith("  ") and len(line) <= 80 for line in lines(narrow)[1:])


@pytest.mark.parametrize(
    ("meant", "told"),
    [
        (None, "whoever comes first"),
        ({"object_key": "orders/x.json"}, "orders/x.json"),
        ({"order_id": "A-1", "customer": "c-1"}, "order id A-1, customer c-1"),
        ("orders-bucket/orders/x.json", "orders/x.json"),
        (KEY, KEY),
    ],
)
def test_a_fault_says_in_words_whom_it_is_for(
    monkeypatch: pytest.MonkeyPatch, meant: object, told: str
) -> None:
    wide = terminal(monkeypatch, 160)

    show.faults([{"name": "provider.slow", "for": meant, "remaining": 2}])

    assert lines(wide)[1].split("  ")[1] == told


def test_versions_are_words(narrow: Console) -> None:
    show.table([{"versions": {"boto3": "1.43", "python": "3.11"}}], sideways=True)

    assert lines(narrow) == ["versions  boto3 1.43, python 3.11"]


def test_hostile_text_is_one_line_of_text(narrow: Console) -> None:
    show.ledger([RECORD | {"object_key": HOSTILE}])
    show.queue([MESSAGE | {"order": {"key": HOSTILE}}])

    printed = narrow.export_text(clear=False)
    assert printed.count("[red]\N{REPLACEMENT CHARACTER}[31m") == 2
    assert len(lines(narrow)) == 4


@pytest.mark.parametrize("first", MARKUP)
@pytest.mark.parametrize("then", MARKUP)
def test_no_text_is_markup_neither_alone_nor_with_its_neighbour(
    monkeypatch: pytest.MonkeyPatch, first: str, then: str
) -> None:
    wide = terminal(monkeypatch, 300)
    charge = CHARGE | {"status": first, "id": then, "amount_minor": first, "currency": then}
    run = EXECUTION | {"status": first, "error": then, "path": [first, then]}
    record = RECORD | {"status": first, "charge_id": then, "amount_minor": first, "currency": then}

    show.order(
        {
            "object": {"bucket": first, "key": then, "version_id": first},
            "idempotency_key": then,
            "executions": [run],
            "record": record | {"reason": first},
            "charges": [charge],
            "queued": 0,
        },
        {EXECUTION["arn"]: [first, then, then]},
    )
    show.executions([run])
    show.replay(
        {
            "replayed": [{"status": first, "idempotency_key": then}],
            "left": [{"idempotency_key": first, "why": then}],
            "deleted": 0,
        }
    )
    show.queue([{"error": first, "idempotency_key": first, "order": {"key": then}}])
    show.charges([charge])
    show.table([{first: then}], sideways=True)

    assert [" ".join(line.split()) for line in lines(wide)] == [
        f"order s3://{first}/{then}",
        f"version {first}",
        f"key {then}",
        f"execution {first} {then} {first} → {then}",
        f"attempts that failed: {first} (3 times)"
        if first == then
        else f"attempts that failed: {first}, {then} (2 times)",
        f"our ledger {first} {then} {first} {then} {first}",
        f"provider {first} {then} {first} {then}",
        f"{first} {then} run-1",
        f"{first} → {then}",
        f"{first} {then}",
        f"left {first}: {then}",
        "Replayed: 1. Messages deleted: 0.",
        f"{first} {then}",
        first,
        "charge status amount key",
        f"{then} {first} {first} {then} {KEY}",
        f"{first} {then}",
    ]


@pytest.mark.parametrize("missing", ["status", "amount_minor", "currency", "charge_id"])
def test_a_record_that_lacks_a_field_is_shown_all_the_same(narrow: Console, missing: str) -> None:
    record = {name: value for name, value in RECORD.items() if name != missing}

    show.order(SETTLED | {"record": record})

    (line,) = (line for line in lines(narrow) if line.startswith("our ledger"))
    assert ("1999" in line or "19.99" in line) == (missing != "amount_minor")
    assert (RECORD["charge_id"] in line) == (missing != "charge_id")


def test_a_step_names_what_it_works_on_without_obeying_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    console = progress.console(width=20, record=True)
    monkeypatch.setattr(progress, "errors", console)

    with progress.step(f"Order {HOSTILE}"):
        pass
    with progress.counter(HOSTILE) as announce:
        announce(1, 2)
    with progress.step("[/foo :key: \\"):
        pass

    printed = lines(console)
    assert len(printed) == 3
    assert printed[2].startswith("✓ [/foo :key: \\ 0.")
    assert "Order orders/[red]\N{REPLACEMENT CHARACTER}[31m\N{REPLACEMENT CHARACTER}x" in printed[0]


@pytest.mark.parametrize("stream", [progress.output, progress.errors])
@pytest.mark.parametrize("text", MARKUP)
def test_a_string_is_printed_as_it_is(stream: Console, text: str) -> None:
    with stream.capture() as captured:
        stream.print(text, soft_wrap=True)

    assert captured.get() == f"{text}\n"
