"""Table 2's grid: discrete SA-CQL with its controls and REM, on logs of games."""

from __future__ import annotations

from pathlib import Path

import pytest

from sapp.core.errors import SappError
from sapp.data.loaders.dqn_replay import save_dqn_replay
from sapp.envs.catch import behaviour_logs
from sapp.experiments.atari import grid
from sapp.experiments.datasets import load_dataset
from sapp.experiments.driver import run_experiment
from sapp.experiments.grid import Scale, scaled
from sapp.experiments.paper import published
from sapp.experiments.store import Store


def test_the_grid_is_the_papers_second_table() -> None:
    declared = grid(scaled("paper"))
    assert set(declared.datasets) == {"pong", "breakout", "qbert", "seaquest"}
    assert declared.variants == ("CQL", "SA-CQL", "shuffled", "matched", "random", "REM")
    phases = [
        [phase.steps for phase in family.phases(declared.scale, declared.datasets)] for family in declared.families
    ]
    assert phases == [[20_000, 100_000, 1_000_000], [20_000, 1_000_000]]
    own = declared.families[0].variants["SA-CQL"]("qbert")
    assert (own.alpha, own.lr, own.batch_size, own.target_every) == (1.0, 6.25e-5, 64, 8_000)
    assert (own.weights.of.f.b0, own.weights.of.f.b1, own.weights.of.fallback) == (0.5, 2.0, False)
    assert grid(scaled("small", precision="mixed")).families[1].variants["REM"]("pong").network.precision == "mixed"
    assert grid(scaled("small", fallback=True)).families[0].variants["matched"]("pong").weights.of.fallback is True
    found = [published("atari", name, "qbert") for name in ("REM", "CQL", "SA-CQL", "matched")]
    assert found == [6778, 13844, 17562, None]


def test_logs_of_games_are_found_in_a_folder(tmp_path: Path) -> None:
    played = behaviour_logs(3, name="anything")
    save_dqn_replay(played, tmp_path / "Pong" / "replay_logs")
    found = load_dataset("pong", tmp_path)
    assert found.name == "pong"
    assert (found.frames == played.frames).all()
    with pytest.raises(SappError, match=r"no logs of qbert; make them with: sapp collect ALE/Qbert-v5 --algorithm dqn"):
        load_dataset("qbert", tmp_path)
    with pytest.raises(SappError, match="no folder of logs was given"):
        load_dataset("pong")


def test_frames_go_through_the_store(tmp_path: Path) -> None:
    scale = Scale("smoke", 10, 5, 5, (0,), 5, 2, 5)
    run_experiment(grid(scale).only(None, ["SA-CQL", "REM"]), tmp_path, progress=False, say=lambda _: None)
    with Store(tmp_path / "results.sqlite") as store:
        assert {(row["dataset"], row["variant"]) for row in store.rows("cells")} == {
            ("catch-60", "SA-CQL"), ("catch-60", "REM"),
        }  # fmt: skip
        returns = [row["return"] for row in store.rows("evaluations")]
    assert len(returns) >= 4
    assert all(-1.0 <= value <= 1.0 for value in returns)
