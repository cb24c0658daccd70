"""What a reader copies first runs: the start page, the page about weights, the API's; with smaller numbers here."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import sapp
from sapp.cli.main import main

pytestmark = pytest.mark.slow
DOCS = Path(__file__).parents[2] / "docs"


def blocks(page: str, language: str = "python") -> list[str]:
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```$", (DOCS / page).read_text(encoding="utf-8"))


@pytest.mark.parametrize(("page", "said"), [("weights.md", "matched:dualdice"), ("api/index.md", "")])
def test_an_example_runs(
    page: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = blocks(page)
    code = code.replace("2_000", "20").replace("1_000", "20").replace("episodes=400", "episodes=20")
    code = code.replace('"uniform", "dualdice", "shuffled:dualdice"', '"uniform"')  # the others compile the same again
    code = code.replace('"joint", 200', '"joint", 8').replace("log_every=50", "log_every=4")
    exec(code, {})
    assert said in capsys.readouterr().out


def test_the_start_page_in_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("mujoco")
    from sapp.collect.given_vectors import record

    monkeypatch.chdir(tmp_path)
    sapp.save_npz(record("hopper", steps=300), "hopper.npz")
    (code,) = blocks("index.md")
    code = code.replace('"hopper-medium"', '"hopper.npz"').replace("100_000", "4").replace("episodes=20", "episodes=2")
    exec(code, {})
    scores = [float(value) for value in re.findall(r"-?\d+\.\d+", capsys.readouterr().out)]
    assert len(scores) == 3
    assert all(-5 < score < 20 for score in scores)


def test_the_start_page_in_a_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    pytest.importorskip("onnxruntime")
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    table = {
        "observation": rng.normal(size=(300, 2)).tolist(), "action": rng.uniform(-1, 1, (300, 1)).tolist(),
        "reward": rng.normal(size=300), "terminal": np.arange(300) % 10 == 9,
    }  # fmt: skip
    parquet.write_table(pyarrow.table(table), "logs.parquet")
    lines = [line.partition("#")[0].split() for block in blocks("index.md", "bash") for line in block.splitlines()]
    (train,), (offline,), (export,) = (
        [line[1:] for line in lines if line[:2] == ["sapp", verb]] for verb in ("train", "evaluate", "export")
    )
    assert main([*train, "--steps", "20", "--quiet", "--hidden", "8", "--batch-size", "8"]) == 0
    estimated, refused = 0, 3
    assert main([*offline, "--fit-steps", "20", "--bags", "2", "--fit-hidden", "8"]) in (estimated, refused)
    assert main(export) == 0
    assert (tmp_path / "policy.onnx").is_file()
