"""The README: short, and its commands run as they stand, at small sizes; test_numbers.py holds its figures."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sapp.cli.main import main
from sapp.data import save_npz
from sapp.envs.point import behaviour_dataset

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """Fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.M | re.S)


def test_it_is_short_and_its_prose_has_short_lines() -> None:
    assert len(TEXT.split()) < 900
    assert [line for line in TEXT.splitlines() if len(line) > 120 and not line.lstrip().startswith("|")] == []


def test_all_pages_together_are_not_too_long() -> None:
    pages = [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in pages) <= 30_000  # studies hold the rest


def test_the_table_of_algorithms_is_what_sapp_algorithms_says(capsys: pytest.CaptureFixture) -> None:
    assert main(["algorithms", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)["algorithms"]
    start = TEXT.index("| algorithms (`sapp algorithms`)")
    rows = [line.split("|")[1:-1] for line in TEXT[start:].split("\n\n")[0].splitlines()[2:]]
    told = {name.strip(): [bool(cell.strip()) for cell in row[1:]] for row in rows for name in row[0].split(",")}
    others = {re.sub("^(s-)?(sa-)?(discrete-)?", "", name) for name in facts} - {"cql"}
    assert re.findall(r"(?<!-)\bCQL and (\w+) other algorithms", TEXT) == [{16: "sixteen"}[len(others)]]
    assert len(told) == 15
    for name, shown in told.items():
        key = {"td3+bc": "td3bc"}.get(name.lower(), name.lower())
        kinds = [facts[each] for each in (key, f"discrete-{key}") if each in facts]
        assert shown == [
            any(kind[what] for kind in kinds) for what in ("continuous", "discrete", "images", "weights")
        ], name


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small file for each that the README names, and ``sapp`` on its path."""
    folder = tmp_path_factory.mktemp("readme")
    data = behaviour_dataset(30)
    save_npz(data, folder / "small.npz")
    import pandas

    pandas.DataFrame(
        {
            "episode": np.repeat(np.arange(data.num_episodes), data.episode_lengths),
            "observation_0": data.observation[:, 0], "observation_1": data.observation[:, 1],
            "action_0": data.action[:, 0], "action_1": data.action[:, 1],
            "next_observation_0": data.next_observation[:, 0], "next_observation_1": data.next_observation[:, 1],
            "reward": data.reward, "terminal": data.terminal, "timeout": data.timeout,
        }
    ).to_parquet(folder / "logs.parquet")  # fmt: skip
    (folder / "sapp").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m sapp "$@"\n')
    (folder / "sapp").chmod(0o755)
    return folder


SMALLER = {
    "sapp demo ": "sapp demo --quiet --problems 3 --steps 3 ",
    '"hopper-medium"': '"small.npz"',
    "seeds=3, steps=200_000,": "seeds=2, steps=4, phases=sapp.sa_protocol(4, 2, 2), progress=False,",
    "sapp.CQL()": "sapp.CQL(hidden=(8,), batch_size=8)",
    "sapp.CQL(weights=sapp.DualDICE())": "sapp.CQL(hidden=(8,), batch_size=8, weights=sapp.DualDICE(hidden=(8,)))",
    "episodes=20": "episodes=2",
    "--episodes 100": "--episodes 2",
    "train sa-cql hopper-medium --seeds 3 --steps 200_000": "train sa-cql small.npz --seeds 2 --steps 4 "
    "--pretrain 2 --ratio-steps 2 --hidden 8 --batch-size 8 --weights.hidden 8",
    "train cql logs.parquet": "train cql logs.parquet --steps 4 --hidden 8 --batch-size 8",
    "--offline": "--offline --fit-steps 20 --fit-hidden 8",
}
"""What the README says, and how the test says it, so that it ends in seconds."""


def smaller(code: str) -> str:
    for told, tried in SMALLER.items():
        code = code.replace(told, tried)
    return code


def test_what_the_test_replaces_is_in_the_readme() -> None:
    assert [told for told in SMALLER if told not in TEXT] == []


@pytest.mark.slow
def test_its_commands_run(folder: Path) -> None:
    pytest.importorskip("onnxruntime")
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PATH": f"{folder}:{os.environ['PATH']}"}
    lines = [line for block in blocks("bash") for line in block.splitlines() if line.startswith("sapp ")]
    assert len(lines) == 8
    (python,) = blocks("python")
    (folder / "sixty.py").write_text(smaller(python))
    tried = [smaller(line).partition(" #")[0] for line in lines]
    program = "\n".join(f"echo '$ {number}'; {line} || [ $? = 3 ]" for number, line in enumerate(tried))
    for command in ([sys.executable, "sixty.py"], ["bash", "-euc", program]):
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    assert (folder / "report.html").read_text(encoding="utf-8").startswith("<!")
    assert (folder / "policy.onnx").stat().st_size > 0
    assert (folder / "policy.md").exists()
