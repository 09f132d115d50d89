"""The manners of HTTP."""

from collections.abc import Callable

import httpx
import pytest

from tests.contract.provider.harness import charge, fresh_key, order


def mismatch(api: httpx.Client) -> httpx.Response:
    key, body = fresh_key(), order()
    charge(api, key, body)
    return charge(api, key, body | {"amount": 1})


def send(api: httpx.Client, body: bytes, content_type: str) -> httpx.Response:
    headers = {"Idempotency-Key": fresh_key(), "Content-Type": content_type}
    return api.post("/v1/charges", content=body, headers=headers)


VALID = b'{"amount": 1999, "currency": "EUR", "source": "tok_visa"}'

REFUSALS: dict[int, Callable[[httpx.Client], httpx.Response]] = {
    400: lambda api: send(api, b"{", "application/json"),
    401: lambda api: api.get("/v1/charges", headers={"Authorization": ""}),
    402: lambda api: charge(api, fresh_key(), order(source="tok_declined")),
    404: lambda api: api.get("/nowhere"),
    405: lambda api: api.put("/v1/charges"),
    413: lambda api: send(api, b" " * 65_537, "application/json"),
    415: lambda api: send(api, b"amount=1", "application/x-www-form-urlencoded"),
    422: mismatch,
}


class TestRfc9457:
    """Problem details for HTTP APIs."""

    @pytest.mark.parametrize("status", REFUSALS)
    def test_3_every_refusal_is_a_problem_document(self, api: httpx.Client, status: int) -> None:
        refusal = REFUSALS[status](api)

        problem = refusal.json()
        assert refusal.status_code == status
        assert refusal.headers["Content-Type"] == "application/problem+json"
        assert problem["status"] == status
        assert {"type", "title", "detail", "code"} <= problem.keys()


class TestRfc6750:
    """Bearer tokens."""

    @pytest.mark.parametrize(
        "authorization", ["", "Bearer", "Bearer wrong", "Basic c2s6", "Bearer \u00fc"]
    )
    @pytest.mark.parametrize("path", ["/v1/charges", "/v1/test/faults", "/nowhere"])
    def test_3_without_the_key_nothing_is_told(
        self, api: httpx.Client, path: str, authorization: str
    ) -> None:
        headers = {"Authorization": authorization.encode()}

        refusal = api.get(path, headers=headers)  # type: ignore[arg-type]

        assert refusal.status_code == 401

    def test_2_1_the_scheme_is_not_case_sensitive(self, api: httpx.Client) -> None:
        headers = {"Authorization": api.headers["Authorization"].replace("Bearer", "bearer")}

        assert api.get("/v1/charges", headers=headers).status_code == 200

    @pytest.mark.parametrize("path", ["/healthz", "/openapi.json"])
    def test_what_is_about_the_provider_needs_no_key(self, api: httpx.Client, path: str) -> None:
        answer = api.get(path, headers={"Authorization": ""})

        assert answer.status_code == 200
        assert answer.headers["Content-Type"] == "application/json"


class TestRfc9110:
    """HTTP semantics."""

    def test_15_5_6_a_wrong_method_is_told_the_right_ones(self, api: httpx.Client) -> None:
        refusal = api.put("/v1/charges")

        assert refusal.status_code == 405
        assert refusal.headers["Allow"] == "GET, POST"

    def test_5_1_header_names_are_not_case_sensitive(self, api: httpx.Client) -> None:
        answer = api.post("/v1/charges", json=order(), headers={"iDEMPOTENCY-kEY": fresh_key()})

        assert answer.status_code == 201


class TestRfc8259:
    """JSON, read strictly: what two parsers could read in two ways is refused."""

    @pytest.mark.parametrize(
        "body",
        [
            b"",
            b"null",
            b"[]",
            b'"text"',
            b"{",
            b"\xff\xfe",
            b"\xef\xbb\xbf" + VALID,
            VALID + VALID,
            VALID.replace(b'"', b"'"),
            b"[" * 30_000,
        ],
        ids=lambda body: repr(body[:12]),
    )
    def test_2_what_is_no_json_object_is_refused(self, api: httpx.Client, body: bytes) -> None:
        assert send(api, body, "application/json").status_code == 400

    @pytest.mark.parametrize(
        "member",
        [
            b'"amount": NaN',
            b'"amount": Infinity',
            b'"amount": 1e999',
            b'"amount": ' + b"9" * 5000,
            b'"amount": 1999, "amount": 1999',
            b'"amount": 1999, "metadata": {"a": "\\ud800"}',
        ],
        ids=lambda member: repr(member[:40]),
    )
    def test_4_6_8_a_member_without_one_clear_meaning_is_refused(
        self, api: httpx.Client, member: bytes
    ) -> None:
        body = VALID.replace(b'"amount": 1999', member)

        assert send(api, body, "application/json").status_code == 400

    def test_a_body_is_accepted_without_its_media_type(self, api: httpx.Client) -> None:
        headers = {"Idempotency-Key": fresh_key()}

        assert api.post("/v1/charges", content=VALID, headers=headers).status_code == 201
