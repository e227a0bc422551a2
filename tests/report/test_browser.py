"""The page in a real browser, without a network: Debian's chromium, driven by selenium."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from made_up import HEIGHT, HOSTILE, NAMES, WIDTH, candidates, facts

from hytas.report import RunFacts, write_report

webdriver = pytest.importorskip("selenium.webdriver", reason="no selenium: extra `test` has it")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None,
    reason="no chromium: apt-get install chromium chromium-driver",
)
SECONDS = 60
Open = Callable[..., Any]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    options.add_argument("--headless=new")
    options.add_argument("--window-size=1200,900")
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Open the report of some facts, and wait until its script is ready."""
    from selenium.webdriver.support.ui import WebDriverWait

    def open_page(*runs: RunFacts, script: bool = True, width: int = 1200) -> Any:
        path = tmp_path / "report.html"
        write_report(path, runs or [facts()])
        for log in ("browser", "performance"):
            browser.get_log(log)
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not script})
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.get(path.as_uri())
        if script:
            ready = "return document.documentElement.dataset.ready === 'yes'"
            WebDriverWait(browser, SECONDS).until(lambda driver: driver.execute_script(ready))
        return browser

    yield open_page
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})


def one(browser: Any, selector: str) -> Any:
    return browser.find_element("css selector", selector)


def text(browser: Any, selector: str) -> str:
    return " ".join(one(browser, selector).text.split())


def complaints(browser: Any) -> list[str]:
    return [entry["message"] for entry in browser.get_log("browser")]


def requests(browser: Any) -> set[str]:
    """What the page asked for: the kinds of its addresses, and the addresses that are no data."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = [
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    ]
    return {url for url in urls if not url.startswith("data:")}


def point(browser: Any, selector: str, x: float, y: float) -> None:
    """Move the pointer to a place of an element, in shares of its width and height."""
    element = one(browser, selector)
    browser.execute_script(
        "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element
    )
    size = element.rect
    actions = webdriver.ActionChains(browser)
    dx, dy = (x - 0.5) * size["width"], (y - 0.5) * size["height"]
    actions.move_to_element_with_offset(element, round(dx), round(dy)).perform()


def test_a_pixel_tells_its_class_and_spectrum(show: Open) -> None:
    page = show()
    assert text(page, ".tell .readout") == "No pixel is chosen."
    point(page, ".plane.predicted .frame", (20 + 0.5) / WIDTH, (10 + 0.5) / HEIGHT)
    said = text(page, ".tell .readout")
    assert said.startswith("row 10, column 20: 3 water with confidence 0.80; ✓ right")
    assert said.endswith("(a test pixel).")
    path = one(page, ".spectra .pixel").get_attribute("d")
    assert path.count("L") == 11
    point(page, ".plane.predicted .frame", (5 + 0.5) / WIDTH, (5 + 0.5) / HEIGHT)
    assert "✗ wrong, the truth is 1 grass" in text(page, ".tell .readout")
    assert one(page, ".spectra .true").get_attribute("d")
    assert one(page, ".spectra .pixel").get_attribute("d") != path
    address = (page.current_url,)
    assert requests(page) <= set(address)
    assert complaints(page) == []


def test_the_spectrum_is_that_of_the_pixel(show: Open) -> None:
    """The script's arithmetic against that of Python."""
    known = facts().pixels
    assert known is not None
    assert known.spectra is not None
    page = show()
    point(page, ".plane.predicted .frame", (20 + 0.5) / WIDTH, (10 + 0.5) / HEIGHT)
    path = one(page, ".spectra .pixel").get_attribute("d")
    places = [float(part.split(" ")[1]) for part in path[1:].split("L")]
    low, high, start, end = json.loads(one(page, "script.data").get_attribute("textContent"))[
        "pixels"
    ]["spectra"]["up"]
    values = [low + (place - start) / (end - start) * (high - low) for place in places]
    assert values == pytest.approx(
        known.spectra.spectrum(10, 20).tolist(), abs=0.2 * (high - low) / 100
    )


def test_keys_move_over_the_map(show: Open) -> None:
    from selenium.webdriver.common.keys import Keys

    page = show()
    area = one(page, ".maps")
    area.send_keys(Keys.ARROW_RIGHT)
    assert text(page, ".tell .readout").startswith("row 10, column 16:")
    area.send_keys(Keys.ARROW_UP, Keys.ARROW_UP)
    assert text(page, ".tell .readout").startswith("row 8, column 16:")
    assert complaints(page) == []


def test_hostile_names_are_shown_and_do_nothing(show: Open) -> None:
    page = show(facts(HOSTILE), facts(HOSTILE, name=HOSTILE[0]))
    point(page, ".plane.predicted .frame", (20 + 0.5) / WIDTH, (10 + 0.5) / HEIGHT)
    assert "3 a" in text(page, ".tell .readout")
    assert page.execute_script("return window.hurt === undefined")
    assert HOSTILE[0] in one(page, ".legend").text
    assert requests(page) <= {page.current_url}
    assert complaints(page) == []


def test_figures_stay_without_the_script(show: Open) -> None:
    page = show(script=False)
    assert one(page, ".plane.truth img").is_displayed()
    assert one(page, ".plane.predicted img").is_displayed()
    left, right = one(page, ".plane.truth").rect, one(page, ".plane.predicted").rect
    assert right["x"] >= left["x"] + left["width"] or right["y"] >= left["y"] + left["height"]
    assert not one(page, ".slider").is_displayed()
    assert one(page, ".panel .front").is_displayed()
    assert all(name in one(page, "table").text for name in NAMES)


def test_ten_thousand_candidates_open_within_two_seconds(show: Open, browser: Any) -> None:
    """Processor time of the page's own thread: a busy machine must not fail a claim on the page."""
    browser.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    page = show(facts(candidates=candidates(10_000)))
    metrics = page.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    spent = {entry["name"]: entry["value"] for entry in metrics}
    browser.execute_cdp_cmd("Performance.disable", {})
    assert 0 < spent["TaskDuration"] < 2
    assert "10,000 candidates were scored" in one(page, "main").text
    assert complaints(page) == []
