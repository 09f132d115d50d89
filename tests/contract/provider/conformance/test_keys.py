"""What an idempotency key is worth. Each class is a source, each test a rule of it."""

import json
from typing import Any

import httpx
import pytest

from tests.contract.provider.harness import at_once, charge, charges, fresh_key, order


def post(api: httpx.Client, headers: dict[str, str], content: str) -> httpx.Response:
    typed = {"Content-Type": "application/json"} | headers
    return api.post("/v1/charges", content=content.encode(), headers=typed)


class TestIetfDraft:
    """draft-ietf-httpapi-idempotency-key-header-06."""

    def test_2_1_the_key_may_be_a_quoted_structured_field_string(self, api: httpx.Client) -> None:
        key, body = fresh_key(), order()
        first = charge(api, f'"{key}"', body)

        again = charge(api, key, body)

        assert (first.status_code, again.status_code) == (201, 201)
        assert again.content == first.content

    @pytest.mark.parametrize("key", ['"open', '"', '""', '"a"b', '"a\\b"'])
    def test_2_1_a_broken_structured_field_string_is_refused(
        self, api: httpx.Client, key: str
    ) -> None:
        refusal = charge(api, key, order())

        assert refusal.status_code == 400

    def test_2_4_other_parameters_do_not_match_the_fingerprint(self, api: httpx.Client) -> None:
        key, body = fresh_key(), order()
        charge(api, key, body)

        refusal = charge(api, key, body | {"amount": body["amount"] + 1})

        assert refusal.status_code == 422
        assert len(charges(api, reference=body["reference"])) == 1

    def test_2_6_a_retry_gets_the_result_of_the_first_request(self, api: httpx.Client) -> None:
        key, body = fresh_key(), order()
        first = charge(api, key, body)

        again = charge(api, key, body)

        assert (first.status_code, again.status_code) == (201, 201)
        assert again.content == first.content
        assert len(charges(api, reference=body["reference"])) == 1

    def test_2_6_a_retry_gets_the_error_of_the_first_request(self, api: httpx.Client) -> None:
        key, body = fresh_key(), order(source="tok_declined")
        first = charge(api, key, body)

        again = charge(api, key, body)

        assert (first.status_code, again.status_code) == (402, 402)
        assert again.content == first.content
        assert len(charges(api, reference=body["reference"])) == 1

    def test_2_7_a_missing_key_is_refused(self, api: httpx.Client) -> None:
        body = order()

        refusal = api.post("/v1/charges", json=body)

        assert refusal.status_code == 400
        assert charges(api, reference=body["reference"]) == []

    @pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": '"open'}])
    def test_2_7_a_refusal_of_the_key_links_to_the_documentation(
        self, api: httpx.Client, headers: dict[str, str]
    ) -> None:
        refusal = api.post("/v1/charges", json=order(), headers=headers)

        link = refusal.links["describedby"]["url"]
        assert api.get(refusal.url.join(link)).json()["openapi"]

    def test_2_7_fifty_at_once_make_one_charge_and_the_rest_conflict_or_repeat_it(
        self, api: httpx.Client
    ) -> None:
        key, body = fresh_key(), order()

        answers = at_once(50, 50, lambda _: charge(api, key, body))

        made = [answer for answer in answers if answer.status_code == 201]
        conflicts = [answer for answer in answers if answer.status_code == 409]
        [kept] = charges(api, reference=body["reference"])
        assert len(made) + len(conflicts) == 50
        assert [answer for answer in made if "Idempotent-Replayed" not in answer.headers] != []
        assert sum("Idempotent-Replayed" not in answer.headers for answer in made) == 1
        assert all(answer.json() == kept for answer in made)
        assert all(int(answer.headers["Retry-After"]) > 0 for answer in conflicts)


class TestStripe:
    """Stripe's API reference, "Idempotent requests", for what the draft leaves open."""

    def test_a_replay_says_so_and_a_first_answer_does_not(self, api: httpx.Client) -> None:
        key, body = fresh_key(), order()
        first = charge(api, key, body)

        again = charge(api, key, body)

        assert "Idempotent-Replayed" not in first.headers
        assert again.headers["Idempotent-Replayed"] == "true"

    def test_a_key_has_up_to_255_characters(self, api: httpx.Client) -> None:
        longest = fresh_key().ljust(255, "x")

        accepted, refused = charge(api, longest, order()), charge(api, longest + "x", order())

        assert (accepted.status_code, refused.status_code) == (201, 400)

    def test_a_request_that_fails_validation_does_not_use_the_key_up(
        self, api: httpx.Client
    ) -> None:
        key = fresh_key()
        refusal = charge(api, key, order(amount=0))

        accepted = charge(api, key, order())

        assert (refusal.status_code, accepted.status_code) == (400, 201)
        assert "Idempotent-Replayed" not in accepted.headers

    def test_a_mismatch_leaves_the_stored_answer_alone(self, api: httpx.Client) -> None:
        key, body = fresh_key(), order()
        first = charge(api, key, body)
        charge(api, key, body | {"currency": "USD"})

        again = charge(api, key, body)

        assert again.content == first.content

    def test_other_keys_are_other_requests(self, api: httpx.Client) -> None:
        body = order()

        first, second = charge(api, fresh_key(), body), charge(api, fresh_key(), body)

        assert first.json()["id"] != second.json()["id"]
        assert len(charges(api, reference=body["reference"])) == 2

    def test_keys_are_case_sensitive(self, api: httpx.Client) -> None:
        key, body = fresh_key(), order()

        first, second = charge(api, key, body), charge(api, key.upper(), body)

        assert first.json()["id"] != second.json()["id"]

    def test_a_decline_is_stored_and_replayed(self, api: httpx.Client) -> None:
        key, body = fresh_key(), order(source="tok_insufficient_funds")
        charge(api, key, body)

        again = charge(api, key, body)

        assert again.status_code == 402
        assert again.headers["Idempotent-Replayed"] == "true"

    def test_a_key_is_remembered_for_a_day(self, test_mode: httpx.Client) -> None:
        key, body = fresh_key(), order()
        first = charge(test_mode, key, body)
        test_mode.post("/v1/test/clock", json={"advance_seconds": 23 * 3600})

        again = charge(test_mode, key, body)

        assert again.content == first.content

    def test_a_forgotten_key_charges_again(self, test_mode: httpx.Client) -> None:
        key, body = fresh_key(), order()
        first = charge(test_mode, key, body)
        test_mode.post("/v1/test/clock", json={"advance_seconds": 25 * 3600})

        second = charge(test_mode, key, body)

        assert second.status_code == 201
        assert "Idempotent-Replayed" not in second.headers
        ids = [kept["id"] for kept in charges(test_mode, reference=body["reference"])]
        assert ids == [first.json()["id"], second.json()["id"]]


class TestParametersAreComparedAsJson:
    """This contract: key order and white space do not matter, types do."""

    def test_key_order_and_white_space_do_not_matter(self, api: httpx.Client) -> None:
        key, body = {"Idempotency-Key": fresh_key()}, order(metadata={"a": "1", "b": "2"})
        first = post(api, key, json.dumps(body, sort_keys=True))
        turned = {name: body[name] for name in reversed(body)} | {"metadata": {"b": "2", "a": "1"}}

        again = post(api, key, json.dumps(turned, indent=4))

        assert (first.status_code, again.status_code) == (201, 201)
        assert again.headers["Idempotent-Replayed"] == "true"

    def test_escapes_do_not_matter(self, api: httpx.Client) -> None:
        key, body = {"Idempotency-Key": fresh_key()}, order(metadata={"name": "Zoë 🐦"})
        first = post(api, key, json.dumps(body, ensure_ascii=False))

        again = post(api, key, json.dumps(body, ensure_ascii=True))

        assert again.status_code == 201
        assert again.content == first.content

    @pytest.mark.parametrize(
        "change",
        [
            {"amount": 2000},
            {"currency": "USD"},
            {"source": "tok_declined"},
            {"reference": "another"},
            {"metadata": {}},
            {"metadata": {"order_id": "A-1001", "more": ""}},
        ],
    )
    def test_a_change_anywhere_is_a_mismatch(
        self, api: httpx.Client, change: dict[str, Any]
    ) -> None:
        key, body = fresh_key(), order()
        charge(api, key, body)

        refusal = charge(api, key, body | change)

        assert refusal.status_code == 422

    @pytest.mark.parametrize("amount", ["1999.0", '"1999"', "19.99e2", "true", "[1999]"])
    def test_the_same_number_in_another_type_is_never_a_replay(
        self, api: httpx.Client, amount: str
    ) -> None:
        key, body = {"Idempotency-Key": fresh_key()}, order()
        post(api, key, json.dumps(body))

        refusal = post(api, key, json.dumps(body).replace("1999", amount, 1))

        assert refusal.status_code in (400, 422)
        assert "Idempotent-Replayed" not in refusal.headers
