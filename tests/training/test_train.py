"""Run folders: interrupted, damaged, forked and resumed runs end with the bits of a straight one."""

from __future__ import annotations

import dataclasses
import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from compiling import USUAL

import sapp
from sapp import CQL, DualDICE, Phase, Run, SappError
from sapp.core.errors import Interrupted
from sapp.data import Dataset, save_npz
from sapp.data.ledger import Kind, Ledger
from sapp.envs.point import behaviour_dataset
from sapp.runs import folders
from sapp.runs import metric_tables as tables
from sapp.runs import run as run_module
from sapp.runs.checkpoint import flatten
from sapp.runs.events import Event, EventKind, RatioHealth
from sapp.runs.members import MemberId
from sapp.training import loop as loop_module
from sapp.training.train import _deadline
from sapp.weights import ControlKind, control

PRETRAIN = Phase("pretrain", 10, ratio=False, weighted=False)
RATIO = Phase("ratio", 10, base=False, weighted=False)
JOINT = Phase("joint", 20)
PHASES = (PRETRAIN, RATIO, JOINT)
SETTINGS = {"log_every": 5, "checkpoint_every": 10, "eval_every": 10, "eval_episodes": 1, "progress": False}


def logs() -> Dataset:
    return dataclasses.replace(behaviour_dataset(6), name="point")


def sa_cql(**changes: Any) -> CQL:
    return CQL(hidden=(8,), batch_size=8, action_samples=1, weights=DualDICE(hidden=(8,), **changes))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_npz(logs(), tmp_path_factory.mktemp("data") / "point.npz")


@pytest.fixture(scope="module")
def train(file: Path) -> Callable[..., Run]:
    """Two seeds of a tiny SA-CQL through the paper's three phases, evaluated in the point task."""

    def train(out: Path, algorithm: CQL | None = None, data: Any = None, **changes: Any) -> Run:
        options = {"seeds": 2, "phases": PHASES, "keep": 100} | SETTINGS | changes
        return sapp.train({"sa": algorithm or sa_cql()}, file if data is None else data, out=out, **options)

    return train


@pytest.fixture(scope="module")
def straight(train: Callable[..., Run], tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(tmp_path_factory.mktemp("runs") / "straight")


def learned(run: Run, step: int | None = None) -> dict[str, bytes]:
    """Every array of a checkpoint."""
    return {name: array.tobytes() for name, array in flatten(run.restore(step)[1]).items()}


def rows(run: Run, name: str = "metrics.csv") -> list[dict[str, str]]:
    """A table without the clock's column."""
    return [{k: v for k, v in row.items() if k != "seconds"} for row in tables.read(run.path / name)]


def assert_same_run(found: Run, expected: Run) -> None:
    assert (found.step, expected.step) == (40, 40)
    assert learned(found) == learned(expected)
    for name in ("metrics.csv", "evaluations.csv", "events.csv"):
        assert rows(found, name) == rows(expected, name)


def interrupt_at(monkeypatch: pytest.MonkeyPatch, step: int, number: int = signal.SIGINT) -> None:
    """Ctrl-C (or another signal) while the chunk runs that contains a step."""
    done, plain = 0, loop_module.calls

    def run(populations: Any, learners: Any, sums: Any, phase: Phase, steps: int) -> Any:
        nonlocal done
        if done < step <= done + steps:
            signal.raise_signal(number)
        done += steps
        return plain(populations, learners, sums, phase, steps)

    monkeypatch.setattr(loop_module, "calls", run)


def test_a_straight_run_has_all_rows_checkpoints_and_evaluations(straight: Run) -> None:
    assert [int(row["step"]) for row in straight.metrics()[::2]] == [5, 10, 15, 20, 25, 30, 35, 40]
    assert [row["phase"] for row in straight.metrics()[::2]] == ["pretrain"] * 2 + ["ratio"] * 2 + ["joint"] * 4
    assert [int(row["updates"]) for row in straight.metrics()[::2]] == [5, 10, 10, 10, 15, 20, 25, 30]
    assert list(straight.checkpoints) == [10, 20, 30, 40]
    # none in the ratio phase, where policies stand still
    assert [(row["step"], MemberId.of(row)) for row in straight.evaluations()] == [
        (step, MemberId("sa", "point", seed)) for step in ("10", "30", "40") for seed in (0, 1)
    ]
    assert len(set(learned(straight, 10).values()) - set(learned(straight).values())) > 10


def test_the_same_run_again_has_the_same_bits(train: Callable[..., Run], straight: Run, tmp_path: Path) -> None:
    assert_same_run(train(tmp_path / "again"), straight)


@pytest.mark.parametrize("when", [1, 4, 10, 17, 33])
def test_ctrl_c_saves_says_so_and_resumes_with_the_same_bits(
    train: Callable[..., Run], straight: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: int
) -> None:
    before = signal.getsignal(signal.SIGINT)  # a process in the background of a shell ignores it
    with monkeypatch.context() as patch:
        interrupt_at(patch, when)
        with pytest.raises(Interrupted, match=rf"interrupted at step \d+ of 40; saved.*sapp resume {tmp_path / 'run'}"):
            train(tmp_path / "run")
    assert when <= Run(tmp_path / "run").step < 40
    assert signal.getsignal(signal.SIGINT) is before
    # also where it stopped inside a log interval: the checkpoint keeps what the row to come needs
    assert_same_run(sapp.resume(tmp_path / "run", progress=False), straight)


def test_sigterm_saves_like_ctrl_c(
    train: Callable[..., Run], straight: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with monkeypatch.context() as patch:
        interrupt_at(patch, 17, signal.SIGTERM)
        with pytest.raises(Interrupted, match=r"interrupted at step \d+ of 40; saved"):
            train(tmp_path / "run")
    assert signal.getsignal(signal.SIGTERM) is before
    assert_same_run(sapp.resume(tmp_path / "run", progress=False), straight)


@pytest.fixture(scope="module")
def uneven(train: Callable[..., Run], tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Rows, evaluations and checkpoints at intervals that do not divide each other."""
    intervals = {"log_every": 8, "eval_every": 6, "checkpoint_every": 3}
    return train(tmp_path_factory.mktemp("runs") / "uneven", **intervals)


def test_evaluations_and_checkpoints_come_at_their_own_intervals(uneven: Run, straight: Run) -> None:
    """Counted from each phase's start (0, 10, 20); a phase's end has a row and a checkpoint, the last an evaluation."""
    assert list(uneven.checkpoints) == [3, 6, 9, 10, 13, 16, 19, 20, 23, 26, 29, 32, 35, 38, 40]
    assert [int(row["step"]) for row in uneven.evaluations()[::2]] == [6, 26, 32, 38, 40]
    assert [int(row["step"]) for row in uneven.metrics()[::2]] == [8, 10, 18, 20, 28, 36, 40]
    assert learned(uneven) == learned(straight)


def test_a_row_is_the_mean_of_all_its_steps_wherever_chunks_end(
    train: Callable[..., Run], uneven: Run, tmp_path: Path
) -> None:
    plain = train(tmp_path / "plain", log_every=8, eval_every=0, checkpoint_every=1_000)
    assert rows(plain) == rows(uneven)


@pytest.mark.parametrize("newest", [3, 13, 26, 38])
def test_a_resume_inside_a_log_interval_gives_the_same_rows(uneven: Run, tmp_path: Path, newest: int) -> None:
    copy = Run(shutil.copytree(uneven.path, tmp_path / "copy"))
    for step, checkpoint in copy.checkpoints.items():
        if step > newest:
            checkpoint.unlink()
    assert_same_run(sapp.resume(copy.path, progress=False), uneven)


def test_the_clock_goes_on_after_a_resume(straight: Run, tmp_path: Path) -> None:
    copy = Run(shutil.copytree(straight.path, tmp_path / "copy"))
    copy.checkpoints[40].unlink()
    file = copy.path / "metrics.csv"
    lines = [line.split(",") for line in file.read_text().splitlines()]
    place = lines[0].index("seconds")
    for line in lines[1:]:
        line[place] = "1000"
    file.write_text("\n".join(map(",".join, lines)) + "\n")
    seconds = [float(row["seconds"]) for row in sapp.resume(copy.path, progress=False).metrics()]
    assert seconds[:12] == [1000.0] * 12  # six rows of two members up to step 30
    assert seconds[11:] == sorted(seconds[11:])
    assert all(1000.0 < value < 2000.0 for value in seconds[12:])  # counted on, and not twice


def test_checkpoints_have_the_usual_mode(train: Callable[..., Run], tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        run = train(tmp_path / "run")
    finally:
        os.umask(before)
    assert {oct(file.stat().st_mode & 0o777) for file in run.checkpoints.values()} == {"0o640"}


@pytest.mark.parametrize("there", ["nothing", "a note", "a shared start"])
def test_a_failed_start_leaves_no_run(
    train: Callable[..., Run], straight: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: str
) -> None:
    out = tmp_path / "run"
    if there == "a note":
        out.mkdir()
        (out / "note.txt").write_text("mine")

    def fail(*_: Any) -> Any:
        raise MemoryError("too large")

    with monkeypatch.context() as patch:
        patch.setattr(loop_module, "calls", fail)
        with pytest.raises(MemoryError, match="too large"):
            train(out, **({"start_from": straight, "phases": (JOINT,)} if there == "a shared start" else {}))
    assert [file.name for file in out.rglob("*")] == ["note.txt"] if there == "a note" else not out.exists()
    assert_same_run(train(out), straight)


def test_a_failure_after_the_first_checkpoint_keeps_the_run(
    train: Callable[..., Run], straight: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = loop_module.calls

    def fail(populations: Any, learners: Any, sums: Any, phase: Phase, steps: int) -> Any:
        if phase.name == "joint":
            raise MemoryError("too large")
        return plain(populations, learners, sums, phase, steps)

    with monkeypatch.context() as patch:
        patch.setattr(loop_module, "calls", fail)
        with pytest.raises(MemoryError, match="too large"):
            train(tmp_path / "run")
    assert Run(tmp_path / "run").step == 20
    assert_same_run(sapp.resume(tmp_path / "run", progress=False), straight)


def test_what_loading_did_is_said_when_training_starts(
    tmp_path: Path, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = ["2 exact copies of rows were left out", "5 rows were dropped: the last step of an episode"]
    ledger = Ledger(40)
    for line in said:
        ledger.say(Kind.DROPPED, line)
    notes = {"ledger": ledger.to_json()}
    data = dataclasses.replace(sapp.load(file), provenance=notes)
    cql = CQL(hidden=(8,), batch_size=8, action_samples=1)
    sapp.train(cql, data, steps=10, out=tmp_path / "run", **SETTINGS | {"progress": True})
    lines = [line.rstrip() for line in capsys.readouterr().err.splitlines() if line.startswith("point: ")]
    assert len(lines) == 2
    assert all(line.startswith(f"point: {start}") for line, start in zip(lines, said, strict=True))
    sapp.train(cql, data, steps=10, out=tmp_path / "quiet", **SETTINGS)
    assert "point: " not in capsys.readouterr().err


def test_presets_are_taken_by_name(file: Path, tmp_path: Path) -> None:
    options = {"steps": 2, "eval_every": 0, "progress": False}
    run = sapp.train({"mine": "bc"}, file, out=tmp_path / "named", **options)
    assert run.members == [MemberId("mine", "point", 0)]
    assert sapp.train("bc", file, out=tmp_path / "run", **options).members == [MemberId("bc", "point", 0)]
    for wrong, message in (
        ("clq", r"algorithm 'clq' is unknown \(did you mean 'cql'\?\)"),
        (CQL, "CQL is not an algorithm"),
        (["bc", "clq"], r"algorithm 'clq' is unknown"),
    ):
        with pytest.raises(SappError, match=message):
            sapp.train(wrong, file, out=tmp_path / "wrong", **options)
    assert not (tmp_path / "wrong").exists()


def test_only_frames_are_streamed_and_a_time_limit_is_a_time_to_come(
    train: Callable[..., Run], tmp_path: Path
) -> None:
    with pytest.raises(SappError, match="stream leaves frames on the host, and no dataset is of frames"):
        train(tmp_path / "run", stream=True)
    for limit in (0.0, -1.0, float("nan")):
        with pytest.raises(SappError, match=f"time_limit is {limit}: it must be more than 0 seconds"):
            train(tmp_path / "run", time_limit=limit)
    assert not (tmp_path / "run").exists()
    assert _deadline(None) is None
    before, deadline = time.monotonic(), _deadline(5.0)
    assert deadline is not None
    assert before <= deadline - 5.0 <= time.monotonic()


def test_ctrl_c_in_the_last_chunk_still_evaluates_and_finishes(
    train: Callable[..., Run], straight: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt_at(monkeypatch, 40)
    assert_same_run(train(tmp_path / "run"), straight)


def test_resuming_a_finished_run_changes_nothing(straight: Run, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(straight.path, tmp_path / "copy"))
    before = {path.name: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    assert_same_run(sapp.resume(copy, progress=False), straight)
    assert {path.name: path.read_bytes() for path in copy.rglob("*") if path.is_file()} == before


def test_resume_from_an_older_checkpoint_drops_later_rows_and_half_lines(straight: Run, tmp_path: Path) -> None:
    copy = Run(shutil.copytree(straight.path, tmp_path / "copy"))
    for step in (30, 40):
        copy.checkpoints[step].unlink()
    with open(copy.path / "metrics.csv", "a") as handle:
        handle.write("45,joint,3")
    assert_same_run(sapp.resume(copy.path, progress=False), straight)


def test_a_damaged_newest_checkpoint_is_named_and_the_one_before_serves(straight: Run, tmp_path: Path) -> None:
    copy = Run(shutil.copytree(straight.path, tmp_path / "copy"))
    newest = copy.checkpoints[40]
    newest.write_bytes(newest.read_bytes()[:-3])
    with pytest.raises(SappError, match=rf"{newest.name}: damaged.*delete it to use the one before"):
        sapp.resume(copy.path, progress=False)
    newest.unlink()
    assert_same_run(sapp.resume(copy.path, progress=False), straight)


def test_a_checkpoint_that_is_a_link_to_nothing_is_named(straight: Run, tmp_path: Path) -> None:
    copy = Run(shutil.copytree(straight.path, tmp_path / "copy"))
    (copy.path / "checkpoints" / "0000000050.safetensors").symlink_to(tmp_path / "nowhere")
    with pytest.raises(SappError, match=r"0000000050\.safetensors: no such checkpoint"):
        copy.restore()


def test_a_second_process_is_refused_while_one_trains_and_welcome_when_it_has_finished(
    straight: Run, tmp_path: Path
) -> None:
    copy = Run(shutil.copytree(straight.path, tmp_path / "copy"))
    with folders.locked(copy.path):  # as the other process holds it
        assert_same_run(sapp.resume(copy.path, progress=False), straight)
        copy.checkpoints[40].unlink()
        with pytest.raises(SappError, match="another process is training this run"):
            sapp.resume(copy.path, progress=False)
    assert_same_run(sapp.resume(copy.path, progress=False), straight)


def test_a_run_is_never_overwritten(train: Callable[..., Run], straight: Run) -> None:
    with pytest.raises(SappError, match=r"already holds a run; continue it with 'sapp resume"):
        train(straight.path)


def test_forked_runs_continue_exactly(train: Callable[..., Run], straight: Run, tmp_path: Path) -> None:
    """Shared phases trained once and forked give the bits of training straight through."""
    shared = train(tmp_path / "shared", phases=(PRETRAIN, RATIO))
    assert learned(shared) == learned(straight, 20)
    forked = train(tmp_path / "fork", phases=(JOINT,), start_from=shared)
    assert learned(forked) == learned(straight)
    assert learned(forked, 10) == learned(straight, 30)
    assert [row["updates"] for row in forked.metrics()] == [row["updates"] for row in straight.metrics()[8:]]
    same = ("critic/loss", "ratio/zeta_mean", "weights/mean")
    for name in same:
        assert [row[name] for row in forked.metrics()] == [row[name] for row in straight.metrics()[8:]]


def test_weights_that_learn_can_be_added_to_a_run_without_and_left_out_again(
    train: Callable[..., Run], straight: Run, tmp_path: Path
) -> None:
    """CQL's run goes on as SA-CQL with the bits of SA-CQL from the start; what is left out leaves CQL's own bits."""
    plain = CQL(hidden=(8,), batch_size=8, action_samples=1)
    shared = train(tmp_path / "cql", plain, phases=(PRETRAIN,))
    ratio = train(tmp_path / "ratio", phases=(RATIO,), start_from=shared)
    joint = train(tmp_path / "joint", phases=(JOINT,), start_from=ratio)
    assert learned(joint) == learned(straight)
    without = train(tmp_path / "without", plain, phases=(JOINT,), start_from=ratio)
    onward = train(tmp_path / "onward", plain, phases=(JOINT,), start_from=shared)
    assert flatten(without.restore()[1][0].base).keys() == flatten(onward.restore()[1][0].base).keys()
    for found, expected in zip(*(jax.tree.leaves(run.restore()[1][0].base) for run in (without, onward)), strict=True):
        np.testing.assert_array_equal(found, expected)
    wider = CQL(hidden=(8,), batch_size=8, action_samples=1, weights=DualDICE(hidden=(9,)))
    with pytest.raises(SappError, match="its networks differ"):
        train(tmp_path / "none", wider, phases=(JOINT,), start_from=ratio)


def test_a_fork_may_take_members_in_another_order(train: Callable[..., Run], straight: Run, tmp_path: Path) -> None:
    shared = train(tmp_path / "shared", phases=(PRETRAIN, RATIO))
    fork = train(tmp_path / "fork", phases=(JOINT,), start_from=tmp_path / "shared", seeds=[1, 0])
    assert list(map(str, fork.members)) == ["sa/point/1", "sa/point/0"]
    found, expected = (flatten(run.restore()[1][0].base) for run in (fork, straight))
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array[::-1])
    with pytest.raises(SappError, match="no member with the data and seed of sa/point/7"):
        train(tmp_path / "none", phases=(JOINT,), start_from=shared, seeds=[7])
    wide = CQL(hidden=(9,), batch_size=8, action_samples=1, weights=DualDICE(hidden=(8,)))
    with pytest.raises(SappError, match="its networks differ"):
        train(tmp_path / "none", wide, phases=(JOINT,), start_from=shared)
    assert not (tmp_path / "none").exists()


def test_a_run_killed_while_it_is_made_leaves_none(
    train: Callable[..., Run], straight: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """config.json comes last: when it appears, the copy of the data and the forked state are there."""
    seen: list[set[str]] = []
    plain = run_module.write_text

    def write_text(path: Path, text: str) -> None:
        if path.name == "config.json":
            seen.append({file.suffix for file in path.parent.rglob("[!.]*") if file.is_file()})
        plain(path, text)

    monkeypatch.setattr(run_module, "write_text", write_text)
    data = logs()
    train(tmp_path / "fork", data=data, phases=(JOINT,), start_from=straight)
    assert seen == [{".npz", ".safetensors"}]
    # what such a kill leaves behind does not leak into a new run there
    half = tmp_path / "half"
    (half / "checkpoints").mkdir(parents=True)
    shutil.copy(tmp_path / "fork" / "checkpoints" / "0000000000.safetensors", half / "checkpoints")
    with pytest.raises(SappError, match="not a run folder"):
        sapp.resume(half)
    assert_same_run(train(half), straight)
    (half / "config.json").unlink()
    with pytest.raises(SappError, match=r"holds checkpoints but no config\.json"):
        train(half)
    assert (half / "checkpoints" / "0000000040.safetensors").exists()


def test_a_run_killed_before_its_first_checkpoint_starts_again_by_resume(
    train: Callable[..., Run], straight: Run, tmp_path: Path
) -> None:
    copy = shutil.copytree(straight.path, tmp_path / "copy")
    for file in (copy / "checkpoints").iterdir():
        file.unlink()
    with pytest.raises(SappError, match=rf"no checkpoint yet; start it again from step 0 with 'sapp resume {copy}'"):
        train(copy)
    assert_same_run(sapp.resume(copy, progress=False), straight)


@pytest.mark.parametrize("moment", ["copying", "copied"])
def test_a_run_killed_before_it_was_one_starts_again_by_train(
    train: Callable[..., Run], straight: Run, tmp_path: Path, moment: str
) -> None:
    out = tmp_path / "run"
    (out / "checkpoints").mkdir(parents=True)
    (out / "data").mkdir()
    name = f"{logs().fingerprint[:16]}.npz"
    (out / "data" / (name if moment == "copied" else f".{name}.41.tmp")).write_bytes(b"half")
    with pytest.raises(SappError, match=rf"stopped before anything was trained; give its 'sapp train .* --out {out}'"):
        sapp.resume(out)
    assert_same_run(train(out, data=logs()), straight)
    assert [file.name for file in (out / "data").iterdir()] == [name]


def test_a_dataset_made_in_memory_is_kept_in_the_folder(
    train: Callable[..., Run], straight: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        interrupt_at(patch, 12)
        with pytest.raises(Interrupted):
            train(tmp_path / "run", data=logs())
    moved = tmp_path / "moved"
    (tmp_path / "run").rename(moved)
    assert_same_run(sapp.resume(moved, progress=False), straight)


def test_resume_refuses_other_data_and_takes_the_same_from_elsewhere(straight: Run, file: Path, tmp_path: Path) -> None:
    copy = Run(shutil.copytree(straight.path, tmp_path / "copy"))
    copy.checkpoints[40].unlink()
    data = sapp.load(file)
    other = dataclasses.replace(data, reward=data.reward + 1)
    with pytest.raises(SappError, match="'point' has changed since the run began"):
        sapp.resume(copy.path, data=[other], progress=False)
    with pytest.raises(SappError, match="the run has 1 datasets, 2 were given"):
        sapp.resume(copy.path, data=[data, data], progress=False)
    config = copy.path / "config.json"
    config.write_text(config.read_text().replace(str(file), str(tmp_path / "gone.npz")))
    with pytest.raises(SappError, match=rf"gone\.npz: no such file.*sapp resume {copy.path} --data PLACE"):
        sapp.resume(copy.path, progress=False)
    assert_same_run(sapp.resume(copy.path, data=[data], progress=False), straight)


def test_an_unreliable_estimate_is_reported_once_across_a_resume(train: Callable[..., Run], tmp_path: Path) -> None:
    run = train(tmp_path / "run", sa_cql(max_zeta=0.2, fallback=True))
    events = rows(run, "events.csv")
    assert [
        event for event in run.events() if event.kind.health is RatioHealth.UNRELIABLE
    ] == [Event(15, MemberId("sa", "point", seed), EventKind.RATIO_UNRELIABLE) for seed in (0, 1)]
    joint = [row for row in run.metrics() if row["phase"] == "joint"]
    assert {(row["weights/min"], row["weights/max"]) for row in joint} == {("1", "1")}
    for step in (30, 40):
        run.checkpoints[step].unlink()
    assert rows(sapp.resume(run.path, progress=False), "events.csv") == events


def test_no_ratio_is_reported_unreliable_where_weights_do_not_use_it(train: Callable[..., Run], tmp_path: Path) -> None:
    named = {kind.label: control(DualDICE(hidden=(8,), max_zeta=0.2), kind) for kind in ControlKind}
    algorithms = {kind: CQL(hidden=(8,), batch_size=8, action_samples=1, weights=each) for kind, each in named.items()}
    run = sapp.train(algorithms, logs(), phases=PHASES, out=tmp_path / "run", **SETTINGS | {"eval_every": 0})
    unreliable = {event.member.algorithm for event in run.events() if event.kind.health is RatioHealth.UNRELIABLE}
    assert unreliable == {kind.label for kind in ControlKind} - {"random", "uniform"}


def diverging(data: Dataset) -> Dataset:
    return dataclasses.replace(data, reward=np.full(len(data), 1e30, np.float32), name="broken")


def test_a_diverging_member_is_named_and_the_others_finish(file: Path, tmp_path: Path) -> None:
    data = sapp.load(file)
    cql = CQL(hidden=(8,), batch_size=8, action_samples=1)
    run = sapp.train({"cql": cql}, [data, diverging(data)], steps=20, out=tmp_path / "run", **SETTINGS)
    assert run.events() == [Event(5, MemberId("cql", "broken", 0), EventKind.DIVERGED)]
    assert {MemberId.of(row) for row in run.metrics()} == {MemberId("cql", "point", 0)}
    assert run.step == 20
    assert all(np.all(np.isfinite(array)) for array in flatten(run.restore()[1]).values() if array.dtype.kind == "f")
    assert np.all(np.isfinite(run.predict(data.observation[:3], "cql/broken/0")))
    with pytest.raises(SappError, match="every member diverged; the last states are in"):
        sapp.train({"cql": cql}, [diverging(data), dataclasses.replace(diverging(data), name="too")], steps=20,
                   out=tmp_path / "all", **SETTINGS)  # fmt: skip


def test_policy_answers_in_the_datas_units(straight: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    # up to rounding, which is the compiler's: as users get it
    mode = jax.jit(run_module._mode.__wrapped__, compiler_options=USUAL)
    monkeypatch.setattr(run_module, "_mode", mode)
    observation = np.zeros((3, 2), np.float32)
    many = straight.predict(observation, "sa/point/1")
    assert many.shape == (3, 2)
    np.testing.assert_allclose(straight.predict(observation[0], 1), many[0], rtol=1e-6)
    actor = straight.actors[1]
    np.testing.assert_allclose(many, actor(observation).mode(), atol=1e-6)
    assert np.any(many != straight.predict(observation, 0))
    with pytest.raises(SappError, match="no member 'sa/point/9'"):
        straight.predict(observation, "sa/point/9")
    with pytest.raises(SappError, match="has 2 values"):
        straight.predict(np.zeros(5))


def test_another_run_format_is_refused(straight: Run, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(straight.path, tmp_path / "copy"))
    config = copy / "config.json"
    config.write_text(config.read_text().replace('"format": 2', '"format": 1'))
    with pytest.raises(SappError, match="run format 1, this version reads 2; train again"):
        Run(copy)
    config.write_text("{")
    with pytest.raises(SappError, match=r"config\.json: damaged"):
        Run(copy)
