"""The counting-house in a real browser, on the real stack.

Needs a Chromium. With CHARGE_ONCE_PICTURES set to a folder, the pictures of the README are
written there (`make pictures`).
"""

from __future__ import annotations

import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect, sync_playwright

from local import books
from local.stack import Stack

pytestmark = [pytest.mark.xdist_group("page"), pytest.mark.browser]

CHROMIUMS = ("chromium", "chromium-browser", "google-chrome")
LAPTOP, PHONE = (1280, 860), (390, 844)
#: A slow machine gets this long for what takes a second; a dead provider needs all its retries.
PATIENCE_MS = 30_000
RETRIES_MS = 120_000
#: Weight of a picture in the repository.
MOST_PICTURE_BYTES = 300 * 1024

HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"

Picture = Callable[..., None]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium without a window. Its absence fails the tests and says what to do."""
    found = next(filter(None, map(shutil.which, CHROMIUMS)), None)
    if found is None:
        pytest.fail(
            "No Chromium for the tests of the page. Install one (Debian: apt-get install chromium)"
            " or leave them out with: make test ARGS=\"-m 'not browser'\""
        )
    with sync_playwright() as playwright:
        # Without its sandbox, which root cannot have; it opens nothing but our own page.
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def context(browser: Browser, stack: Stack) -> Iterator[BrowserContext]:
    """A fresh profile at the page's address; any error in a page's console fails the test."""
    assert stack.page_url is not None
    context = browser.new_context(
        base_url=stack.page_url,
        viewport={"width": LAPTOP[0], "height": LAPTOP[1]},
        color_scheme="light",
    )
    context.set_default_timeout(PATIENCE_MS)
    complaints: list[str] = []
    context.on("weberror", lambda error: complaints.append(str(error.error)))
    context.on(
        "console",
        lambda message: complaints.append(message.text) if message.type == "error" else None,
    )
    yield context
    context.close()
    assert complaints == []


@pytest.fixture
def page(context: BrowserContext) -> Page:
    """An empty tab."""
    return context.new_page()


@pytest.fixture(scope="module")
def picture(tmp_path_factory: pytest.TempPathFactory) -> Picture:
    """Takes a picture of what a tab shows."""
    folder = Path(os.environ.get("CHARGE_ONCE_PICTURES") or tmp_path_factory.mktemp("pictures"))

    def take(page: Page, name: str, height: int = LAPTOP[1]) -> None:
        path = folder / f"{name}.png"
        page.set_viewport_size({"width": LAPTOP[0], "height": height})
        page.mouse.move(0, 0)
        page.screenshot(path=path, animations="disabled")
        assert path.stat().st_size < MOST_PICTURE_BYTES

    return take


def fresh(name: str) -> str:
    return f"orders/{name}-{uuid.uuid4().hex[:6]}.json"


def drop(
    page: Page, object_key: str, *, fault: str = "", times: int = 1, payment: str = "tok_visa"
) -> None:
    """Drop an order from the bench's form."""
    page.goto("/bench")
    form = page.locator('form[action="/bench/drop"]')
    form.get_by_label("Object key").fill(object_key)
    form.get_by_label("Amount").fill("48.50")
    form.get_by_label("Payment method").select_option(payment)
    if fault:
        form.get_by_label("Fault").select_option(fault)
        form.get_by_label("How often").fill(str(times))
    form.get_by_role("button").click()


def open_order(page: Page, object_key: str) -> None:
    """Find an order in the list, live, and open its page."""
    page.goto(f"/?q={quote(object_key)}")
    page.get_by_role("link", name=object_key).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(object_key)


def verdict(page: Page) -> Locator:
    return page.locator(".summary .verdict")


def job_done(page: Page) -> Locator:
    """The end of the newest job on the bench."""
    return page.locator(".job").first.locator(".job-state.done")


def charges_of(page: Page, stack: Stack) -> list[object]:
    """The provider's charges for the order whose page is open, asked at the provider itself."""
    key = page.locator(".facts code").last.inner_text()
    return list(books.charges(stack, key))


def test_an_order_settles_before_one_s_eyes(page: Page) -> None:
    key = fresh("venetian-glass")
    watching = page.context.new_page()
    watching.goto(f"/?q={quote(key)}")
    expect(watching.locator("#live")).to_be_visible()

    drop(page, key)

    row = watching.locator("table.orders tbody tr")
    expect(row.locator(".verdict")).to_have_text("Charged once", timeout=PATIENCE_MS)
    expect(row.locator("td.book").first).to_contain_text("48.50 EUR")
    expect(row.locator("svg.beads")).to_have_attribute(
        "aria-label", "IsVersioned?, IdentifyByVersion, Claim, Charge, MarkDone"
    )


def test_eight_more_deliveries_change_nothing(page: Page, stack: Stack) -> None:
    key = fresh("saffron")
    drop(page, key)
    open_order(page, key)
    expect(verdict(page)).to_have_text("Charged once", timeout=PATIENCE_MS)

    page.get_by_role("button", name="Deliver it eight times at once").click()

    expect(page.locator(".runs a")).to_have_count(9, timeout=PATIENCE_MS)
    expect(page.locator(".runs a", has_text="AlreadySettled")).to_have_count(8, timeout=PATIENCE_MS)
    expect(verdict(page)).to_have_text("Charged once")
    assert len(charges_of(page, stack)) == 1


def test_a_crash_after_the_charge_is_one_charge_and_a_retry(page: Page, stack: Stack) -> None:
    key = fresh("murano-beads")

    drop(page, key, fault="function.exit_after_charge")
    open_order(page, key)

    expect(verdict(page)).to_have_text("Charged once", timeout=PATIENCE_MS)
    expect(page.locator(".requests")).to_contain_text(re.compile("made.*replayed", re.DOTALL))
    expect(page.locator(".story")).to_contain_text("Charge, attempt 1: Runtime.ExitError")
    expect(page.locator(".machine .state.retried")).to_contain_text("Charge")
    assert len(charges_of(page, stack)) == 1


def test_a_decline_is_settled_without_a_charge(page: Page) -> None:
    key = fresh("cinnabar")

    drop(page, key, payment="tok_declined")
    open_order(page, key)

    expect(verdict(page)).to_have_text("Declined", timeout=PATIENCE_MS)
    expect(page.locator(".ledgers")).to_contain_text("Reason")


def test_a_dead_provider_leaves_it_open_and_a_replay_settles_it(
    page: Page, stack: Stack, picture: Picture
) -> None:
    key = fresh("indigo-cloth")
    drop(page, key, fault="provider.unavailable", times=99)
    open_order(page, key)
    expect(verdict(page)).to_have_text("Waiting for a person", timeout=RETRIES_MS)
    listed = page.context.new_page()
    listed.goto("/")
    expect(listed.locator("tr", has_text=key).locator("svg.beads")).to_be_visible()
    picture(listed, "page-orders", height=800)
    listed.emulate_media(color_scheme="dark")
    picture(listed, "page-orders-dark", height=800)
    expect(page.get_by_role("heading", name="In the failure queue")).to_be_visible()
    expect(page.locator(".ledgers")).to_contain_text("No charge with this reference.")

    page.context.new_page().goto("/bench")
    bench = page.context.pages[-1]
    bench.get_by_role("button", name="Clear all faults").first.click()
    expect(job_done(bench)).to_be_visible()
    page.get_by_role("button", name="Replay it").click()

    expect(verdict(page)).to_have_text("Charged once", timeout=PATIENCE_MS)
    expect(page.get_by_role("heading", name="In the failure queue")).to_have_count(0)
    expect(page.locator(".machine .state.visited", has_text="TakeOver")).to_be_visible()
    picture(page, "page-order", height=1740)
    assert len(charges_of(page, stack)) == 1


def test_a_hostile_object_key_is_only_text(page: Page) -> None:
    key = fresh(f"{HOSTILE}-")

    drop(page, key)
    open_order(page, key)

    expect(verdict(page)).to_have_text("Charged once", timeout=PATIENCE_MS)
    assert "owned" not in {page.title(), page.evaluate("document.title")}
    assert page.locator("main img").count() == 0
    page.goto(f"/?q={quote(key)}")
    expect(page.locator("a.object")).to_have_text(key)


def test_the_tour_plays_for_real(page: Page, picture: Picture) -> None:
    page.goto("/tour")

    for name, button in (
        ("one-order", "Drop an order"),
        ("knocks-twice", "Deliver one order eight times at once"),
        ("crash", "Crash right after the charge"),
    ):
        scene = page.locator(f"#{name}")
        scene.get_by_role("button", name=button).click()
        expect(scene.locator(".job-state.done")).to_be_visible(timeout=PATIENCE_MS)
        expect(scene.locator(".verdict")).to_have_text("Charged once", timeout=PATIENCE_MS)
    page.evaluate("document.querySelector('#knocks-twice').scrollIntoView()")
    picture(page, "page-tour")


def test_the_provider_s_books_tell_what_each_key_did(page: Page) -> None:
    key = fresh("pepper")
    drop(page, key, fault="provider.error_after_charge")
    expect(job_done(page)).to_be_visible()

    page.goto(f"/provider?q={quote(key)}")

    row = page.locator("table.orders tbody tr")
    expect(row).to_contain_text("48.50 EUR")
    expect(row.locator(".entry.made")).to_have_text("1 made")


@pytest.mark.parametrize("path", ["/", "/tour", "/bench", "/provider"])
def test_nothing_sticks_out_on_a_phone(page: Page, path: str) -> None:
    page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})

    page.goto(path)

    assert page.evaluate("document.documentElement.scrollWidth") == PHONE[0]


def test_the_keyboard_reaches_the_books(page: Page) -> None:
    page.goto("/")
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("Skip to the books")

    page.keyboard.press("Enter")
    page.keyboard.press("Tab")

    expect(page.locator("main :focus")).to_be_visible()


def test_the_page_works_without_its_script(browser: Browser, stack: Stack) -> None:
    key = fresh("no-script")
    context = browser.new_context(base_url=stack.page_url, java_script_enabled=False)
    page = context.new_page()

    drop(page, key)

    expect(page).to_have_url(re.compile("/bench$"))
    expect(page.locator(".job").first).to_contain_text("Drop an order")
    context.close()


def test_reset_empties_every_book(page: Page, stack: Stack) -> None:
    drop(page, fresh("last-one"))
    expect(job_done(page)).to_be_visible()

    page.get_by_role("button", name="Reset: empty every book").click()
    expect(page.locator(".job").first).to_contain_text("Every queue purged", timeout=PATIENCE_MS)
    expect(job_done(page)).to_be_visible()

    page.goto("/")
    expect(page.locator(".empty")).to_contain_text("Both ledgers are blank")
    assert list(books.records(stack)) == []
    assert list(books.charges(stack)) == []
