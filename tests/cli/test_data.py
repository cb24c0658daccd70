"""What columns mean, said on the command line; and logs in other units than their environment."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest

from sapp.cli.main import main
from sapp.data import load
from sapp.runs.run import Run


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Twenty patients of four visits; the outcome is on the last row."""
    rows = [f"{p},{t},{0.1 * t},{0.25 * (t % 4)},{1 if t == 3 else 0}" for p in range(20) for t in range(4)]
    (tmp_path / "log.csv").write_text("patient,visit,heart,dose,outcome\n" + "\n".join(rows) + "\n")
    (tmp_path / "map.toml").write_text('episode = "patient"\nobservation = "heart"\naction = "dose"\n')
    return tmp_path / "log.csv"


def test_words_of_the_command_line_come_on_top_of_a_file(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["data", "check", str(log), "--columns", str(log.with_name("map.toml")), "--map", "reward=outcome"]
    assert main(words) == 2
    assert "100 % of the reward" in capsys.readouterr().err
    assert main([*words, "--map", "last_step=end", "--map", "time=visit", "--map", "action_low=0"]) == 0
    page = capsys.readouterr().out
    assert "20 episodes (20 end, 0 stop unfinished)" in page
    assert "columns used: patient as episode; visit as the order of rows; heart as observation 0" in page
    assert "rows: 80 read, 0 dropped, 80 kept" in page
    assert f"Next: sapp train cql {log} --columns {log.with_name('map.toml')} --map reward=outcome" in page


def test_the_next_command_is_quoted_for_the_shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"{t // 10},{0.1 * t},{0.25 * (t % 4)},{t % 3},{int(t % 10 == 9)}" for t in range(200)]
    log = tmp_path / "plant logs.csv"
    log.write_text("Batch No.,Temp (K),valve,yield,end\n" + "\n".join(rows) + "\n")
    words = ["data", "check", str(log), "--map", "observation=Temp (K)", "--map", "episode=Batch No."]
    words += ["--map", "action=valve", "--map", "reward=yield", "--map", "terminal=end"]
    assert main(words) == 0
    command = capsys.readouterr().out.partition("Next: ")[2].partition(" --steps")[0]
    assert shlex.split(command) == ["sapp", "train", "cql", *words[2:]]


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("rewrd=outcome", "unknown key 'rewrd' (did you mean 'reward'?)"),
        ("last_step=stop", "last_step is 'stop'; use one of drop, end"),
        ("action_low=few", "give numbers"),
        ("one_row_episodes=perhaps", "use true or false"),
        ("max_episode_steps=many", "give a whole number"),
        ("nowhere.toml", "no such file"),
    ],
)
def test_words_that_mean_nothing(log: Path, capsys: pytest.CaptureFixture[str], word: str, message: str) -> None:
    assert main(["data", "show", str(log), "--map", word]) == 2
    assert message in capsys.readouterr().err


def test_show_prints_what_became_of_every_column(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["data", "show", str(log), "--columns", str(log.with_name("map.toml"))]
    words += ["--map", "reward=outcome", "--map", "last_step=drop"]
    assert main([*words, "--json"]) == 0
    ledger = json.loads(capsys.readouterr().out)["ledger"]
    assert ledger[0] == "rows: 80 read, 20 dropped, 60 kept"
    assert "columns not used: visit (looks like" not in " ".join(ledger)
    assert any(line.startswith("dropped: ") and "(100.0% of the reward)" in line for line in ledger)


def test_actions_in_shares_are_said_and_stretched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    np.savez(
        "log.npz", observations=rng.uniform(-1, 1, (300, 3)), actions=rng.uniform(-1, 1, (300, 1)),
        rewards=rng.normal(size=300), terminals=np.zeros(300), timeouts=np.arange(300) % 50 == 49,
        next_observations=rng.uniform(-1, 1, (300, 3)),
    )  # fmt: skip
    command = ["train", "bc", "log.npz", "--environment", "Pendulum-v1", "--steps", "2", "--hidden", "8", "--quiet"]
    command += ["--eval-every", "2", "--eval-episodes", "1"]
    assert main([*command, "--out", "plain"]) == 0
    assert "but Pendulum-v1 takes [-2, 2]" in capsys.readouterr().err
    assert main([*command, "--out", "stretched", "--rescale-actions"]) == 0
    assert "but Pendulum-v1 takes" not in capsys.readouterr().err
    assert main([*command[:-4], "--eval-every", "0", "--out", "unplayed-2"]) == 0
    assert "but Pendulum-v1 takes [-2, 2]" in capsys.readouterr().err
    assert main(["evaluate", "unplayed-2", "--episodes", "1"]) == 0
    assert "a policy will play within the logs' bounds, at 50% of" in capsys.readouterr().err
    assert main(["evaluate", "stretched", "--episodes", "1"]) == 0
    assert "but Pendulum-v1 takes" not in capsys.readouterr().err
    problem = Run(tmp_path / "stretched").plan.problems[0]
    assert (problem.action_low, problem.action_high) == ([-2.0], [2.0])
    assert problem.ledger is not None
    assert "stretched" in problem.ledger["entries"][-1]["what"]
    assert main([*command[:3], "--rescale-actions", "--out", "none", "--steps", "2"]) == 2
    assert "name it with --environment" in capsys.readouterr().err
    assert load("log.npz").action_high.tolist() == [1]  # type: ignore[union-attr]


def test_data_show_convert_and_plot(tmp_path, capsys):
    table = tmp_path / "plant.csv"
    lines = ["batch,minute,temperature,valve,yield"]
    lines += [f"{b},{t},{20 + t + b},{10 * t},{t / 2}" for b in range(3) for t in range(5)]
    table.write_text("\n".join(lines) + "\n")
    mapping = tmp_path / "map.toml"
    mapping.write_text(
        'episode = "batch"\nlast_step = "drop"\ntime = "minute"\nobservation = ["temperature"]\naction = ["valve"]\n'
        'reward = "yield"\n'
        "action_low = [0]\naction_high = [100]\n"
    )
    assert main(["data", "show", str(table), "--columns", str(mapping), "--plot", str(tmp_path / "plant.png")]) == 0
    page = capsys.readouterr().out
    assert "3: 0 end terminal, 3 time out" in page
    assert (tmp_path / "plant.png").read_bytes().startswith(b"\x89PNG")
    made = tmp_path / "plant.npz"
    argv = [
        "data",
        "convert",
        str(table),
        str(made),
        "--columns",
        str(mapping),
        "--environment",
        "Plant-v0",
        "--name",
        "p",
    ]
    assert main(argv) == 0
    capsys.readouterr()
    assert main(["data", "show", str(made), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["name"], summary["environment"], summary["episodes"]) == ("p", "Plant-v0", 3)
    assert summary["action_high"] == [100.0]


def test_data_replay_of_a_made_file(tmp_path, capsys):
    import h5py

    from sapp.envs import make

    hopper = make("hopper", physics="d4rl")
    observation = hopper.reset(4, seed=0)
    action = np.full((4, 3), 0.25)
    successor, reward, terminal = hopper.step(action)
    with h5py.File(tmp_path / "hopper_medium-v2.hdf5", "w") as file:
        file["observations"], file["actions"], file["rewards"] = observation, action, reward
        file["next_observations"], file["terminals"] = successor, terminal
    assert main(["data", "replay", str(tmp_path / "hopper_medium-v2.hdf5"), "--physics", "d4rl", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["errors"][0]["largest"] < 1e-6
