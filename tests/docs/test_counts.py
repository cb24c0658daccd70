"""Counts on pages, in words most of them, are those of the code, of the tests and of committed rows.

``test_numbers.py`` finds numbers that may be results; these are small or in words, so each is named here. A page's
fragment is made from what it counts and must stand there word for word, whatever the line breaks.
"""

from __future__ import annotations

import re
import tomllib

import pytest
from fragments import ROOT

from sapp.algorithms.edac import edac, sac_n
from sapp.cli.main import main
from sapp.data.benchmark_names import NAMES


def test_the_oldest_python_is_the_packages() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"Python {project['requires-python'].removeprefix('>=')} or newer" in readme


def test_the_exit_code_of_an_error_is_the_pages(capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert f"the exit code is {main(['evaluate', 'no-such-run'])}, and nothing half-written is left" in text
    assert capsys.readouterr().err.startswith("sapp: error: ")


def test_the_presets_of_edac_and_sac_n_are_its_pages() -> None:
    """η and the number of critics, for every dataset of the benchmark."""
    text = (ROOT / "docs" / "algorithms" / "edac.md").read_text(encoding="utf-8")
    for name in NAMES:
        environment, _, quality = name.partition("-")
        (row,) = re.findall(rf"(?m)^\| {environment} \| (\d+) \| ([^|]+) \| ([^|]+) \|$", text)
        plain, *others = row[1].split("; ")
        eta = next((each.split()[0] for each in others if quality in re.split(r" on | and ", each)), plain)
        assert (edac(name).critics, edac(name).eta) == (int(row[0]), float(eta)), name
        first, _, rest = row[2].partition(" on medium, else ")
        assert sac_n(name).critics == int(first if quality == "medium" or not rest else rest), name
