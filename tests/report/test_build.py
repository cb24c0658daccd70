"""The page, and its tables and figures as files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from test_page import Page

from sapp.cli.main import main
from sapp.report import report


@pytest.fixture(scope="module")
def page(made: Path) -> Page:
    return Page((made / "report.html").read_text(encoding="utf-8"))


def test_tables_and_figures_as_files(made: Path, page: Page) -> None:
    folder = made / "figures" / "1-runs"
    markdown, latex = ((folder / f"tables.{ending}").read_text(encoding="utf-8") for ending in ("md", "tex"))
    row = next(r for r in page.tables["e0-scores"] if (r[0][0], r[1][0]) == ("hopper-medium-v2", "SA-CQL"))
    cells = [text for text, _ in row]
    assert f"| {' | '.join(cells)} |" in markdown
    for line in markdown.splitlines():
        if line.startswith("| dataset | method | final"):
            assert line.count("|") == len(cells) + 1
    assert " & ".join(cells[:3]).replace("−", "$-$") in latex
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") == latex.count(r"\caption{")
    assert not re.search(r"(?<!\\)%", latex)
    for name in ("curve-hopper-medium-v2", "profile"):
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (folder / f"{name}.svg").read_text(encoding="utf-8")


def test_the_same_results_give_the_same_bytes(made: Path, sources: list[Path], tmp_path: Path) -> None:
    again = report(sources, tmp_path / "report.html", title="Medium <datasets>")
    assert again.read_bytes() == (made / "report.html").read_bytes()


def test_the_command(stored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(stored), "--out", str(tmp_path / "r.html")]) == 0
    assert capsys.readouterr().out == f"Report: {tmp_path / 'r.html'}\n"
    assert main(["report", str(tmp_path / "absent"), "--out", str(tmp_path / "r.html")]) == 2
    assert "no such file or folder" in capsys.readouterr().err
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "r.html")]) == 2
    assert "neither a run folder" in capsys.readouterr().err
