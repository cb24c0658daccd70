"""The page says what the results say, and needs nothing but itself."""

from __future__ import annotations

import csv
import html.parser
import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from sapp.core.errors import SappError
from sapp.data.normalised_scores import normalized_score
from sapp.report import report


class Page(html.parser.HTMLParser):
    """Tables as lists of rows of (text, sort value), and all tags with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: dict[str, list[list[tuple[str, str | None]]]] = {}
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._rows: list[list[tuple[str, str | None]]] = []
        self._cell: list[str] | None = None
        self._value: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.append((tag, found))
        if tag == "table":
            self._rows = self.tables[str(found["id"])] = []
        elif tag == "tr":
            self._rows.append([])
        elif tag in ("td", "th"):
            self._cell, self._value = [], found.get("data-value")

    def handle_data(self, data: str) -> None:
        if self._cell is not None:
            self._cell.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th") and self._cell is not None:
            self._rows[-1].append(("".join(self._cell), self._value))
            self._cell = None


@pytest.fixture(scope="module")
def page(made: Path) -> Page:
    return Page((made / "report.html").read_text(encoding="utf-8"))


def scores_of(folder: Path, column: str, dataset: str, step: int) -> np.ndarray:
    """Scores [seeds, episodes], read from the CSV file without any code of the report."""
    with open(folder / "evaluations.csv", encoding="utf-8") as handle:
        rows = [
            r
            for r in csv.DictReader(handle)
            if r["step"] == str(step) and (r["algorithm"], r["dataset"]) == (column, dataset)
        ]
    returns = [[float(value) for value in row["returns"].split(";")] for row in sorted(rows, key=lambda r: r["seed"])]
    return normalized_score(dataset.split("-")[0], np.array(returns))


@pytest.mark.parametrize(
    ("where", "dataset", "step"),
    [(0, "hopper-medium-v2", 150_000), (1, "halfcheetah-medium-v2", 150_000), (1, "walker2d-medium-v2", 150_000)],
)
@pytest.mark.parametrize("column", ["CQL", "SA-CQL", "shuffled", "matched", "random"])
def test_scores_and_differences_are_recomputed(page: Page, sources: list[Path], where, dataset, step, column) -> None:
    row = next(r for r in page.tables["e0-scores"] if (r[0][0], r[1][0]) == (dataset, column))
    scores = scores_of(sources[where], column, dataset, step)
    assert scores.shape == (3, 10)
    assert float(str(row[2][1])) == pytest.approx(scores.mean())
    low, high = stats.ttest_1samp(scores.mean(1), 0.0).confidence_interval(0.95)
    assert row[2][0].replace("−", "-") == f"{scores.mean():.1f} ({low:.1f} to {high:.1f})"
    layout = {r[0][0]: r for r in page.tables["e0-scores-by-dataset"]}
    place = [text for text, _ in page.tables["e0-scores-by-dataset"][0]].index(column)
    assert layout[dataset][place][0] == row[2][0]
    assert row[8][0] == f"{step:,}"
    if column != "SA-CQL":
        gap = scores_of(sources[where], "SA-CQL", dataset, step) - scores
        found = next(r for r in page.tables["e0-differences"] if (r[0][0], r[1][0]) == (dataset, column))
        assert float(str(found[2][1])) == pytest.approx(gap.mean())
        tested = stats.ttest_1samp(gap.mean(1), 0.0)
        low, high = tested.confidence_interval(0.95)
        assert found[2][0].replace("−", "-") == f"{gap.mean():.1f} ({low:.1f} to {high:.1f})"
        assert float(str(found[4][1])) >= tested.pvalue
        assert found[5][0] == "no significant difference"  # none of the twelve is, with three seeds
        assert found[6][0] == "3 pairs"


def test_the_papers_numbers_stand_beside_ours_where_the_experiment_is_the_papers(stored: Path, tmp_path: Path) -> None:
    page = Page(report([stored], tmp_path / "r.html").read_text(encoding="utf-8"))
    row = {r[1][0]: r for r in page.tables["e0-scores"]}
    assert (row["CQL"][3][0], row["SA-CQL"][3][0]) == ("74.1", "86.3")
    assert float(str(row["SA-CQL"][4][1])) == pytest.approx(float(str(row["SA-CQL"][2][1])) - 86.3)


def test_a_store_gives_diagnostics_quality_events_and_provenance(stored: Path, tmp_path: Path) -> None:
    text = report([stored], tmp_path / "r.html").read_text(encoding="utf-8")
    page = Page(text)
    estimator = {r[1][0]: r for r in page.tables["e0-ratio-estimator"][1:]}
    assert float(str(estimator["SA-CQL"][2][1])) == pytest.approx(0.6)
    events = {r[1][0]: [cell[0] for cell in r[2:]] for r in page.tables["e0-events"][1:]}
    assert events["CQL"] == ["3", "3"]
    heads = [text for text, _ in page.tables["e0-events"][0]]
    assert heads == ["dataset", "method", "members", "ratio estimate unreliable"]
    assert "e0-runs-behind-the-numbers" in page.tables
    assert {r[3][0] for r in page.tables["e0-runs-behind-the-numbers"][1:]} >= {"CQL-0", "SA-CQL-2"}
    assert ["fffffffffffffff" in r[5][0] for r in page.tables["e0-data"][1:]] == [True]
    settings = {r[0][0]: [cell[0] for cell in r[1:]] for r in page.tables["e0-settings"]}
    assert settings["weights.kind"] == ["uniform", "real"]
    assert "smoke scale" in text


def test_over_all_datasets_leaves_out_who_lacks_some(page: Page) -> None:
    names = [row[0][0] for row in page.tables["e0-over-all-datasets"][1:]]
    assert names == ["CQL", "SA-CQL", "shuffled", "matched", "random"]  # CQL-half is on walker2d only


def test_one_seed_gets_no_verdict(page: Page) -> None:
    row = next(r for r in page.tables["e0-differences"] if r[1][0] == "CQL-half")
    assert [text for text, _ in row[2:]] == [
        "30.7 (no interval)", "", "–", "unknown (too few seeds)", "unpaired, 3 and 1 seeds",
    ]  # fmt: skip


def test_the_page_loads_nothing_from_elsewhere(made: Path, page: Page) -> None:
    text = (made / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"https?://|@import|url\((?!#)", text)
    for tag, attributes in page.tags:
        for name in ("src", "href"):
            assert str(attributes.get(name) or "#").startswith(("#", "data:")), (tag, attributes)


def test_the_page_is_accessible(page: Page) -> None:
    tags = [tag for tag, _ in page.tags]
    assert ("html", {"lang": "en"}) in page.tags
    for needed in ("main", "nav", "header", "h1", "caption", "figcaption"):
        assert needed in tags
    assert tags.count("h1") == 1
    ids = [attributes["id"] for _, attributes in page.tags if attributes.get("id")]
    assert len(ids) == len(set(ids))
    for tag, attributes in page.tags:
        if tag == "svg":
            assert attributes["role"] == "img"
            assert set(str(attributes["aria-labelledby"]).split()) <= set(ids)
        if tag == "th":
            assert attributes.get("scope") in ("row", "col")


def test_a_title_is_text_not_markup(made: Path) -> None:
    assert "<h1>Medium &lt;datasets&gt;</h1>" in (made / "report.html").read_text(encoding="utf-8")


def test_runs_of_an_experiment_that_has_no_store_yet(sources: list[Path], tmp_path: Path) -> None:
    (tmp_path / "out" / "cql-hopper").mkdir(parents=True)
    (tmp_path / "out" / "cql-hopper" / "joint").symlink_to(sources[0])
    page = Page(report([tmp_path / "out"], tmp_path / "r.html").read_text(encoding="utf-8"))
    assert {row[0][0] for row in page.tables["e0-scores"][1:]} == {"hopper-medium-v2"}


def test_a_damaged_configuration_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(SappError, match=r"config\.json: not a run's configuration"):
        report([tmp_path], tmp_path / "r.html")


def test_two_runs_of_one_dataset_method_and_seed_are_one_member_and_it_is_said(
    sources: list[Path], tmp_path: Path
) -> None:
    """The same runs twice: the newest counts, no seed is there twice, and what was left out is on the page."""
    for name in ("first", "second"):
        shutil.copytree(sources[0], tmp_path / name)
    os.utime(tmp_path / "first" / "evaluations.csv", (1e9, 1e9))
    text = report([tmp_path / "first", tmp_path / "second"], tmp_path / "r.html").read_text(encoding="utf-8")
    page = Page(text)
    assert {row[6][0] for row in page.tables["e0-differences"][1:]} == {"3 pairs"}
    assert {row[3][0].partition(":")[0] for row in page.tables["e0-runs-behind-the-numbers"][1:]} == {"second"}
    assert "CQL on hopper-medium-v2, seed 0, is there more than once: the newest counts (second: " in text


def test_two_runs_of_one_name_with_other_settings_are_two_methods(sources: list[Path], tmp_path: Path) -> None:
    for name in ("first", "second"):
        shutil.copytree(sources[0], tmp_path / name)
    config = json.loads((tmp_path / "second" / "config.json").read_text(encoding="utf-8"))
    for described in config["members"]:
        if described["name"] == "matched":
            described["algorithm"]["alpha"] = 99.0
    (tmp_path / "second" / "config.json").write_text(json.dumps(config), encoding="utf-8")
    page = Page(report([tmp_path / "first", tmp_path / "second"], tmp_path / "r.html").read_text(encoding="utf-8"))
    methods = [text for text, _ in page.tables["e0-scores-by-dataset"][0]]
    assert methods[1:7] == ["CQL", "SA-CQL", "shuffled", "matched [first]", "random", "matched [second]"]
