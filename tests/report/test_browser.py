"""The page in a real browser: no errors, no requests, sorting, filtering, a phone's width, dark mode."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium import chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


class Visit:
    """An open page that notes every message and every request."""

    def __init__(self, browser: Any, file: Path, width: int = 1280, scheme: str = "light") -> None:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.page = context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.address = file.as_uri()
        self.page.goto(self.address)
        self.page.locator("summary", has_text="Every method and dataset").first.click()

    def rows(self) -> list[list[str]]:
        """Text of the shown rows of the table of scores."""
        found = self.page.locator("#e0-scores tbody tr:visible").all()
        return [row.locator("th, td").all_inner_texts() for row in found]

    def check(self) -> None:
        """Nothing was complained about and nothing but the file was asked for."""
        assert self.said == []
        assert self.asked == [self.address]


def value(text: str) -> float:
    return float(text.split(" ")[0].split("\n")[0].replace("−", "-").replace(",", ""))


def test_sorting_by_a_click_on_a_heading(browser: Any, made: Path) -> None:
    visit = Visit(browser, made / "report.html")
    heading = visit.page.locator("#e0-scores thead th").nth(2)
    before = [value(row[2]) for row in visit.rows()]
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "descending"
    assert [value(row[2]) for row in visit.rows()] == sorted(before, reverse=True)
    heading.locator("button").press("Enter")
    assert heading.get_attribute("aria-sort") == "ascending"
    assert [value(row[2]) for row in visit.rows()] == sorted(before)
    visit.page.locator("#e0-scores thead th button").first.click()
    assert [row[0] for row in visit.rows()] == sorted(row[0] for row in visit.rows())
    visit.check()


def test_filtering_by_dataset_and_method(browser: Any, made: Path) -> None:
    visit = Visit(browser, made / "report.html")
    assert len(visit.rows()) == 16
    charts = visit.page.locator("figure:visible").count()
    visit.page.locator("input[type=search]").fill("hopper")
    assert {row[0] for row in visit.rows()} == {"hopper-medium-v2"}
    assert visit.page.locator("[data-count]").inner_text() == "5 of 16 rows of scores shown"
    assert visit.page.locator("figure:visible").count() == charts - 2
    visit.page.get_by_label("shuffled", exact=True).uncheck()
    assert [row[1] for row in visit.rows()] == ["CQL", "SA-CQL", "matched", "random"]
    assert visit.page.locator('g.series[data-method="shuffled"]:visible').count() == 0
    heads = visit.page.locator("#e0-scores-by-dataset thead th:visible").all_inner_texts()
    assert [head.split(" ")[0] for head in heads] == ["dataset", "CQL", "SA-CQL", "matched", "random", "CQL-half",
                                                      "CQL,", "SA-CQL,"]  # fmt: skip
    visit.page.locator("input[type=search]").fill("")
    visit.page.get_by_label("shuffled", exact=True).check()
    assert len(visit.rows()) == 16
    visit.check()


def test_the_pointer_reads_a_curve(browser: Any, made: Path) -> None:
    visit = Visit(browser, made / "report.html")
    figure = visit.page.locator("figure", has=visit.page.locator("h4", has_text="hopper-medium-v2"))
    dot = figure.locator('g.series[data-method="SA-CQL"] .dot').last
    dot.scroll_into_view_if_needed()
    box = dot.bounding_box()
    visit.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert "150,000: " in figure.locator("figcaption").inner_text()
    visit.check()


@pytest.mark.parametrize("width", [360, 390, 768])
def test_a_phone_needs_no_sideways_scrolling_of_the_page(browser: Any, made: Path, width: int) -> None:
    visit = Visit(browser, made / "report.html", width)
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
    for table, place in (("scores", 1), ("scores-by-dataset", 0)):
        score = visit.page.locator(f"#e0-{table} tbody tr").first.locator("td").nth(place).bounding_box()
        assert score["x"] + score["width"] <= width  # the score is seen without scrolling the table
    visit.check()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast_in_both_modes(browser: Any, made: Path, scheme: str) -> None:
    visit = Visit(browser, made / "report.html", scheme=scheme)
    ratios = visit.page.evaluate(
        """() => {
            const light = c => {
                const v = c.match(/[\\d.]+/g).slice(0, 3).map(x => x / 255)
                    .map(x => x <= .03928 ? x / 12.92 : Math.pow((x + .055) / 1.055, 2.4));
                return .2126 * v[0] + .7152 * v[1] + .0722 * v[2];
            };
            const back = e => {
                for (; e; e = e.parentElement) {
                    const c = getComputedStyle(e).backgroundColor;
                    if (c !== 'rgba(0, 0, 0, 0)' && c !== 'transparent') { return c; }
                }
                return 'rgb(255, 255, 255)';
            };
            const kinds = 'p, h1, h2, h3, td, th, caption, figcaption, a, label, .interval';
            return Array.from(document.querySelectorAll(kinds))
                .filter(e => e.offsetParent !== null && e.textContent.trim())
                .map(e => {
                    const a = light(getComputedStyle(e).color), b = light(back(e));
                    return (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
                });
        }"""
    )
    assert len(ratios) > 100
    assert min(ratios) >= 4.5
    visit.check()


def test_a_store_with_diagnostics_draws_them(browser: Any, stored: Path, tmp_path: Path) -> None:
    from sapp.report import report

    visit = Visit(browser, report([stored], tmp_path / "report.html"))
    assert visit.page.locator("figure", has_text="mean state weight").count() == 1
    assert visit.page.locator("figure:visible").count() == 5  # profile, learning curve, three metrics
    visit.check()
