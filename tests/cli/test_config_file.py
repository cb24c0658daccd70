"""``--config`` and ``--save-config``: a saved call gives the same run, what is typed wins, the unknown is refused."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from sapp.cli.config_file import Configuration
from sapp.cli.main import app, main
from sapp.runs.run import Run


def plan(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "config.json").read_text())


def test_a_saved_call_gives_the_same_run(tmp_path: Path, point_file: Path, tiny: list[str], short: list[str]) -> None:
    file = tmp_path / "call.toml"
    words = [*tiny, *short, "--seeds", "7,", "--alpha", "2.5", "--weights", "uniform", "--keep", "3"]
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    assert main(["train", "cql", str(point_file), *words, "--save-config", str(file), "--out", str(first)]) == 0
    held = tomllib.loads(file.read_text())
    assert (held["algorithm"], held["data"], held["seeds"], held["alpha"]) == ("cql", [str(point_file)], "7,", "2.5")
    assert held["steps"] == 20
    assert not {"out", "quiet", "config", "save_config"} & set(held)
    assert main(["train", "--config", str(file), "--out", str(second), "--quiet"]) == 0
    assert plan(second) == plan(first)
    assert [(each["seed"], each["algorithm"]["alpha"]) for each in plan(first)["members"]] == [(7, 2.5)]
    typed = ["train", "--alpha", "9", "--config", str(file), "--steps", "10", "--seeds", "1", "--weights", "uniform"]
    again = tmp_path / "again.toml"
    assert main([*typed, "--out", str(third), "--quiet", "--save-config", str(again)]) == 0
    (member,) = plan(third)["members"]
    assert (member["seed"], member["algorithm"]["alpha"]) == (0, 9.0)
    assert (plan(third)["phases"][-1]["steps"], plan(third)["keep"]) == (10, 3)
    assert tomllib.loads(again.read_text()) == held | {
        "alpha": "9", "steps": 10, "seeds": "1", "weights": "uniform"
    }  # fmt: skip


def test_a_file_by_hand_has_tables_lists_and_dashes(
    tmp_path: Path, point_file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "hand.toml"
    file.write_text(
        'algorithm = "td3bc"\ndata = "nowhere.npz"\nsteps = 4\neval-every = 0\nhidden = [8]\nbatch-size = 8\n'
        "action_samples = 1\nalpha = [4]\nseeds = [9]\nquiet = true\n"
    )
    out = tmp_path / "run"
    assert main(["train", "cql", "--config", str(file), "--out", str(out)]) == 2
    assert "nowhere.npz" in capfd.readouterr().err
    assert main(["train", "cql", str(point_file), "--config", str(file), "--out", str(out)]) == 0
    (member,) = plan(out)["members"]
    assert member["seed"] == 9
    assert [member["algorithm"][name] for name in ("hidden", "alpha", "batch_size")] == [[8], 4, 8]
    assert (plan(out)["phases"][-1]["steps"], plan(out)["eval_every"]) == (4, 0)


def test_what_is_typed_goes_before_the_file() -> None:
    held = Configuration({"algorithm": ["cql"], "data": ["a", "b"]}, {"weights.hidden": "4,4", "critic_lr": "1"})
    assert held.merged([]) == ["cql", "a", "b", "--weights.hidden=4,4", "--critic_lr=1"]
    assert held.merged(["td3bc", "--critic-lr", "2"]) == ["td3bc", "a", "b", "--weights.hidden=4,4", "--critic-lr=2"]
    assert held.merged(["td3bc", "c"])[:2] == ["td3bc", "c"]


@pytest.mark.parametrize(
    ("command", "content", "complaint"),
    [
        (["train"], 'algorithm = "cql"\ndata = "x"\nstesp = 3', "option --stesp is unknown; did you mean --steps?"),
        (["evaluate"], 'run = "x"\nepisods = 3', "'episods' is unknown (did you mean 'episodes'?)"),
        (["data", "show"], "quite_unlike = 3", "'quite_unlike' is unknown; sapp data show takes data, "),
        (["evaluate"], 'run = "x"\nepisodes = "many"', "Invalid value for '--episodes'"),
        (["resume"], 'run = "x"\nmap = "a"\ncolumns = "b"', "'columns' is given twice; keep one"),
        (["select"], "run = [", "not TOML"),
        (["evaluate"], 'run = "x"\nbags = 3', "--bags is for estimates from logs"),
        (["algorithms"], "config = 1", "'config' is unknown"),
    ],
)
def test_bad_files_are_refused_in_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], command: list[str], content: str, complaint: str
) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(content)
    assert main([*command, "--config", str(file)]) == 2
    error = capfd.readouterr().err
    assert complaint in error
    assert error.count("\n") == 1
    assert main([*command, "--config", str(tmp_path / "none.toml")]) == 2
    assert "none.toml: cannot be read" in capfd.readouterr().err


@pytest.mark.parametrize("name", ["p\U0001f600.npz", "d\x7fel.npz", "q\"\\n.npz"])
def test_any_name_can_be_saved_and_read(
    tmp_path: Path, point_file: Path, tiny: list[str], name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    data, file = tmp_path / name, tmp_path / "a\nsteps = 9\n#.toml"
    shutil.copy(point_file, data)
    call = ["train", "bc", str(data), *tiny[:4], "--steps", "2", "--eval-every", "0", "--quiet"]
    assert main([*call, "--save-config", str(file), "--out", str(tmp_path / "a")]) == 0
    assert tomllib.loads(file.read_text(encoding="utf-8"))["data"] == [str(data)]
    assert main(["train", "--config", str(file), "--out", str(tmp_path / "b"), "--quiet"]) == 0
    assert Run(tmp_path / "b").step == 2
    capfd.readouterr()
    assert main(["train", "bc", "l\udcff.npz", "--save-config", str(tmp_path / "c.toml")]) == 2
    assert "no text of UTF-8" in capfd.readouterr().err


def test_tables_within_tables_without_end_are_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "deep.toml").write_text(".".join("a" * 3000) + " = 1\n")
    assert main(["train", "--config", str(tmp_path / "deep.toml")]) == 2
    assert "not TOML" in capfd.readouterr().err


def test_a_file_that_sapp_did_not_save_stays(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "notes.toml"
    file.write_text("mine = 1\n")
    assert main(["train", "cql", "x.npz", "--save-config", str(file)]) == 2
    line = capfd.readouterr().err
    assert "is not a configuration that sapp saved" in line
    assert "--force" not in line  # which train has not
    assert file.read_text() == "mine = 1\n"


def test_other_commands_take_their_arguments_from_a_file(
    trained: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "evaluate.toml"
    file.write_text(f'run = "{trained}"\nepisodes = 3\nseed = 5\njson = true\n')
    assert main(["evaluate", "--config", str(file)]) == 0
    first = json.loads(capfd.readouterr().out)
    assert main(["evaluate", str(trained), "--episodes", "3", "--seed", "5", "--json"]) == 0
    assert json.loads(capfd.readouterr().out) == first
    assert main(["evaluate", "--config", str(file), "--seed", "6"]) == 0
    assert json.loads(capfd.readouterr().out) != first


def leaves(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    for key, each in getattr(command, "commands", {}).items():
        yield from leaves(each, f"{name} {key}")
    if not hasattr(command, "commands"):
        yield name, command


def test_every_command_takes_a_file() -> None:
    found = dict(leaves(typer.main.get_command(app), "sapp"))
    assert len(found) > 15
    assert [name for name, each in found.items() if not any("--config" in option.opts for option in each.params)] == []


def test_a_shell_completes_commands_and_options() -> None:
    for typed, expected in (
        ("sapp tra", "train"), ("sapp train --save-c", "--save-config"), ("sapp train discrete-c", "discrete-cql"),
    ):
        words = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1), "_SAPP_COMPLETE": "complete_bash"}
        code = "import sys; from sapp.cli.main import main; sys.exit(main([]))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | words)
        assert expected in done.stdout.split(), done.stderr
