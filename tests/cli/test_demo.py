from __future__ import annotations

import io
import shutil
import signal
from pathlib import Path

import pytest
from rich.console import Console

from sapp.cli.demo_run import algorithms, demo, state_weights
from sapp.training import loop

SIZES = {"seeds": 2, "steps": 16, "pretrain": 8, "ratio_steps": 8, "logged_episodes": 8, "eval_episodes": 3}
SIZES |= {"hidden": (8,)}


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory):
    """The demo at tiny scale: the run, and what was printed."""
    text = io.StringIO()
    out = tmp_path_factory.mktemp("demo") / "run"
    run = demo(out, **SIZES, progress=False, console=Console(file=text, width=120))
    return run, text.getvalue()


def test_ends_with_table_figure_and_run_path(shown):
    run, text = shown
    for row in ("behaviour (8 logged episodes)", "CQL", "SA-CQL", "SA-CQL − CQL", "95 % interval", "controls"):
        assert row in text
    figure, path = text.strip().splitlines()[-2:]
    assert figure == f"Figure: {run.path / 'demo.png'}"
    assert path.startswith(f"Run: {run.path}  (")
    assert (run.path / "demo.png").read_bytes().startswith(b"\x89PNG")


def test_both_algorithms_share_one_program_and_differ_in_the_weights_only(shown):
    run, _ = shown
    assert len(run.plan.groups()) == 1
    assert len(run.members) == 4
    joint = [row for row in run.metrics() if row["phase"] == "joint"]
    assert {float(row["weights/mean"]) for row in joint if row["algorithm"] == "CQL"} == {1.0}
    made = algorithms()
    assert made["CQL"].weights.of == made["SA-CQL"].weights.of


def test_before_the_weights_count_both_are_the_same(shown):
    run, _ = shown
    rows = [row for row in run.metrics() if row["phase"] == "pretrain"]
    mine, others = ([row for row in rows if row["algorithm"] == name] for name in ("CQL", "SA-CQL"))
    assert mine
    assert [{**row, "algorithm": "SA-CQL"} for row in mine] == others


def test_state_weights_cover_the_data_and_stay_in_range(shown):
    from sapp.envs.point import behaviour_dataset

    run, _ = shown
    dataset = behaviour_dataset(8)
    weights = state_weights(run, dataset)
    assert weights.shape == (2, dataset.size)
    assert weights.min() >= 0.5 - 1e-6
    assert weights.max() <= 1.5 + 1e-6


def test_the_demo_never_overwrites_another_run(trained, capsys):
    from sapp.cli.main import main

    before = {path: path.read_bytes() for path in trained.rglob("*") if path.is_file()}
    assert main(["demo", "--out", str(trained)]) == 2
    assert "already holds a run, and not one of the demo" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in trained.rglob("*") if path.is_file()} == before


def figures(text: str) -> list[str]:
    """The table that a demo printed."""
    return [line for line in text.splitlines() if line.startswith("│")]


def test_an_interrupted_demo_goes_on_and_ends_like_a_straight_one(shown, tmp_path, monkeypatch):
    straight, printed = shown
    out, plain = tmp_path / "run", loop.calls

    def run(populations, learners, sums, phase, steps):
        if phase.name == "joint":
            signal.raise_signal(signal.SIGINT)
        return plain(populations, learners, sums, phase, steps)

    with monkeypatch.context() as patch:
        patch.setattr(loop, "calls", run)
        with pytest.raises(loop.Interrupted, match=f"interrupted; saved. Continue with: sapp demo --out {out}$"):
            demo(out, **SIZES, progress=False, console=Console(file=io.StringIO()))
    assert not (out / "demo.png").exists()
    text = io.StringIO()
    found = demo(out, progress=False, console=Console(file=text, width=120))  # as it began: no sizes are needed
    assert found.step == 32
    assert text.getvalue().startswith(f"The demo in {out} goes on from step ")
    assert "as it began: 2 seeds, 16 steps at the end" in text.getvalue().replace("\n", " ")
    assert figures(text.getvalue()) == figures(printed)
    assert (out / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert found.checkpoints[32].read_bytes() == straight.checkpoints[32].read_bytes()


def test_a_demo_that_is_trained_is_shown(shown, tmp_path):
    straight, printed = shown
    out = Path(shutil.copytree(straight.path, tmp_path / "run"))
    (out / "demo.png").unlink()
    text = io.StringIO()
    demo(out, progress=False, console=Console(file=text, width=120))
    assert text.getvalue().startswith(f"The demo in {out} is trained, as it began")
    assert figures(text.getvalue()) == figures(printed)
    assert (out / "demo.png").exists()
