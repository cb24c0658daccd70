"""A results store as CSV files: written, read and gone on from, with nothing lost that a report or a driver needs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tiny_experiment import tiny_grid

from sapp.core.errors import SappError, TimeLimitReached
from sapp.experiments import text_store
from sapp.experiments.driver import run_experiment
from sapp.experiments.store import Results, Store
from sapp.report.sources import read
from sapp.runs.members import MemberId
from sapp.runs.phases import Phase
from sapp.training.loop import Loop


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny experiment that was run with ``rows``."""
    folder = tmp_path_factory.mktemp("finished")
    run_experiment(tiny_grid(), folder, progress=False, say=lambda _: None, rows=folder / "rows")
    return folder


def restored(rows: Path, path: Path) -> Store:
    store = Store(path, create=True)
    store.add(text_store.read(rows))
    return store


def test_a_store_made_from_its_text_holds_the_same(finished: Path, tmp_path: Path) -> None:
    with Store(finished / "results.sqlite") as before, restored(finished / "rows", tmp_path / "r.sqlite") as after:
        for table in ("experiments", "cells", "runs", "evaluations", "events"):
            assert before.rows(table) == after.rows(table), table
        kept = {(row["run"], row["step"], row["phase"]): row["values"] for row in after.rows("metrics")}
        full = {(row["run"], row["step"], row["phase"]): row["values"] for row in before.rows("metrics")}
        assert kept.keys() <= full.keys()
        played = {(row["run"], row["step"]) for row in before.rows("evaluations")}
        assert played <= {key[:2] for key in kept}
        for key, values in kept.items():
            assert json.loads(values) == pytest.approx(json.loads(full[key]), rel=1e-5)
    assert (finished / "rows" / "timings.csv").read_bytes() == (finished / "results-timings.csv").read_bytes()


def test_of_metrics_those_at_evaluations_and_ends_of_phases_are_kept(finished: Path, tmp_path: Path) -> None:
    results = text_store.read(finished / "rows")
    run, step, phase, _ = max(results.rows["metrics"], key=lambda row: row[1])
    between = [(run, step + 7, phase, '{"critic/loss":1.0}'), (run, step + 9, phase, '{"critic/loss":1.23456789}')]
    results.rows["metrics"].extend(between)
    with Store(tmp_path / "r.sqlite", create=True) as store:
        store.add(results)
        text_store.write(store, tmp_path / "rows")
    kept = {row[:3]: row[3] for row in text_store.read(tmp_path / "rows").rows["metrics"]}
    assert (run, step + 7, phase) not in kept
    assert json.loads(kept[run, step + 9, phase]) == {"critic/loss": 1.23457}
    assert (run, step, phase) in kept


def test_what_the_text_holds_is_not_trained_again(finished: Path, tmp_path: Path) -> None:
    rows, said = tmp_path / "rows", []
    shutil.copytree(finished / "rows", rows)
    run_experiment(tiny_grid(), tmp_path / "out", progress=False, say=said.append, rows=rows)
    assert said == ["cql-point: 10 runs, all done before"]
    for file in rows.iterdir():
        assert file.read_bytes() == (finished / "rows" / file.name).read_bytes(), file.name


def test_more_seeds_are_added_to_the_text_and_its_lines_stay(finished: Path, tmp_path: Path) -> None:
    rows, said = tmp_path / "rows", []
    shutil.copytree(finished / "rows", rows)
    part = tiny_grid(seeds=(0, 1, 2)).only(None, ["CQL", "SA-CQL"])
    run_experiment(part, tmp_path / "out", progress=False, say=said.append, rows=rows)
    assert said[0].startswith("cql-point: 2 runs of 6")
    for name in ("runs.csv", "evaluations.csv", "metrics.csv", "cells.csv"):
        before = (finished / "rows" / name).read_text().splitlines()
        after = (rows / name).read_text().splitlines()
        assert set(before) < set(after), name
        assert after[1:] == sorted(after[1:]) or name != "runs.csv"


def test_a_report_reads_the_text_as_it_reads_the_store(finished: Path) -> None:
    (from_store,), (from_text,) = read([finished / "results.sqlite"]), read([finished / "rows"])
    assert (from_text.title, from_text.variants, from_text.datasets) == (
        from_store.title, from_store.variants, from_store.datasets,
    )  # fmt: skip
    assert from_text.timings == from_store.timings
    for mine, theirs in zip(from_text.members, from_store.members, strict=True):
        assert mine.evaluations == theirs.evaluations
        assert mine.facts == theirs.facts
        assert mine.starts == theirs.starts
        assert 0 < len(mine.metrics["critic/value"]) <= len(theirs.metrics["critic/value"])


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        ("evaluations.csv", "run,step,updates,returns", "run,step,returns,updates", "must have the columns run, step"),
        ("evaluations.csv", ";", ";x", "must be finite numbers joined by ;"),
        ("evaluations.csv", ";", ";inf;", "must be finite numbers joined by ;"),
        ("evaluations.csv", ";", ";1_0;", "must be finite numbers joined by ;"),
        ("evaluations.csv", ",10,", ",1_0,", "'step' is '1_0'"),
        ("evaluations.csv", ",10,", ",9223372036854775808,", "must be a whole number"),
        ("cells.csv", ",CQL,0,", ",CQL,00,", "'seed' is '00'"),
        ("cells.csv", ",CQL,", ",C\x1bQL,", "holds control characters"),
        ("timings.csv", "\n", "\nx,y,1,2,soon,cpu\n", "line 2: members, steps or seconds are no such number"),
        ("timings.csv", "job,", "task,", "must have the columns job, variants"),
        ("cells.csv", ",CQL,0,", ",CQL,zero,", "'seed' is 'zero'"),
        ("metrics.csv", ",joint,", ",joint,x", "must be a finite number"),
        ("metrics.csv", "run,step,phase", "run,phase,step", "run, step, phase, and one for each metric"),
        ("runs.csv", None, "", "is not in runs.csv"),
    ],
)
def test_damaged_text_is_refused_in_one_line(
    finished: Path, tmp_path: Path, name: str, old: str | None, new: str, words: str
) -> None:
    rows = tmp_path / "rows"
    shutil.copytree(finished / "rows", rows)
    content = (rows / name).read_text()
    changed = content.replace(old, new, 1) if old is not None else content.splitlines()[0] + "\n"
    assert changed != content
    (rows / name).write_text(changed)
    with pytest.raises(SappError, match=words) as caught:
        text_store.read(rows)
    assert "\n" not in str(caught.value)


def test_two_lines_of_one_key_a_cut_off_end_and_a_missing_file_are_refused(finished: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows"
    shutil.copytree(finished / "rows", rows)
    file = rows / "evaluations.csv"
    content = file.read_text()
    file.write_text(content + content.splitlines(keepends=True)[-1].replace(";", ";0.5;", 1))
    with pytest.raises(SappError, match="has two lines of"):
        text_store.read(rows)
    file.write_text(content[:-1])
    with pytest.raises(SappError, match="its last line is cut off"):
        text_store.read(rows)
    file.unlink()
    with pytest.raises(SappError, match=r"no evaluations\.csv"):
        text_store.read(rows)


def test_lines_of_a_run_that_is_not_there_are_refused(finished: Path, tmp_path: Path) -> None:
    for name in ("metrics", "events", "cells"):
        rows = tmp_path / name
        shutil.copytree(finished / "rows", rows)
        file = rows / f"{name}.csv"
        empty = "," * (file.read_text().splitlines()[0].count(",") - 2)
        line = {"metrics": f"none,1,joint{empty}", "events": "none,0,1,diverged"}.get(name, "e,s,point-6,0,CQL,9,none")
        file.write_text(f"{file.read_text()}{line}\n")
        with pytest.raises(SappError, match=rf"{name}\.csv: run 'none' is not in runs\.csv"):
            text_store.read(rows)


def test_a_run_that_the_text_holds_keeps_its_lines_whatever_another_store_says(finished: Path, tmp_path: Path) -> None:
    """Of two machines, say, whose bits differ: never half of one and half of the other."""
    rows, other = tmp_path / "rows", tmp_path / "other.sqlite"
    shutil.copytree(finished / "rows", rows)
    results = text_store.read(rows)
    run = results.rows["runs"][0][0]
    changed = [(*row[:1], row[1] + 5, *row[2:]) for row in results.rows["evaluations"] if row[0] == run]
    with Store(other, create=True) as store:
        store.add(Results({**results.rows, "evaluations": changed}))
        text_store.write(store, rows)
    for name in ("evaluations.csv", "metrics.csv", "runs.csv"):
        assert (rows / name).read_bytes() == (finished / "rows" / name).read_bytes()
    assert {row[0] for row in results.without({run}).rows["evaluations"]} == {
        row[0] for row in results.rows["runs"] if row[0] != run
    }


@pytest.mark.parametrize("name", ["metrics.csv", "timings.csv", "rows"])
def test_a_place_that_is_somebody_elses_is_refused_before_anything_is_trained(tmp_path: Path, name: str) -> None:
    rows, said = tmp_path / "rows", []
    if name == "rows":
        rows.write_text("mine\n")
    else:
        rows.mkdir()
        (rows / name).write_text("mine\n")
    with pytest.raises(SappError, match="rows"):
        run_experiment(tiny_grid(), tmp_path / "out", progress=False, say=said.append, rows=rows)
    assert said == []
    assert not (tmp_path / "out").exists()
    assert (rows if name == "rows" else rows / name).read_text() == "mine\n"


def test_timings_that_are_none_are_refused_before_anything_is_trained(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "results-timings.csv").write_text("mine\n")
    said: list[str] = []
    with pytest.raises(SappError, match="must have the columns job, variants"):
        run_experiment(tiny_grid(), tmp_path / "out", progress=False, say=said.append)
    assert said == []


def test_more_returns_than_pythons_csv_reads_by_itself(tmp_path: Path) -> None:
    file = tmp_path / "s.csv"
    file.write_text(f"method,dataset,seed,step,returns\nours,d,0,1,{';'.join(['1.5'] * 50_000)}\n")
    (experiment,) = read([file])
    assert len(experiment.members[0].evaluations[1]) == 50_000


def test_a_value_that_was_not_finite_is_told_from_one_that_was_not_logged(finished: Path, tmp_path: Path) -> None:
    results = text_store.read(finished / "rows")
    run, step, phase, _ = max(results.rows["metrics"], key=lambda row: row[1])
    results.rows["metrics"][:] = [(run, step, phase, '{"critic/td": null}'), (run, step - 10, phase, '{"other": 2.5}')]
    text_store.add(results, tmp_path / "rows")
    assert {row[1]: row[3] for row in text_store.read(tmp_path / "rows").rows["metrics"]} == {
        step: '{"critic/td": null}', step - 10: '{"other": 2.5}',
    }  # fmt: skip


def test_what_is_stopped_is_kept_apart_until_it_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, said = tmp_path / "rows", []
    boundary = Loop._at_boundary

    def over(self: Loop, phase: Phase, *rest: int) -> bool:
        """As where the time is over after the first evaluation of the last phase."""
        boundary(self, phase, *rest)
        if phase.name == "joint":
            raise TimeLimitReached("over")
        return False

    monkeypatch.setattr(Loop, "_at_boundary", over)
    run_experiment(tiny_grid(), tmp_path / "out", progress=False, say=said.append, rows=rows)
    assert said[-1] == "1 of 1 jobs are unfinished; give the same command again to go on"
    found = text_store.read(rows / text_store.UNFINISHED)
    assert {row[1] for row in found.rows["evaluations"]} == {10}
    assert len(found.rows["runs"]) == len(found.rows["cells"]) == 10
    assert not text_store.is_text_store(rows), "nothing is done yet"

    monkeypatch.undo()
    run_experiment(tiny_grid(), tmp_path / "out", progress=False, say=said.append, rows=rows)
    assert not (rows / text_store.UNFINISHED).exists()
    assert {row[1] for row in text_store.read(rows).rows["evaluations"]} == {10, 20}


def test_a_part_that_is_no_rectangle_adds_to_the_same_table(tmp_path: Path) -> None:
    """Methods keep their places whichever part brought them, and no run is there twice."""
    rows, grid = tmp_path / "rows", tiny_grid()
    first = {MemberId("SA-CQL", "point-6", 0), MemberId("matched", "point-6", 1)}
    second = {MemberId("CQL", "point-6", seed) for seed in (0, 1)} | {MemberId("SA-CQL", "point-6", 0)}
    for number, part in enumerate((first, second)):
        run_experiment(grid.part(part), tmp_path / str(number), progress=False, say=lambda _: None, rows=rows)
    (experiment,) = read([rows])
    assert experiment.variants == ("CQL", "SA-CQL", "matched")
    assert {(each.variant, each.seed) for each in experiment.members} == {
        ("CQL", 0), ("CQL", 1), ("SA-CQL", 0), ("matched", 1),
    }  # fmt: skip
    assert experiment.notes == ()
    with pytest.raises(SappError, match="no seed 7"):
        grid.part({MemberId("CQL", "point-6", 7)})


def test_only_its_own_files_are_deleted_and_a_process_killed_meanwhile_leaves_none_of_the_runs(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = tmp_path / "rows"
    shutil.copytree(finished / "rows", rows)
    runs = {row[0] for row in text_store.read(rows).rows["runs"]}
    (rows / "note.txt").write_text("mine")
    unlink, gone = Path.unlink, []

    def killed(path: Path, missing_ok: bool = False) -> None:
        if len(gone) == 2:
            raise KeyboardInterrupt
        gone.append(path.name)
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", killed)
    with pytest.raises(KeyboardInterrupt):
        text_store.leave_out(rows, runs)
    monkeypatch.undo()
    assert text_store.read(rows).rows["runs"] == []
    text_store.leave_out(rows, runs)
    assert {each.name for each in rows.iterdir()} <= {"note.txt", text_store.LOCK}
    assert (rows / "note.txt").read_text() == "mine"
    text_store.add(text_store.read(finished / "rows"), rows)
    assert {row[0] for row in text_store.read(rows).rows["runs"]} == runs
