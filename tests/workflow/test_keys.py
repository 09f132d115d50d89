"""The recipe of the idempotency key: one key for one object version, in every reader."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from backstop.message import order_of
from reconciler.books import Place

from local.s3_event import object_created
from tests.workflow.engines import BUCKET, Engine
from tests.workflow.scenarios import Scenario

#: Taken from what S3 allows, and from what an argument of States.Format might stumble over.
OBJECT_KEYS = (
    "orders/plain.json",
    "orders/a b+c/ü.json",
    "orders/😀 et l'été.json",
    "orders/per%20cent %zz.json",
    "orders/it's 'quoted' \"twice\".json",
    "orders/back\\slash\\\\ \\' \\{}.json",
    "orders/{} {0} {{}} ${LedgerTable}.json",
    "orders/States.Format('{}', $.detail.bucket.name).json",
    "orders/$.detail.bucket.name $$.Execution.Id.json",
    "orders/a#b##c.json",
    "orders/a,b;c&d=e?f*g[0]|h^i`j~k<l>m:n@o!.json",
    "orders/line\nbreak\ttab.json",
    "orders/.././../x.json",
    "orders/" + "k" * 1012 + ".json",
    "orders/" + "ü" * 506 + ".json",
)
ANYTHING = Scenario(name="any order", path="", after=None)


@pytest.mark.parametrize("version", ["v1", None, "null"])
@pytest.mark.parametrize("key", OBJECT_KEYS, ids=range(len(OBJECT_KEYS)))
def test_the_definition_makes_the_key_that_backstop_and_reconciler_make(
    engine: Engine, key: str, version: str | None
) -> None:
    event = object_created(
        bucket=BUCKET,
        key=key,
        version_id=uuid.uuid4().hex if version == "v1" else version,
        etag=uuid.uuid4().hex,
        sequencer=uuid.uuid4().hex,
    )

    outcome = engine.execute(event, ANYTHING)

    assert outcome.output is not None
    assert outcome.output["run"]["order"] == order_of(event)
    assert outcome.record is not None
    assert outcome.record["object_key"] == key
    if version == "v1":  # without a version the reconciler has no key to look for
        place = Place(BUCKET, key, event["detail"]["object"]["version-id"])
        assert outcome.record["pk"] == place.idempotency_key


def delivery(**change: str | None) -> dict[str, Any]:
    upload: dict[str, Any] = {"bucket": BUCKET, "key": "orders/a.json", "etag": "e"}
    return object_created(**(upload | {"version_id": "v1", "sequencer": "1"} | change))


def test_two_deliveries_of_one_version_have_one_key() -> None:
    first, second = delivery(), delivery()

    assert first["id"] != second["id"]
    assert order_of(first)["idempotency_key"] == order_of(second)["idempotency_key"]


@pytest.mark.parametrize(
    "change", [{"bucket": "other"}, {"key": "orders/b.json"}, {"version_id": "v2"}]
)
def test_another_version_has_another_key(change: dict[str, str]) -> None:
    first, second = delivery(), delivery(**change)

    assert order_of(first)["idempotency_key"] != order_of(second)["idempotency_key"]


@pytest.mark.parametrize("change", [{"etag": "f"}, {"sequencer": "2"}])
def test_without_a_version_each_upload_has_its_key(change: dict[str, str]) -> None:
    first, second = delivery(version_id=None), delivery(version_id=None, **change)

    assert order_of(first)["idempotency_key"] != order_of(second)["idempotency_key"]
