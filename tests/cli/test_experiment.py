"""The commands ``sapp experiment`` and ``sapp report``; see tests/report for the latter."""

from __future__ import annotations

from pathlib import Path

import pytest

from sapp.cli.experiment import EXPERIMENTS
from sapp.cli.main import main
from sapp.experiments.store import Store
from sapp.runs.run import Run


def test_the_help_names_every_experiment(capsys: pytest.CaptureFixture[str]) -> None:
    from sapp.experiments.find import EXPERIMENTS as GRIDS

    assert list(EXPERIMENTS) == list(GRIDS)
    assert main(["experiment", "--help"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in EXPERIMENTS)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["tabel1"], "experiment 'tabel1' is unknown (did you mean 'table1'?)"),
        (["table1", "--scale", "large"], "scale 'large' is unknown"),
        (["table1", "--seeds", "x"], "--seeds 'x': give a count"),
        (["table1", "--seeds", "0"], "--seeds '0': give a count"),
        (["table1", "--steps", "0"], "steps is 0"),
        (["table1", "--methods", "CQLL"], "no method 'CQLL' (did you mean 'CQL'?)"),
        (["table1", "--datasets", "moon"], "no dataset 'moon'"),
        (["table1", "--precision", "int4"], "precision 'int4'"),
        (["mine.py", "--on", "ray"], "--on ray: other machines cannot import mine.py"),
        (["atari", "--scale", "smoke", "--data", "logs"], "--data: --scale smoke makes its own small logs"),
        (["table1", "--data", "logs"], "--data: --scale smoke makes its own small logs"),
    ],
)
def test_bad_input_is_one_line_and_code_2(words, message, tmp_path, capsys) -> None:
    assert main(["experiment", *words, "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_smoke_from_command_to_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["experiment", "table1", "--scale", "smoke", "--methods", "TD3+BC", "--datasets", "point-60"]
    words += ["--steps", "8", "--out", str(tmp_path), "--quiet"]
    assert main(words) == 0
    first = capsys.readouterr().out
    assert "td3bc-point: 2 runs of 2 to train" in first
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for word in ("TD3+BC", "point-60", "scale: smoke, 8 steps", "Cost"):
        assert word in page
    assert main(words) == 0
    assert capsys.readouterr().out.count("all done before") == 1
    with Store(tmp_path / "results.sqlite") as store:
        assert len(store.known()) == 2


@pytest.mark.slow
def test_table1_at_smoke_scale_is_whole_and_small(tmp_path: Path) -> None:
    """All methods, hardly any steps: what it costs is compiling, and a program serves many members."""
    assert main(["experiment", "table1", "--scale", "smoke", "--out", str(tmp_path), "--quiet"]) == 0
    assert (tmp_path / "report.html").exists()
    runs = [Run(config.parent) for config in tmp_path.rglob("config.json")]
    assert sum(run.total_steps for run in runs) <= 4_000
    assert sum(len(run.plan.groups()) * len(run.plan.phases) for run in runs) <= 12
    with Store(tmp_path / "results.sqlite") as store:
        assert len(store.known()) == 44
