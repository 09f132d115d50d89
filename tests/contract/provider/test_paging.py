"""A long list is read in bounded memory."""

import sqlite3
import tracemalloc
from pathlib import Path

import httpx
import pytest
from provider.api import Api
from provider.core import Provider
from provider.ids import new_id
from provider.sqlite import SqliteStore

from tests.contract.provider.harness import InProcess, client

CREATED = 1_800_000_000
PEAK_BYTES = 12 * 1024 * 1024  # a page of 1,000 parsed charges is below 3 MB on either side


def read_all(api: httpx.Client) -> tuple[int, bool]:
    """How many charges there are, and whether their ids only go up."""
    count, last, ascending = 0, "", True
    while True:
        query = {"limit": "1000"} | ({"starting_after": last} if last else {})
        page = api.get("/v1/charges", params=query).json()
        for charge in page["data"]:
            count, ascending, last = count + 1, ascending and charge["id"] > last, charge["id"]
        if not page["has_more"]:
            return count, ascending


@pytest.mark.parametrize(
    "size", [10_000, pytest.param(1_000_000, marks=pytest.mark.campaign, id="million")]
)
def test_memory_does_not_grow_with_the_list(tmp_path: Path, size: int) -> None:
    store = SqliteStore(str(tmp_path / "books.sqlite"))
    with sqlite3.connect(tmp_path / "books.sqlite") as books:
        ids = (new_id("ch", CREATED + number / 100) for number in range(size))
        books.executemany(
            "INSERT INTO charges VALUES (?, ?, ?)",
            ((each, f"ref-{each}", f'{{"id":"{each}","reference":"ref-{each}"}}') for each in ids),
        )
    books.close()
    provider = Provider(store, key_retention_seconds=1, in_flight_seconds=1, test_mode=False)
    transport = InProcess(Api(provider, lambda _: True))
    with client("http://provider", transport=transport) as api:
        tracemalloc.start()

        outcome = read_all(api)

        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    store.close()
    assert outcome == (size, True)
    assert peak < PEAK_BYTES
