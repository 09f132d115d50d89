"""What a charge is, and how it is found again. This contract's own rules."""

import time
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.contract.provider.harness import charge, charges, fresh_key, order


class TestOneCharge:
    def test_it_says_what_was_asked_for(self, api: httpx.Client) -> None:
        body = order(metadata={"object_key": "orders/a b+c/ü.json"})

        made = charge(api, fresh_key(), body).json()

        assert made["created"] == pytest.approx(time.time(), abs=60)
        assert made == body | {
            "id": made["id"],
            "object": "charge",
            "status": "succeeded",
            "failure_code": None,
            "created": made["created"],
        }

    def test_it_can_be_retrieved(self, api: httpx.Client) -> None:
        made = charge(api, fresh_key(), order()).json()

        found = api.get(f"/v1/charges/{made['id']}")

        assert (found.status_code, found.json()) == (200, made)

    @pytest.mark.parametrize("unknown", ["ch_00000000000000000000000000", "x", "x" * 2_000, "%00"])
    def test_an_unknown_one_is_not_found(self, api: httpx.Client, unknown: str) -> None:
        assert api.get(f"/v1/charges/{unknown}").status_code == 404

    def test_reference_and_metadata_may_be_left_out(self, api: httpx.Client) -> None:
        body = {"amount": 1, "currency": "JPY", "source": "tok_visa"}

        made = charge(api, fresh_key(), body).json()

        assert (made["reference"], made["metadata"]) == (None, {})

    @pytest.mark.parametrize(
        ("source", "failure"),
        [
            ("tok_declined", "card_declined"),
            ("tok_insufficient_funds", "insufficient_funds"),
        ],
    )
    def test_a_decline_is_kept_as_a_failed_charge(
        self, api: httpx.Client, source: str, failure: str
    ) -> None:
        body = order(source=source)

        answer = charge(api, fresh_key(), body)

        [kept] = charges(api, reference=body["reference"])
        assert answer.status_code == 402
        assert answer.json()["charge"] == kept
        assert (kept["status"], kept["failure_code"]) == ("failed", failure)

    @pytest.mark.parametrize(
        "change",
        [
            {"amount": 0},
            {"amount": -1},
            {"amount": 10**12},
            {"amount": 19.99},
            {"amount": 1999.0},
            {"amount": "1999"},
            {"amount": True},
            {"amount": None},
            {"currency": "eur"},
            {"currency": "EURO"},
            {"currency": "EUR\n"},
            {"source": "tok_unknown"},
            {"reference": ""},
            {"reference": "x" * 256},
            {"reference": None},
            {"metadata": {"a": 1}},
            {"metadata": {"a": {}}},
            {"metadata": {"a" * 41: ""}},
            {"metadata": {"a": "x" * 1025}},
            {"metadata": {str(number): "" for number in range(51)}},
            {"metadata": []},
            {"unknown": "field"},
        ],
    )
    def test_a_field_outside_the_contract_is_refused_by_name(
        self, api: httpx.Client, change: dict[str, Any]
    ) -> None:
        [field] = change

        refusal = charge(api, fresh_key(), order(**change))

        assert refusal.status_code == 400
        assert field in refusal.json()["detail"]

    @pytest.mark.parametrize("field", ["amount", "currency", "source"])
    def test_a_missing_field_is_refused_by_name(self, api: httpx.Client, field: str) -> None:
        body = order()
        del body[field]

        refusal = charge(api, fresh_key(), body)

        assert refusal.status_code == 400
        assert field in refusal.json()["detail"]


class TestList:
    def test_a_reference_finds_all_its_charges_and_no_other(self, api: httpx.Client) -> None:
        body = order(reference=f"with # and / and ü {uuid4()}")
        made = [charge(api, fresh_key(), body).json() for _ in range(3)]
        charge(api, fresh_key(), order())

        assert charges(api, reference=body["reference"]) == made

    def test_an_unknown_reference_finds_nothing(self, api: httpx.Client) -> None:
        page = api.get("/v1/charges", params={"reference": f"ref-{uuid4()}"})

        assert page.json() == {"object": "list", "data": [], "has_more": False}

    @pytest.mark.parametrize("limit", [1, 2, 3, 6, 7, 8])
    def test_pages_of_any_size_give_every_charge_once_oldest_first(
        self, api: httpx.Client, limit: int
    ) -> None:
        body = order()
        made = [charge(api, fresh_key(), body).json() for _ in range(7)]

        assert charges(api, reference=body["reference"], limit=limit) == made

    def test_a_full_page_says_whether_there_is_more(self, api: httpx.Client) -> None:
        body = order()
        for _ in range(2):
            charge(api, fresh_key(), body)
        listed = {"reference": body["reference"]}

        first = api.get("/v1/charges", params=listed | {"limit": 1}).json()
        both = api.get("/v1/charges", params=listed | {"limit": 2}).json()

        assert (first["has_more"], both["has_more"]) == (True, False)

    def test_new_charges_do_not_move_the_pages_behind(self, api: httpx.Client) -> None:
        body = order()
        made = [charge(api, fresh_key(), body).json() for _ in range(2)]
        listed = {"reference": body["reference"], "limit": 1}
        first = api.get("/v1/charges", params=listed).json()
        made.append(charge(api, fresh_key(), body).json())

        rest = charges(api, **listed, starting_after=first["data"][0]["id"])

        assert first["data"] + rest == made

    def test_created_gte_leaves_out_what_is_older(self, test_mode: httpx.Client) -> None:
        body = order()
        charge(test_mode, fresh_key(), body)
        test_mode.post("/v1/test/clock", json={"advance_seconds": 3600})
        later = charge(test_mode, fresh_key(), body).json()

        found = charges(test_mode, reference=body["reference"], created_gte=later["created"])

        assert found == [later]

    def test_the_whole_list_has_what_was_just_charged(self, api: httpx.Client) -> None:
        made = charge(api, fresh_key(), order()).json()

        assert made in charges(api, created_gte=made["created"], limit=1000)

    @pytest.mark.parametrize(
        "query",
        [
            "limit=0",
            "limit=1001",
            "limit=ten",
            "limit=1.0",
            "limit=",
            "limit=1&limit=2",
            "created_gte=-1",
            "created_gte=2026-01-01",
            "starting_after=",
            "starting_after=ch_1",
            "reference=",
            "refrence=x",
        ],
    )
    def test_a_filter_outside_the_contract_is_refused(self, api: httpx.Client, query: str) -> None:
        assert api.get(f"/v1/charges?{query}").status_code == 400
