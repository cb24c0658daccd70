"""`sapp train`: sweeps, what is refused early, and what a run holds."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest

from sapp.cli.main import main
from sapp.cli.train import sweep
from sapp.core.errors import SappError
from sapp.runs.members import MemberId


def rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.open()))


def test_sweep_makes_every_combination_and_keeps_layers_together():
    table = sweep(["sa-cql"], {"alpha": "1,2", "b0": "0,0.5", "hidden": "8,8", "weights.hidden": "4,4"})
    assert list(table) == [f"sa-cql[alpha={a},weights.f.b0={b}]" for a in (1, 2) for b in ("0", "0.5")]
    made = table["sa-cql[alpha=2,weights.f.b0=0.5]"]("hopper-expert-v2")
    assert (made.alpha, made.hidden, made.weights.hidden, made.weights.f.b0) == (2.0, (8, 8), (4, 4), 0.5)
    assert made.weights.f.b1 == 5.0  # the dataset's preset still counts


def test_sweep_changes_an_option_where_it_exists():
    table = sweep(["cql", "sa-cql"], {"b0": "0.25"})
    assert table["cql"]("x").alpha == 5.0
    assert table["sa-cql"]("x").weights.f.b0 == 0.25
    with pytest.raises(SappError, match="no hyper-parameter 'b0'"):
        sweep(["cql"], {"b0": "0.25"})


def test_sweep_gives_each_algorithm_each_of_the_weights():
    table = sweep(["cql", "td3bc"], {"b1": "1,3"}, ["uniform", "shuffled:dualdice"])
    assert list(table) == [
        f"{name}+{weights}" for name in ("cql", "td3bc")
        for weights in ("uniform", "shuffled-dualdice[weights.of.f.b1=1]", "shuffled-dualdice[weights.of.f.b1=3]")
    ]  # fmt: skip
    made = table["td3bc+shuffled-dualdice[weights.of.f.b1=3]"]("walker2d-medium")
    assert (made.weights.of.f.b0, made.weights.of.f.b1) == (0.5, 3.0)
    with pytest.raises(SappError, match="IQL takes no state weights"):
        sweep(["iql"], {}, ["dualdice"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--seeds", "x"], "--seeds 'x'"),
        (["--alpha", "much"], "cannot read 'much'"),
        (["--weights", "dualdise"], "did you mean 'dualdice'"),
        (["--pretrain", "5"], "--pretrain and --ratio-steps are for weights that learn"),
        (["--precision", "half"], "precision"),
        (["--out", "TAKEN"], "already holds a run"),
        (["--out", __file__ + "/run"], "test_train.py is not a folder"),
        (["--map", "episode=x", "--steps", "0"], "steps is 0"),
        (["--map", "episode=x", "--eval-episodes", "0"], "eval_episodes is 0"),
        (["--map", "episode=x", "--checkpoint-every", "-5"], "checkpoint_every is -5"),
        (["--map", "episode=x", "--time-limit", "-1"], "time_limit is -1"),
        (["--map", "epsode=x"], "did you mean 'episode'"),
        (["--columns", "no-such-map.toml"], "no-such-map.toml"),
        (["--environment", "Hoper-v4"], "did you mean 'Hopper-v4'"),
    ],
)
def test_bad_options_are_reported_before_data_are_looked_for(options, words, trained, capsys):
    """Data may take minutes to make; these do not even exist."""
    given = [str(trained) if option == "TAKEN" else option for option in options]
    assert main(["train", "cql", "no-such-data.npz", *given]) == 2
    line = capsys.readouterr().err
    assert words in line
    assert "no-such-data" not in line


def test_discrete_learners_are_refused_before_a_known_dataset_is_made(monkeypatch, capsys):
    monkeypatch.setattr("sapp.training.planning.load", lambda source: pytest.fail("data were looked for"))
    for name in ("hopper-medium", "walker2d-random-v2"):
        assert main(["train", "discrete-cql", name]) == 2
        assert f"{name}: its actions are continuous, DiscreteCQL takes discrete ones" in capsys.readouterr().err


def test_weights_by_name_train_and_are_in_the_runs_configuration(point_file, tiny, short, tmp_path):
    out = tmp_path / "run"
    argv = ["train", "cql", str(point_file), *tiny, "--weights", "uniform,constant:0.5", *short]
    assert main([*argv, "--eval-every", "0", "--out", str(out)]) == 0
    members = json.loads((out / "config.json").read_text())["members"]
    assert [(each["name"], each["algorithm"]["weights"]["class"]) for each in members] == [
        ("cql+uniform", "Uniform"), ("cql+constant-0.5", "ConstantWeights"),
    ]  # fmt: skip


def test_train_leaves_a_whole_run(trained):
    assert {path.name for path in (trained / "checkpoints").iterdir()} == {
        "0000000010.safetensors",
        "0000000020.safetensors",
    }
    assert [row["step"] for row in rows(trained / "metrics.csv")] == ["10", "20"]
    played = rows(trained / "evaluations.csv")
    member = MemberId("cql", "point-behaviour", 0)
    assert [(row["step"], MemberId.of(row)) for row in played] == [("10", member), ("20", member)]
    config = json.loads((trained / "config.json").read_text())
    assert config["members"][0]["algorithm"]["hidden"] == [8]
    assert not list(trained.rglob("*.tmp"))


def test_a_run_of_changed_data_keeps_its_own_copy(point_file, trained, tiny, short, tmp_path):
    """What options made of the data is not in any file but the run's."""
    data, out = tmp_path / "moved.npz", tmp_path / "run"
    shutil.copy(point_file, data)
    assert main(["train", "cql", str(data), *tiny, *short, "--environment", "point", "--out", str(out)]) == 0
    data.unlink()
    last = out / "checkpoints" / "0000000020.safetensors"
    assert last.read_bytes() == (trained / "checkpoints" / last.name).read_bytes()
    last.unlink()
    assert main(["resume", str(out), "--quiet"]) == 0
    assert last.read_bytes() == (trained / "checkpoints" / last.name).read_bytes()


def test_three_phases_and_a_sweep_in_one_population(point_file, tiny, short, tmp_path, capsys):
    out = tmp_path / "run"
    argv = ["train", "sa-cql", str(point_file), *tiny, "--weights.hidden", "8", "--alpha", "1,2", "--seeds", "3,7"]
    assert main([*argv, *short, "--pretrain", "10", "--ratio-steps", "10", "--out", str(out)]) == 0
    metrics = rows(out / "metrics.csv")
    members = {f"sa-cql[alpha={alpha}]/point-behaviour/{seed}" for alpha in (1, 2) for seed in (3, 7)}
    assert {str(MemberId.of(row)) for row in metrics} == members
    assert [row["phase"] for row in metrics[::4]] == ["pretrain", "ratio", "joint", "joint"]
    assert {row["weights/mean"] == "" for row in metrics if row["phase"] != "joint"} == {True}
    assert main(["evaluate", str(out), "--episodes", "2"]) == 0
    assert "sa-cql[alpha=1]" in capsys.readouterr().out.replace("\n", "")


def test_evaluations_and_checkpoints_come_more_often_than_rows(point_file, tiny, tmp_path):
    out = tmp_path / "run"
    argv = ["train", "cql", str(point_file), *tiny, "--steps", "30", "--eval-every", "10", "--checkpoint-every", "5"]
    assert main([*argv, "--eval-episodes", "2", "--keep", "9", "--quiet", "--out", str(out)]) == 0
    assert [row["step"] for row in rows(out / "evaluations.csv")] == ["10", "20", "30"]
    assert sorted(int(path.stem) for path in (out / "checkpoints").iterdir()) == [5, 10, 15, 20, 25, 30]
    assert [row["step"] for row in rows(out / "metrics.csv")] == ["30"]


def test_training_says_what_loading_dropped(tiny, short, tmp_path, capsys):
    table = tmp_path / "plant.csv"
    lines = ["episode,obs_0,action_0,reward"] + [f"{b},{t + b},{t / 10},{t / 2}" for b in range(3) for t in range(5)]
    table.write_text("\n".join(lines) + "\n")
    options = [option for option in short if option != "--quiet"]
    argv = ["train", "cql", str(table), *tiny, *options, "--map", "last_step=drop"]
    assert main([*argv, "--out", str(tmp_path / "run")]) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("plant: ")]
    assert any("3" in line and "dropped" in line for line in said), said
