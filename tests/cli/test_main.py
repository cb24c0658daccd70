from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from sapp.cli.main import main
from sapp.cli.options import split_options
from sapp.cli.train import sweep
from sapp.core.errors import SappError
from sapp.runs.members import MemberId

COMMANDS = (
    ["demo"],
    ["train"],
    ["resume"],
    ["evaluate"],
    ["algorithms"],
    ["data", "show"],
    ["data", "replay"],
    ["data", "convert"],
)


def rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.open()))


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_help_and_version_import_little(argument):
    """Three times as many modules as Python has by itself; JAX alone brings ten times as many."""
    code = f"""if True:
        import sys
        had = len(sys.modules)
        from sapp.cli.main import main
        assert main(["{argument}"]) == 0
        print(had, len(sys.modules))
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    had, has = map(int, done.stdout.splitlines()[-1].split())
    assert has < had + 250


def test_help_imports_nothing_heavy():
    shown = "print(sorted({'jax', 'numpy', 'rich'} & set(sys.modules)))"
    code = f"import sys, sapp.cli.main; sapp.cli.main.main(['train', '--help']); {shown}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_help_page_has_an_example(command, capsys):
    assert main([*command, "--help"]) == 0
    page = capsys.readouterr().out
    assert "Example" in page
    assert f"sapp {' '.join(command)} " in page


def test_train_help_names_the_algorithms(capsys):
    from sapp.algorithms.registry import ABOUT, ALGORITHMS, PAPER
    from sapp.weights import registry

    assert list(ABOUT) == list(ALGORITHMS)
    assert [name.partition(":")[0] for name in registry.ABOUT] == list(registry.WEIGHTS)
    assert main(["train", "sa-cql", "--help"]) == 0
    page = capsys.readouterr().out
    assert all(f"  {name} " in page for name in (*ALGORITHMS, *PAPER, *registry.ABOUT))
    assert all(f"  {name}:WEIGHTS " in page for name in registry.CONTROLS)
    assert "sapp algorithms NAME" in page


def test_version(capsys):
    import sapp

    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"sapp {sapp.__version__}\n"


def test_nothing_asked_shows_help(capsys):
    assert main([]) == 0
    assert "Commands:" in capsys.readouterr().out


def test_help_lists_commands_as_one_meets_them(capsys):
    assert main(["--help"]) == 0
    lines = capsys.readouterr().out.partition("Commands:\n")[2].partition("\n\n")[0].splitlines()
    first = ("demo", "train", "resume", "evaluate", "select", "export", "report", "experiment", "data", "collect")
    assert [line.split()[0] for line in lines] == [*first, "algorithms", "theory"]


def test_the_page_of_the_command_names_every_command_and_option():
    import typer

    from sapp.cli.main import app

    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    parts = {part.split()[1]: part for part in page.split("\n## ")[1:] if part.startswith("sapp ")}
    missing = []
    for name, command in typer.main.get_command(app).commands.items():
        for key, each in getattr(command, "commands", {"": command}).items():
            options = [text for one in each.params for text in one.opts if text.startswith("--")]
            options.remove("--config")  # all have it, and the page says so once
            wanted = [*(f"`{text}`" for text in options), f"sapp {name} {key}".strip()]
            missing += [(name, key, text) for text in wanted if text not in parts.get(name, "")]
    assert missing == []
    assert "`--config FILE.toml`" in page


def test_algorithms_fit_one_screen_and_say_what_each_takes(capsys):
    assert main(["algorithms"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) < 24  # and a line to type on
    assert max(len(line.rstrip()) for line in lines) <= 80
    blank = lines.index("")
    middle = lines[0].index("algorithm", 1)
    takes = {}
    for part in (slice(0, middle), slice(middle, None)):
        where = {name: lines[0][part].index(name) for name in ("cont.", "discr.", "images", "weights")}
        for half in [line[part] for line in lines[1:blank] if line[part].strip()]:
            takes[half.split()[0]] = {name for name, start in where.items() if half[start : start + 3] == "yes"}
    assert takes["cql"] == {"cont.", "weights"}
    assert takes["discrete-cql"] == {"discr.", "images", "weights"}
    assert takes["bcq"] == {"cont."}
    names = {line.split()[0] for line in lines[blank + 1 :]}
    assert {"dualdice", "occupancy", "constant:NUMBER", "shuffled:WEIGHTS"} <= names
    assert main(["algorithms", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(takes) == {name for name, fact in found["algorithms"].items() if "--weights" not in fact["about"]}
    assert found["algorithms"]["rem"] == {
        "about": "random ensemble mixture, 200 heads", "continuous": False, "discrete": True, "images": True,
        "weights": False,
    }  # fmt: skip


def test_algorithms_lists_hyper_parameters(capsys):
    assert main(["algorithms", "cql", "--weights", "shuffled:occupancy"]) == 0
    assert "weights.of.successor" in capsys.readouterr().out
    assert main(["algorithms", "sa-cql", "--data", "walker2d-expert-v2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["alpha"] == 5.0
    assert (found["weights.f.b0"], found["weights.f.b1"]) == (0.5, 5.0)


def test_split_options():
    words = ["sa-cql", "--alpha", "-5", "a.npz", "--weights.hidden=64,64", "b.npz", "--b0", "0.5"]
    positional, changes = split_options(words)
    assert positional == ["sa-cql", "a.npz", "b.npz"]
    assert changes == {"alpha": "-5", "weights.hidden": "64,64", "b0": "0.5"}


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
        (["--out", __file__ + "/run"], "test_main.py is not a folder"),
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


def test_evaluate_prints_a_table_or_json(trained, capsys):
    assert main(["evaluate", str(trained), "--episodes", "3"]) == 0
    page = capsys.readouterr().out
    assert "95 % interval" in page
    assert main(["evaluate", str(trained), "--episodes", "3", "--json", "--member", "cql/point-behaviour/0"]) == 0
    found = json.loads(capsys.readouterr().out)
    (member,) = found["members"]
    assert found["step"] == 20
    assert member["return"] == pytest.approx(np.mean(member["returns"]))
    assert member["return_low"] <= member["return"] <= member["return_high"]
    assert len(member["returns"]) == len(member["lengths"]) == 3
    assert member["score"] == pytest.approx(100 * (member["return"] - 1.8) / (38.2 - 1.8))


def test_resume_of_a_finished_run_changes_no_result(trained, tmp_path, capsys):
    folder = tmp_path / "run"
    shutil.copytree(trained, folder)
    before = {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert main(["resume", str(folder)]) == 0
    printed = capsys.readouterr()
    assert f"Run: {folder}" in printed.out
    assert printed.err == f"{folder}: finished, all 20 steps were trained; nothing is left to do\n"
    assert {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_resume_after_a_cut_gives_the_same_bits(trained, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(trained, folder)
    last = folder / "checkpoints" / "0000000020.safetensors"
    whole = last.read_bytes()
    last.unlink()
    assert main(["resume", str(folder), "--quiet"]) == 0
    assert last.read_bytes() == whole
    assert (folder / "evaluations.csv").read_bytes() == (trained / "evaluations.csv").read_bytes()


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


def test_tables_keep_names_whole_where_there_is_no_terminal(point_file, tiny, short, tmp_path, capsys):
    """Such a name can be pasted into --member."""
    out, name = tmp_path / "run", "a-name-that-is-a-good-deal-longer-than-a-column-of-a-table-of-eighty-columns"
    data = tmp_path / f"{name}.npz"
    assert main(["data", "convert", str(point_file), str(data), "--name", name]) == 0
    argv = ["train", "cql", str(data), *tiny, "--alpha", "1,2", *short, "--eval-every", "0", "--out", str(out)]
    assert main(argv) == 0
    capsys.readouterr()
    members = [f"cql[alpha={alpha}]/{name}/0" for alpha in (1, 2)]
    assert main(["evaluate", str(out), "--episodes", "2"]) == 0
    page = capsys.readouterr().out
    assert all(member in page for member in members)
    assert main(["evaluate", str(out), "--episodes", "2", "--member", members[1]]) == 0
    assert members[0] not in capsys.readouterr().out
    # all of them, for --member
    assert main(["export", str(out), str(tmp_path / "policy.onnx")]) == 2
    line = capsys.readouterr().err
    assert line == f"sapp: error: {out}: has 2 policies; choose one with --member: {', '.join(members)}\n"


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


def test_ctrl_c_leaves_a_run_that_resumes(trained, point_file, tiny, tmp_path):
    """A real interrupt of a real process; the folder then continues here."""
    out = tmp_path / "run"
    argv = ["train", "cql", str(point_file), *tiny, "--steps", "100000000", "--log-every", "10", "--eval-every", "0"]
    command = [sys.executable, "-m", "sapp", *argv, "--quiet", "--out", str(out)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    try:
        deadline = time.monotonic() + 120
        while not (out / "metrics.csv").exists() or len(rows(out / "metrics.csv")) < 2:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    (line,) = errors.splitlines()
    assert line.startswith("sapp: interrupted at step")
    assert line.endswith(f"sapp resume {out}")
    assert main(["evaluate", str(out), "--episodes", "2"]) == 0


def test_a_setting_of_jax_that_there_is_not_is_one_line(point_file: Path) -> None:
    changed = {**os.environ, "JAX_DEFAULT_PRNG_IMPL": "evil"}
    command = [sys.executable, "-m", "sapp", "train", "bc", str(point_file), "--steps", "2"]
    done = subprocess.run(command, env=changed, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert done.stderr == "sapp: error: JAX_DEFAULT_PRNG_IMPL=evil: JAX has no such setting; unset it, or correct it\n"
