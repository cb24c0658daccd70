"""The Atari experiment's tables from hand-made runs: final and best, beside the paper's numbers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from sapp.core.errors import SappError
from sapp.data.loaders.dqn_replay import save_dqn_replay
from sapp.envs.catch import behaviour_logs
from sapp.experiments import atari
from sapp.experiments.atari import column, environment, evaluations, grid, report
from sapp.experiments.driver import run_experiment
from sapp.experiments.grid import Scale, load_dataset, scaled
from sapp.experiments.paper import published
from sapp.experiments.store import Store
from sapp.weights import KINDS, Control
from studies.baselines import baselines, curves

HEADER = "step,updates,member,episodes,return_mean,return_std,score_mean,score_std,length_mean,returns\n"


def write(path: Path, rows: list[tuple[int, str, float]]) -> None:
    """Two episodes each, one point below and one above the mean."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"{step},{step},{member},2,{value},1,,,10,{value - 1};{value + 1}\n" for step, member, value in rows]
    path.write_text(HEADER + "".join(lines))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    logs = tmp_path / "logs" / "Pong"
    (logs / "replay_logs").mkdir(parents=True)
    log = {"name": "pong-dqn-0", "provenance": {"agent": "online DQN"}}
    (logs / "replay_logs" / "sapp.json").write_text(json.dumps(log))
    episodes = ["length,clipped_return,return,end", "10,-3,-21,terminal", "20,3,15,terminal", "5,1,1,timeout"]
    (logs / "replay_logs" / "episodes.csv").write_text("\n".join(episodes))
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "config.json").write_text(json.dumps({"phases": [{"steps": 20}, {"steps": 30}]}))
    write(tmp_path / "joint" / "evaluations.csv", [
        (100, "SA-CQL/pong-dqn-0/0", 5.0), (100, "SA-CQL/pong-dqn-0/1", 1.0), (100, "CQL/pong-dqn-0/0", -2.0),
        (200, "SA-CQL/pong-dqn-0/0", 3.0), (200, "SA-CQL/pong-dqn-0/1", 2.0), (200, "CQL/pong-dqn-0/0", -4.0),
    ])  # fmt: skip
    write(tmp_path / "rem" / "evaluations.csv", [(120, "REM/pong-dqn-0/0", 7.0)])
    write(tmp_path / "rem" / "stopped.csv", [(150, "REM/pong-dqn-0/0", 6.0)])
    return tmp_path


def test_final_and_best_by_hand(out: Path) -> None:
    text = report(out, ["Pong", "Qbert"])
    # seeds end at 3 and 2, their best are 5 and 2; updates count the shared phase too
    assert "| Pong | SA-CQL | 2 | 220 | 2.5 ± 0.5 | 3.5 ± 1.5 | 16.9 ± 2.2 |" in text
    assert "| Pong | CQL | 1 | 220 | -4 ± 0 | -2 ± 0 | 15.65 ± 2.2 |" in text
    # the checkpoint at which a time limit stopped a run is its last
    assert "| Pong | REM | 1 | 150 | 6 ± 0 | 7 ± 0 | 10.1 ± 3.3 |" in text
    assert "35 steps of online DQN, 3 episodes; mean return -3 over all, 15 over the last tenth, best 15" in text
    # seed 0 alone has both: 3 − (−4), and 5 − 7 after the 120 updates of both; paired episodes leave nothing over
    assert "| Pong | CQL | 220 | +7 (7 to 7) |" in text
    assert "| Pong | REM | 120 | -2 (-2 to -2) |" in text
    assert "| Pong | SA-CQL | 2" not in text.partition("SA-CQL −")[2]
    assert "Qbert" not in text  # it has no log
    assert (out / "curves.png").read_bytes()[:4] == b"\x89PNG"
    assert (out / "results.md").read_text() == text
    curves = (out / "curves.csv").read_text().splitlines()
    assert curves[:3] == ["game,column,seed,updates,return", "Pong,CQL,0,120,-2", "Pong,CQL,0,220,-4"]
    assert len(curves) == 1 + len(evaluations(out)) == 9


def test_where_no_updates_are_common_the_last_are_compared(out: Path) -> None:
    write(out / "rem" / "evaluations.csv", [(150, "REM/pong-dqn-0/0", 6.0)])  # what was played when it was stopped, too
    assert "| Pong | REM | 220 and 150 | -3 (-3 to -3) |" in report(out, ["Pong"])
    assert [row["updates"] for row in evaluations(out) if row["column"] == "REM"] == [150]


def test_nothing_to_report_is_said(out: Path, tmp_path: Path) -> None:
    with pytest.raises(SappError, match="nothing was evaluated yet"):
        report(tmp_path / "nowhere", ["Pong"])
    (out / "shared" / "config.json").unlink()
    with pytest.raises(SappError, match="how many updates came before"):
        report(out, ["Pong"])


def test_given_policies_play_the_logs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shapes = {"c0": (2, 4, 4, 4), "f": (3, 72), "a": (3, 3)}
    arrays = {f"{name}{kind}": np.zeros(shape[:size], np.float32)
              for name, shape in shapes.items() for kind, size in (("w", 4), ("b", 1))}  # fmt: skip
    np.savez(tmp_path / "a_catch_player.npz", strides=np.array([4]), **arrays)
    words = ["--out", str(tmp_path / "out"), "--logs-only", "--policies", str(tmp_path), "--epsilons", "0", "0.5",
             "--log-steps", "400", "--log-rows", "8", "--temperature", "0.5"]  # fmt: skip
    atari.main([*words, "--games", "catch"])
    assert "catch: logged 400 steps" in capsys.readouterr().out
    log = json.loads((tmp_path / "out" / "logs" / "catch" / "replay_logs" / "sapp.json").read_text())
    assert log["name"] == "catch-given-0"
    assert {key: log["provenance"][key] for key in ("agent", "epsilon", "temperature", "rows")} == {
        "agent": "the policy a_catch_player", "epsilon": [0.0, 0.5], "temperature": 0.5, "rows": 8,
    }  # fmt: skip
    line = atari._log_line("catch", tmp_path / "out" / "logs" / "catch", log["provenance"])
    assert line.startswith("- catch: 400 steps of the policy a_catch_player, random actions [0.0, 0.5], ")
    atari.main([*words, "--games", "catch"])  # it is there: nothing is played again
    assert capsys.readouterr().out == ""
    with pytest.raises(SappError, match=r"no policy of Pong \(\*Pong\*.npz\)"):
        atari.main([*words, "--games", "Pong"])


@pytest.mark.slow
def test_logs_are_played_and_trained_on_within_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real command on the small game: runs in the order of their cost, REM played where the fork is, then a report
    without matplotlib from nothing but tables and settings."""
    begun = []
    monkeypatch.setattr(
        atari, "run_job", lambda out, *a, **k: begun.append(out.name) or baselines.run_job(out, *a, **k)
    )
    monkeypatch.setattr(curves, "find_spec", lambda _: None)
    sizes = [f"{name}={','.join(map(str, value)) if isinstance(value, tuple) else value}"
             for name, value in atari.SMOKE_SIZES.items()]  # fmt: skip
    settings = [word for size in sizes for word in ("--set", size)]
    common = ["--out", str(tmp_path / "out"), "--games", "catch", *settings]
    atari.main([*common, "--logs-only", "--log-steps", "400", "--log-rows", "8", "--log-warm-up", "100"])
    atari.main([*common, "--steps", "6", "--pretrain", "5", "--ratio", "2", "--seeds", "1", "--evaluations", "2",
                "--eval-episodes", "2", "--minutes", "60", "--spare", "9"])  # fmt: skip
    assert begun == ["shared", "rem", "joint"]
    for file in (tmp_path / "out").rglob("*"):
        if file.suffix in (".csv", ".json"):
            copy = tmp_path / "copy" / file.relative_to(tmp_path / "out")
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(file.read_bytes())
    atari.main(["--out", str(tmp_path / "copy"), "--games", "catch", "--report"])
    text = (tmp_path / "copy" / "results.md").read_text()
    assert text == (tmp_path / "out" / "results.md").read_text()
    for name in ("CQL", "SA-CQL", "shuffled", "matched", "random", "REM"):
        assert f"| catch | {name} | 1 | 11 |" in text
    assert "| catch | REM | 11 |" in text.partition("SA-CQL −")[2]
    assert {row["updates"] for row in evaluations(tmp_path / "copy")} == {3, 8, 11}


def test_columns_share_everything_but_the_kind_of_weights() -> None:
    settings = {"batch_size": "8", "network.precision": "mixed", "ensemble": "3"}
    algorithm = column("matched", settings)("pong-dqn-0")
    assert (algorithm.batch_size, algorithm.network.precision, algorithm.alpha) == (8, "mixed", 1.0)
    assert isinstance(algorithm.weights, Control)
    assert KINDS[algorithm.weights.kind] == "matched"
    assert (algorithm.weights.of.f.b0, algorithm.weights.of.f.b1) == (0.5, 2.0)
    assert [environment(name) for name in ("Pong", "catch", "ALE/Qbert-v5")] == ["ALE/Pong-v5", "catch", "ALE/Qbert-v5"]


def test_the_grid_is_the_papers_second_table() -> None:
    declared = grid(scaled("paper"))
    assert declared.datasets == ("pong", "breakout", "qbert", "seaquest")
    assert declared.columns == ("CQL", "SA-CQL", "shuffled", "matched", "random", "REM")
    phases = [
        [phase.steps for phase in family.phases(declared.scale, declared.datasets)] for family in declared.families
    ]
    assert phases == [[20_000, 100_000, 1_000_000], [20_000, 1_000_000]]
    own = declared.families[0].columns["SA-CQL"]("qbert")
    assert (own.alpha, own.lr, own.batch_size, own.target_every) == (1.0, 6.25e-5, 64, 8_000)
    assert own.weights.of.fallback is False
    assert grid(scaled("small", precision="mixed")).families[1].columns["REM"]("pong").network.precision == "mixed"
    assert [published("atari", name, "qbert") for name in ("REM", "CQL", "SA-CQL", "matched")] == [
        6778,
        13844,
        17562,
        None,
    ]


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
        assert {(row["dataset"], row["column_name"]) for row in store.rows("cells")} == {
            ("catch-60", "SA-CQL"), ("catch-60", "REM"),
        }  # fmt: skip
        returns = [row["return"] for row in store.rows("evaluations")]
    assert len(returns) >= 4
    assert all(-1.0 <= value <= 1.0 for value in returns)
