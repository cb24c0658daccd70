"""``sapp demo`` at a small size: what it prints and writes, and that it goes on where it was interrupted."""

from __future__ import annotations

import io
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from sapp.cli.demo_problem import CASES, EVEN, UNEVEN, VARIANTS, Sizes
from sapp.cli.demo_run import Shown, demo, table
from sapp.training import loop

SIZES = Sizes(exact_worlds=6, worlds=3, steps=6, hidden=(8,))
PNG = b"\x89PNG"


def shown_in(folder: Path, sizes: Sizes | None = SIZES) -> tuple[Shown, str]:
    """The demo and what it printed."""
    text = io.StringIO()
    found = demo(folder, sizes, progress=False, console=Console(file=text, width=120))
    return found, text.getvalue()


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Shown, str]:
    return shown_in(tmp_path_factory.mktemp("demo") / "shown")


def test_it_prints_both_answers_an_estimate_and_what_it_wrote(shown: tuple[Shown, str]) -> None:
    found, text = shown
    for part in ("Solved exactly", "Learned by networks", "shuffled", "coverage:", "uneven", "even", "minus CQL"):
        assert part in text
    last = text.strip().splitlines()[-5:]
    assert last[0].startswith("From the logs alone (sapp evaluate --offline): SA-CQL/uneven-0/0: ")
    assert last[1].startswith(f"Exported: {found.path / 'policy.onnx'}")
    assert last[2] == f"Figure: {found.path / 'demo.png'}"
    assert last[3].startswith(f"Run: {found.path / 'run'}  (")
    assert last[4].startswith("Next, with logs of your own: sapp data check")
    assert (found.path / "demo.png").read_bytes().startswith(PNG)
    assert (found.path / "policy.md").read_text(encoding="utf-8").startswith("# SA-CQL/")


def test_the_variants_differ_in_strength_and_weights_only_and_each_learns_every_world(shown: tuple[Shown, str]) -> None:
    found, _ = shown
    assert {(member.algorithm, member.dataset) for member in found.run.members} == {
        (name, problem) for name in VARIANTS for problem in ("uneven-0", "uneven-1", "uneven-2", "even-0", "even-1")
    }
    assert {name: len(values) for name, values in found.learned[EVEN].items()} == dict.fromkeys(VARIANTS, 2)
    assert {name: len(values) for name, values in found.exact[UNEVEN].items()} == dict.fromkeys(VARIANTS, 3)
    assert all(0.0 <= value <= 300.0 for of in found.learned.values() for row in of.values() for value in row)
    of_cql = [row for row in found.run.metrics() if row["algorithm"] == "CQL" and row["phase"] == "joint"]
    assert {float(row["weights/mean"]) for row in of_cql if row.get("weights/mean")} <= {1.0}


def test_the_table_has_paired_differences() -> None:
    regret = {case: {"CQL": np.array([4.0, 6.0, 8.0]), "SA-CQL": np.array([3.0, 5.0, 7.0])} for case in CASES}
    regret = {case: of | {"shuffled": of["CQL"] + np.array([0.0, 1.0, 2.0])} for case, of in regret.items()}
    text = io.StringIO()
    Console(file=text, width=120).print(table("Regret", regret))
    rows = {line.split("│")[1].strip(): line for line in text.getvalue().splitlines() if line.startswith("│")}
    assert "5.0 %" in rows["SA-CQL"]
    assert "-1.0 (-1.0 to -1.0)" in rows["SA-CQL"]
    assert "+1.0 (-1.5 to +3.5)" in rows["shuffled"]


def test_an_interrupted_demo_goes_on_and_ends_like_a_straight_one(
    shown: tuple[Shown, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    straight, printed = shown
    out, plain = tmp_path / "demo", loop.calls

    def run(populations, learners, sums, phase, steps):  # type: ignore[no-untyped-def]
        if phase.name == "joint":
            signal.raise_signal(signal.SIGINT)
        return plain(populations, learners, sums, phase, steps)

    with monkeypatch.context() as patch:
        patch.setattr(loop, "calls", run)
        with pytest.raises(loop.Interrupted, match=f"interrupted; saved. Continue with: sapp demo --out {out}$"):
            shown_in(out)
    assert not (out / "demo.png").exists()
    found, text = shown_in(out, None)  # as it began: no sizes are needed
    assert text.startswith(f"Continuing the demo in {out}, as it began: 3 problems, 6 steps.")
    assert tables(text) == tables(printed)
    assert found.run.checkpoints[10].read_bytes() == straight.run.checkpoints[10].read_bytes()


def test_a_demo_that_is_done_is_shown_again(shown: tuple[Shown, str], tmp_path: Path) -> None:
    straight, printed = shown
    out = Path(shutil.copytree(straight.path, tmp_path / "demo"))
    (out / "demo.png").unlink()
    assert tables(shown_in(out, None)[1]) == tables(printed)
    assert (out / "demo.png").read_bytes().startswith(PNG)


def tables(text: str) -> list[str]:
    """The rows of the tables that a demo printed."""
    return [line for line in text.splitlines() if line.startswith("│")]
