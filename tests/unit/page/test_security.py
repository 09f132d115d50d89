"""Other people's pages can neither read this one nor press its buttons."""

from __future__ import annotations

import pytest
from starlette.datastructures import Headers

from local.page.security import MAX_BODY_BYTES, why_refused
from tests.unit.page.conftest import HERE, House

OWN_POST = {"host": "127.0.0.1:8081", "origin": HERE, "sec-fetch-site": "same-origin"}


@pytest.mark.parametrize("host", ["127.0.0.1:8081", "localhost:8081", "localhost", "[::1]:8081"])
def test_loopback_names_are_answered(host: str) -> None:
    assert why_refused("GET", Headers({"host": host})) is None


@pytest.mark.parametrize(
    "host",
    ["evil.example:8081", "127.0.0.1.evil.example", "evil.example@127.0.0.1", "10.0.0.1", "", "["],
)
def test_a_name_that_was_rebound_to_loopback_is_not(host: str) -> None:
    expected = None if host == "evil.example@127.0.0.1" else 421
    refusal = why_refused("GET", Headers({"host": host}))

    assert (refusal[0] if refusal else None) == expected


def test_its_own_post_passes() -> None:
    assert why_refused("POST", Headers(OWN_POST)) is None


@pytest.mark.parametrize(
    "forged",
    [
        {"origin": "https://evil.example"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_a_post_from_another_page_is_refused(forged: dict[str, str]) -> None:
    refusal = why_refused("POST", Headers(OWN_POST | forged))

    assert refusal is not None
    assert refusal[0] == 403


def test_a_post_without_the_page_s_token_is_refused(house: House) -> None:
    for token in ("", "guessed", "ü"):
        answer = house.client.post("/bench/drop", data={"token": token}, headers={"Origin": HERE})

        assert answer.status_code == 403
        assert "reload" in answer.text
    assert house.bench.pressed == []


def test_a_post_to_another_name_is_refused_before_anything_happens(house: House) -> None:
    answer = house.client.post(
        "/bench/reset", data={"token": house.app.token.value}, headers={"Host": "evil.example"}
    )

    assert answer.status_code == 421
    assert house.bench.pressed == []


def test_json_cannot_be_posted_and_no_body_may_be_large(house: House) -> None:
    not_a_form = house.client.post("/bench/drop", json={"token": house.app.token.value})
    too_large = house.client.post("/bench/drop", data={"x": "x" * MAX_BODY_BYTES})

    assert (not_a_form.status_code, too_large.status_code) == (400, 400)
    assert house.bench.pressed == []


def test_a_button_cannot_be_pressed_with_a_link(house: House) -> None:
    assert house.client.get("/bench/reset").status_code == 405
    assert house.bench.pressed == []


@pytest.mark.parametrize(
    "path", ["/", "/order?key=x", "/tour", "/bench", "/provider", "/orders.json"]
)
def test_every_page_brings_its_own_rules(house: House, path: str) -> None:
    headers = house.client.get(path).headers

    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert headers["cross-origin-resource-policy"] == "same-origin"


@pytest.mark.parametrize(
    "back", ["https://evil.example/", "//evil.example", "/\\evil.example", "x"]
)
def test_a_button_never_leads_to_another_site(house: House, back: str) -> None:
    answer = house.client.post(
        "/bench/clear",
        data={"token": house.app.token.value, "back": back},
        headers={"Origin": HERE},
        follow_redirects=False,
    )

    assert (answer.status_code, answer.headers["location"]) == (303, "/bench")
