from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from sapp.demo import FIGURE, algorithms, demo, state_weights


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory):
    """The demo at tiny scale: the run, and what was printed."""
    text = io.StringIO()
    out = tmp_path_factory.mktemp("demo") / "run"
    sizes = {"seeds": 2, "steps": 16, "pretrain": 8, "ratio_steps": 8, "logged_episodes": 8, "eval_episodes": 3}
    run = demo(out, **sizes, hidden=(8,), progress=False, console=Console(file=text, width=120))
    return run, text.getvalue()


def test_ends_with_table_figure_and_run_path(shown):
    run, text = shown
    for row in ("behaviour (8 logged episodes)", "CQL", "SA-CQL", "SA-CQL − CQL", "95 % interval", "controls"):
        assert row in text
    figure, path = text.strip().splitlines()[-2:]
    assert figure == f"Figure: {run.path / FIGURE}"
    assert path.startswith(f"Run: {run.path}  (")
    assert (run.path / FIGURE).read_bytes().startswith(b"\x89PNG")


def test_both_algorithms_share_one_program_and_differ_in_the_weights_only(shown):
    run, _ = shown
    assert len(run.plan.groups()) == 1
    assert len(run.members) == 4
    joint = [row for row in run.metrics() if row["phase"] == "joint"]
    assert {float(row["weights/mean"]) for row in joint if row["member"].startswith("CQL/")} == {1.0}
    made = algorithms()
    assert made["CQL"].weights.of == made["SA-CQL"].weights.of


def test_before_the_weights_count_both_are_the_same(shown):
    run, _ = shown
    rows = [row for row in run.metrics() if row["phase"] == "pretrain"]
    mine, others = ([row for row in rows if row["member"].startswith(f"{name}/")] for name in ("CQL", "SA-CQL"))
    assert mine
    assert [{**row, "member": f"SA-{row['member']}"} for row in mine] == others


def test_state_weights_cover_the_data_and_stay_in_range(shown):
    from sapp.environments.point import behaviour_dataset

    run, _ = shown
    dataset = behaviour_dataset(8)
    weights = state_weights(run, dataset)
    assert weights.shape == (2, dataset.size)
    assert weights.min() >= 0.5 - 1e-6
    assert weights.max() <= 1.5 + 1e-6


def test_the_demo_never_overwrites_a_run(shown, capsys):
    from sapp.cli import main

    run, _ = shown
    assert main(["demo", "--out", str(run.path)]) == 2
    assert "already holds a run" in capsys.readouterr().err
    assert Path(run.path / FIGURE).exists()
