"""Hooks: what they write, and that a run is the same with them, without them and when they fail."""

from __future__ import annotations

import csv
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sapp
from sapp.cli.main import main
from sapp.core.errors import SappError
from sapp.envs.point import behaviour_dataset
from sapp.hooks import CSVLog, EarlyStop, HubPush, KeepBest, MLflow, TensorBoard, WandB
from sapp.hooks.keep_best import best_folder
from sapp.runs.hooks import Hook, Moment
from sapp.runs.run import Run as Folder
from sapp.training import loop

Train = Callable[..., sapp.Run]


@pytest.fixture
def train(tmp_path: Path) -> Train:
    """A tiny TD3+BC on the point task, evaluated after every ten steps."""

    def train(name: str, *hooks: Hook, **changes: Any) -> sapp.Run:
        options = {"steps": 80, "log_every": 10, "eval_every": 10, "eval_episodes": 2} | changes
        algorithm = {"bc": sapp.TD3BC(hidden=(8,), batch_size=8, actor_lr=3e-2)}
        return sapp.train(algorithm, behaviour_dataset(6), out=tmp_path / name, hooks=hooks, progress=False, **options)

    return train


class Frightened(Hook):
    """Fails whenever it can."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def fail(self, what: str) -> None:
        self.calls.append(what)
        raise SystemExit("no heart") if what == "on_evaluate" else OSError("disk\nfull")

    def on_start(self, run: Folder) -> None:
        self.fail("on_start")

    def on_log(self, at: Moment) -> None:
        at.rows[0].clear()
        self.fail("on_log")

    def on_evaluate(self, at: Moment) -> None:
        self.fail("on_evaluate")

    def on_checkpoint(self, at: Moment) -> None:
        self.fail("on_checkpoint")

    def on_end(self, run: Folder) -> None:
        self.fail("on_end")

    def close(self) -> None:
        self.fail("close")


def same_run(found: Folder, expected: Folder) -> bool:
    """Whether two runs have the same bits, the clock's column aside."""
    tables = [
        [{k: v for k, v in row.items() if k != "seconds"} for row in [*run.metrics(), *run.evaluations()]]
        for run in (found, expected)
    ]
    bits = [[file.read_bytes() for file in run.checkpoints.values()] for run in (found, expected)]
    return tables[0] == tables[1] and bits[0] == bits[1] and list(found.checkpoints) == list(expected.checkpoints)


def test_a_failing_hook_is_said_once_and_loses_nothing(train: Train, capfd: pytest.CaptureFixture[str]) -> None:
    broken = Frightened()
    found, plain = train("broken", broken, KeepBest(), CSVLog()), train("plain")
    assert same_run(found, plain)
    complaint = "sapp: warning: hook Frightened failed in on_start: disk full; training goes on\n"
    assert capfd.readouterr().err == complaint
    assert broken.calls == ["on_start", *["on_log", "on_evaluate", "on_checkpoint"] * 8, "on_end", "close"]
    assert (found.path / "best" / "config.json").is_file()


def test_it_stops_early_keeps_the_best_and_goes_on_to_the_same_bits(train: Train, tmp_path: Path) -> None:
    plain = train("plain")
    returns = [float(row["return_mean"]) for row in plain.evaluations()]
    highest = [max(returns[: number + 1]) for number in range(len(returns))]
    waits = 2
    last = next(n for n in range(waits, len(returns)) if highest[n] == highest[n - waits])
    assert 0 < last < len(returns) - 1, f"nothing to stop for in {returns}"
    stopped = train("stopped", EarlyStop(waits), KeepBest())
    assert stopped.step == 10 * (last + 1)
    assert len(stopped.evaluations()) == last + 1
    kept = sapp.Run(stopped.path / "best")
    best = int(np.argmax(returns[: last + 1]))
    assert kept.step == 10 * (best + 1) < stopped.step
    assert kept.evaluate(episodes=2)[0].returns.mean() == pytest.approx(returns[best], rel=1e-5)
    assert same_run(sapp.resume(stopped.path, progress=False), plain)


def test_beside_training_in_a_thread_calls_never_overlap_and_keep_their_order(
    train: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on an accelerator, where evaluations and checkpoints happen in the background."""

    class Watch(Hook):
        def __init__(self) -> None:
            self.calls: list[tuple[str, int]] = []
            self.busy, self.threads = False, set[int]()

        def note(self, what: str, at: Moment) -> None:
            assert not self.busy
            self.busy = True
            time.sleep(0.01)
            self.calls.append((what, at.step))
            self.threads.add(threading.get_ident())
            self.busy = False

        def on_log(self, at: Moment) -> None:
            self.note("log", at)

        def on_evaluate(self, at: Moment) -> None:
            self.note("evaluate", at)

        def on_checkpoint(self, at: Moment) -> None:
            self.note("checkpoint", at)

    monkeypatch.setattr(loop, "host_is_free", lambda: True)
    watch = Watch()
    run = train("threaded", watch, KeepBest())
    steps = list(range(10, 81, 10))
    assert [step for what, step in watch.calls if what == "log"] == steps
    assert [call for call in watch.calls if call[0] != "log"] == [
        (what, step) for step in steps for what in ("evaluate", "checkpoint")
    ]
    assert len(watch.threads) == 2
    best = max(run.evaluations(), key=lambda row: float(row["return_mean"]))
    assert sapp.Run(run.path / "best").step == int(best["step"])


def test_each_member_has_its_own_best(train: Train) -> None:
    run = train("run", KeepBest(), seeds=2, steps=30, keep=5)
    for index, member in enumerate(run.members):
        rows = [row for row in run.evaluations() if row["seed"] == str(member.seed)]
        top = max(rows, key=lambda row: float(row["return_mean"]))
        kept = sapp.Run(run.path / "best" / f"bc-{member.dataset}-{member.seed}")
        assert best_folder(run, index) == kept.path
        assert [str(each) for each in kept.members] == [str(member)]
        assert kept.step == int(top["step"])
        assert kept.evaluations() == [row for row in rows if int(row["step"]) <= kept.step]
        seen = behaviour_dataset(2).observation[:5]
        actor = run.actors_at(kept.step)[1][index]
        units = run.plan.problems[0].to_units(np.asarray(actor(seen).mode()))
        assert kept.predict(seen) == pytest.approx(units, rel=1e-5)


def test_a_csv_file_holds_every_number_once_after_a_resume(train: Train, tmp_path: Path) -> None:
    class Stop(Hook):
        def on_log(self, at: Moment) -> str | None:
            return "enough" if at.step == 20 else None

    run = train("run", CSVLog(), Stop(), seeds=2, steps=30)
    assert run.step == 20
    (run.path / "checkpoints" / "0000000020.safetensors").unlink()
    sapp.resume(run.path, progress=False, hooks=[CSVLog()])
    with (run.path / "log.csv").open() as file:
        rows = list(csv.DictReader(file))
    keys = [(row["step"], row["seed"], row["name"]) for row in rows]
    assert len(set(keys)) == len(keys)
    logged = {key: row["value"] for key, row in zip(keys, rows, strict=True)}
    for row in run.metrics():
        assert logged[row["step"], row["seed"], "critic/td"] == row["critic/td"]
    for row in run.evaluations():
        assert logged[row["step"], row["seed"], "return_mean"] == row["return_mean"]


def test_tensorboard_holds_what_the_tables_hold(train: Train) -> None:
    pytest.importorskip("tensorboardX")
    run = train("run", TensorBoard(), steps=20)
    (file,) = (run.path / "tensorboard").iterdir()
    content = file.read_bytes()
    assert content.count(b"critic/td\x15") == 2
    assert content.count(b"return_mean\x15") == 2
    assert np.float32(run.metrics()[-1]["critic/td"]).tobytes() in content


def test_an_offline_wandb_folder_holds_the_run(train: Train) -> None:
    wandb = pytest.importorskip("wandb")
    run = train("run", WandB("point", mode="offline"), steps=20)
    (file,) = (run.path / "wandb").glob("offline-run-*/run-*.wandb")
    known = (run.path / "wandb" / "sapp-run-id").read_text().strip()
    assert file.stem == f"run-{known}"
    end = time.monotonic() + 30
    while b"return_mean" not in file.read_bytes() and time.monotonic() < end:
        time.sleep(0.1)  # another process writes it
    content = file.read_bytes()
    assert b"critic/td" in content
    assert run.evaluations()[-1]["return_mean"][:5].encode() in content
    assert wandb.run is None


def test_a_local_mlflow_holds_the_run_and_a_resumed_run_goes_on_in_it(
    train: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")

    class Stop(Hook):
        def on_checkpoint(self, at: Moment) -> str | None:
            return "half of it" if at.step == 30 else None

    run = train("run", MLflow("point"), Stop())
    run = sapp.resume(run.path, progress=False, hooks=[MLflow("point")])
    client = mlflow.MlflowClient(tracking_uri=(run.path / "mlflow").as_uri())
    (found,) = client.search_runs([client.get_experiment_by_name("point").experiment_id])
    assert (found.info.run_name, found.info.status) == ("run", "FINISHED")
    assert found.data.params["alpha"] == "2.5"
    history = client.get_metric_history(found.info.run_id, "return_mean")
    assert [(each.step, f"{each.value:.9g}") for each in history] == [
        (int(row["step"]), row["return_mean"]) for row in run.evaluations()
    ]


def test_a_policy_is_prepared_with_its_card_and_a_failed_upload_says_where_it_is(
    train: Train, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("huggingface_hub")
    run = train("run", KeepBest(), HubPush("somebody/point", best=True, endpoint="http://127.0.0.1:9"), steps=20)
    folder = run.path / "hub"
    complaint = capfd.readouterr().err
    assert complaint.startswith("sapp: warning: hook HubPush failed in on_end: somebody/point was not uploaded (")
    assert f"hf upload somebody/point {folder}" in " ".join(complaint.split())
    assert complaint.count("\n") == 1
    assert sorted(each.name for each in folder.iterdir()) == ["README.md", "policy.json", "policy.onnx", "run"]
    card = (folder / "README.md").read_text()
    assert card.startswith("---\nlibrary_name: sapp\n")
    assert "## How to run it" in card
    seen = behaviour_dataset(2).observation[:5]
    opened = sapp.Run(folder / "run")
    assert opened.plan.problems[0].source is None
    assert opened.predict(seen) == pytest.approx(sapp.Run(run.path / "best").predict(seen))


def test_what_cannot_work_is_refused_before_training(train: Train, tmp_path: Path) -> None:
    with pytest.raises(SappError, match=r"EarlyStop needs evaluations, and this run has none \(eval_every is 0\)"):
        train("never", EarlyStop(), eval_every=0)
    with pytest.raises(SappError, match=r"got the class KeepBest, not an object of it"):
        train("never", KeepBest)
    with pytest.raises(SappError, match="the run has 2 policies; name one as its member"):
        train("never", HubPush("a/b", upload=False), seeds=2)
    with pytest.raises(SappError, match="patience is 0"):
        EarlyStop(0)
    with pytest.raises(SappError, match="'point' is no repository"):
        HubPush("point")
    assert not (tmp_path / "never").exists()


def test_the_command_asks_for_hooks(tmp_path: Path, trained: Path, point_file: Path, tiny: list[str],
                                    short: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    words = ["--keep-best", "--stop-early", "1", "--log-to", "csv", "--out", str(out)]
    assert main(["train", "cql", str(point_file), *tiny, *short, *words]) == 0
    assert sapp.Run(out / "best").step in (10, 20)
    assert (out / "log.csv").is_file()
    assert sapp.Run(out).metrics()[-1]["critic/td"] == sapp.Run(trained).metrics()[-1]["critic/td"]
    shutil.rmtree(out)
    assert main(["train", "cql", str(point_file), *tiny, *short, "--log-to", "wandbb", "--out", str(out)]) == 2
    assert "--log-to: 'wandbb' is unknown (did you mean 'wandb'?)" in capfd.readouterr().err
    assert not out.exists()


def test_the_best_is_not_kept_through_a_link(train: Train, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A folder that a stranger sent: nothing is written, and nothing deleted, where it leads."""
    run, outside = train("run", steps=20), tmp_path / "outside"
    (outside / "checkpoints").mkdir(parents=True)
    (outside / "checkpoints" / "0000000007.safetensors").write_text("mine")
    max(run.checkpoints.values()).unlink()
    (run.path / "best").mkdir()
    (run.path / "best" / "checkpoints").symlink_to(outside / "checkpoints")
    sapp.resume(run.path, progress=False, hooks=[KeepBest()])
    assert "best/checkpoints: is a link" in capfd.readouterr().err
    assert [file.read_text() for file in (outside / "checkpoints").iterdir()] == ["mine"]
