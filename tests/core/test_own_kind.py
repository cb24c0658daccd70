"""No command writes over a file that is not of its own kind."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from sapp.cli.main import main
from sapp.experiments.store import Store


@pytest.mark.parametrize("name", ["config", "README"])
def test_export_replaces_no_other_file(trained: Path, tmp_path: Path, name: str, capfd: pytest.CaptureFixture) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    (run / "README.md").write_text("# Mine\n")
    (run / "README.json").write_text("{}")
    before = {file.name: file.read_bytes() for file in run.iterdir() if file.is_file()}
    assert main(["export", str(run), str(run / f"{name}.onnx"), "--samples", "10"]) == 2
    told = capfd.readouterr().err
    assert ("is the run's own" if name == "config" else "is not a policy's card") in told
    assert {file.name: file.read_bytes() for file in run.iterdir() if file.is_file()} == before
    if name == "config":
        assert main(["export", str(run), str(run / "config.onnx"), "--samples", "10", "--force"]) == 2
        assert (run / "config.json").read_bytes() == before["config.json"]
    for _ in range(2):  # its own files are replaced
        assert main(["export", str(run), str(tmp_path / "own.onnx"), "--samples", "10"]) == 0
    assert main(["export", str(run), str(run / "README.onnx"), "--samples", "10", "--force"]) == 0
    assert (run / "README.md").read_text().startswith("# cql/")


def test_a_report_replaces_neither_its_store_nor_another_file(
    trained: Path, tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    store, page = tmp_path / "r.sqlite", tmp_path / "index.html"
    with Store(store, create=True):
        pass
    before = store.read_bytes()
    assert main(["report", str(store), "--out", str(store), "--force"]) == 2
    assert "the report is made from it" in capfd.readouterr().err
    assert main(["report", str(trained), "--out", str(store)]) == 2
    assert "is not a report" in capfd.readouterr().err
    assert store.read_bytes() == before
    run = shutil.copytree(trained, tmp_path / "run")
    for part in ("config.json", "evaluations.csv"):
        was = (run / part).read_bytes()
        assert main(["report", str(run), "--out", str(run / part), "--force"]) == 2
        assert "the report is made from it" in capfd.readouterr().err
        assert (run / part).read_bytes() == was
    times = tmp_path / "r-timings.csv"
    times.write_text("job,variants,members,steps,seconds,device\n")
    assert main(["report", str(store), "--out", str(times), "--force"]) == 2
    assert times.read_text().startswith("job,")
    assert main(["report", str(run), "--out", str(run / "report.html")]) == 0
    page.write_text("<!DOCTYPE html><title>mine</title>")
    assert main(["report", str(trained), "--out", str(page)]) == 2
    assert page.read_text().endswith("mine</title>")
    assert main(["report", str(trained), "--out", str(page), "--force"]) == 0
    assert main(["report", str(trained), "--out", str(page)]) == 0


def test_convert_and_plot_replace_only_what_sapp_wrote(
    point_file: Path, tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    logs, picture = tmp_path / "logs.npz", tmp_path / "photo.png"
    np.savez(logs, mine=np.zeros(3))
    picture.write_bytes(b"\x89PNG mine")
    before = logs.read_bytes()
    assert main(["data", "convert", str(point_file), str(logs)]) == 2
    assert "is not a dataset that sapp wrote" in capfd.readouterr().err
    assert main(["data", "show", str(point_file), "--plot", str(picture)]) == 2
    assert "is not a figure that sapp drew" in capfd.readouterr().err
    assert (logs.read_bytes(), picture.read_bytes()) == (before, b"\x89PNG mine")
    for ending in ("npz", "npz"):
        assert main(["data", "convert", str(point_file), str(tmp_path / f"own.{ending}")]) == 0
    for ending in ("png", "svg", "pdf") * 2:
        assert main(["data", "show", str(point_file), "--plot", str(tmp_path / f"own.{ending}")]) == 0
