"""The site builds without a network or a warning; its links lead somewhere; its search finds what it should."""

from __future__ import annotations

import dataclasses
import functools
import html
import http.server
import os
import re
import subprocess
import sys
import threading
import urllib.parse
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import sapp

pytest.importorskip("mkdocs")
pytest.importorskip("material")
pytest.importorskip("mkdocstrings_handlers.python")
ROOT = Path(__file__).parents[2]
NOWHERE = {name: "http://127.0.0.1:9" for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")}
"""A proxy that nobody listens at: what asks for a network fails."""


class Page(HTMLParser):
    """What a page leads to, loads, and can be led to at."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = {""}
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        self.anchors |= {value for key in ("id", "name") if (value := given.get(key))}
        if tag == "a" and given.get("href"):
            self.links.append(str(given["href"]))
        elif tag == "link" and given.get("rel") in ("stylesheet", "icon", "preload", "preconnect"):
            self.loaded.append(str(given["href"]))
        elif given.get("src"):
            self.loaded.append(str(given["src"]))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(out)], cwd=ROOT, capture_output=True,
        text=True, check=False, env={**os.environ, **NOWHERE, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert built.returncode == 0, built.stderr[-3000:]
    assert "WARNING" not in built.stderr
    return out


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {file: Page(file.read_text(encoding="utf-8")) for file in sorted(site.rglob("*.html"))}


def made_here(file: Path, site: Path) -> bool:
    """Whether a page is the site's own: a study's report is copied as it is, and page 404 has links from the root."""
    return not file.name.startswith(("report", "404")) and site in file.parents


def test_every_page_is_there(site: Path) -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        assert (site / page.relative_to(ROOT / "docs")).with_suffix(".html").is_file(), page
    for study in (ROOT / "studies").glob("*/README.md"):
        assert (site / "studies" / study.parent.name / "index.html").is_file(), study


def test_no_link_is_dead(site: Path, pages: dict[Path, Page]) -> None:
    dead = []
    for file, page in pages.items():
        for link in (*page.links, *page.loaded) if made_here(file, site) else ():
            path, _, anchor = urllib.parse.unquote(link).partition("#")
            if re.match(r"[a-z]+:", link) or path.startswith("javascript"):
                continue
            target = (file.parent / path.partition("?")[0]).resolve() if path else file
            target = target / "index.html" if target.is_dir() else target
            known = pages[target].anchors if target in pages and made_here(target, site) else {anchor}
            if not target.is_file() or anchor not in known:
                dead.append(f"{file.relative_to(site)}: {link}")
    assert dead == []


def test_nothing_is_loaded_from_elsewhere(site: Path, pages: dict[Path, Page]) -> None:
    assert [(file.name, each) for file, page in pages.items() for each in page.loaded if "//" in each] == []
    styles = [file.read_text(encoding="utf-8") for file in site.rglob("*.css")]
    assert styles
    assert not [found for style in styles for found in re.findall(r"url\(\s*[\"']?https?:[^)]*\)|@import[^;]*", style)]


def test_every_public_name_is_documented_once(pages: dict[Path, Page]) -> None:
    api = [page for file, page in pages.items() if file.parent.name == "api"]
    found = [name for name in sapp.__all__ for page in api if f"sapp.{name}" in page.anchors]
    assert sorted(found) == sorted(set(sapp.__all__) - {"__version__"})


def test_a_class_shows_what_it_takes(site: Path) -> None:
    """Its fields with their defaults, those of its bases first; what is said of the class once is no argument."""
    text = re.sub(r"<[^>]+>", "", (site / "api" / "algorithms.html").read_text(encoding="utf-8"))
    (shown,) = re.findall(r"(?s)\nTD3BC\((.*?)\n\)", html.unescape(text))
    fields = {field.name: field for field in dataclasses.fields(sapp.TD3BC)}
    assert re.findall(r"(?m)^    (\w+):", shown) == list(fields)
    assert f"alpha: float = {sapp.TD3BC().alpha}" in shown
    assert "hidden: tuple[int, ...] = (256, 256)" in shown


def test_a_notebook_is_a_page_with_its_pictures(site: Path, pages: dict[Path, Page]) -> None:
    page = pages[site / "tutorials" / "cartpole.html"]
    assert {"cartpole-1.png", "cartpole-2.png"} <= set(page.loaded)
    assert "cartpole.ipynb" in page.links


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *what: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(params=[(width, scheme) for width in (1280, 390) for scheme in ("light", "dark")], ids=str)
def reader(request: pytest.FixtureRequest, browser: Any) -> Iterator[Any]:
    """A page of a desktop's or a phone's width, light or dark."""
    width, scheme = request.param
    context = browser.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme)
    yield context.new_page()
    context.close()


def test_pages_fit_a_screen_in_light_and_dark(address: str, reader: Any) -> None:
    said: list[str] = []
    asked: list[str] = []
    reader.on("console", lambda message: said.append(message.text))
    reader.on("pageerror", lambda error: said.append(str(error)))
    reader.on("request", lambda request: asked.append(request.url))
    dark = reader.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    for page in ("index", "tutorials/cartpole", "algorithms/cql", "weights", "api/training", "studies/baselines/index"):
        reader.goto(f"{address}/{page}.html")
        assert reader.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), page
        assert reader.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 0)"), page
        colour = reader.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(float, re.findall(r"[\d.]+", colour)[:3])) < 3 * 128) == dark, colour
    assert said == []
    assert [url for url in asked if not url.startswith((address, "data:"))] == []


def test_search_finds_a_page_without_a_network(address: str, reader: Any) -> None:
    reader.goto(f"{address}/index.html")
    if reader.viewport_size["width"] < 500:
        reader.locator("label.md-header__button[for=__search]").click()
    box = reader.locator(".md-search__input")
    box.click()
    box.press_sequentially("saddle-point")
    link = reader.locator(".md-search-result__link[href*='algorithms/cql.html']")
    link.first.wait_for(state="attached", timeout=120_000)  # the index is read in the background
