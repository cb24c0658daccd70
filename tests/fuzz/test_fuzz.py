"""Damaged files, by seed: each is read, or refused in one SappError; nothing else is ever raised.

A few dozen cases per format here; ``make fuzz`` runs thousands (SAPP_FUZZ_CASES per format, SAPP_FUZZ_SEED the first).
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import more_formats
import mutators
import numpy as np
import pytest
import readers
from measured import keep
from mutators import Rng

from sapp.core.errors import SappError
from sapp.data import load
from sapp.experiments import text_store, timings
from sapp.experiments.store import Results, Store, text
from sapp.report import report
from sapp.report import sources as report_sources
from sapp.runs import checkpoint as checkpoint_module
from sapp.runs import metric_tables
from sapp.runs.run import Run
from sapp.training.train import resume

CASES, FIRST = int(os.environ.get("SAPP_FUZZ_CASES", "40")), int(os.environ.get("SAPP_FUZZ_SEED", "0"))
Judged = tuple[Callable[[], Any], Callable[[Any], str]]
Damage = Callable[[Path, Rng], Callable[[], object] | Judged]
"""Makes a damaged file in an empty folder; returns what reads it, and what says how an independent reading differs."""


@pytest.fixture(scope="module")
def run(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with its finishing checkpoint, to be damaged."""
    return Path(shutil.copytree(trained, tmp_path_factory.mktemp("fuzz") / "run"))


@pytest.fixture(scope="module")
def store(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of two runs."""
    file = tmp_path_factory.mktemp("fuzz") / "r.sqlite"
    config = json.loads((run / "config.json").read_text())
    algorithm, phases = text(config["members"][0]["algorithm"]), text(config["phases"])
    runs, cells, played, metrics, events = [], [], [], [], []
    for seed, variant in enumerate(("CQL", "SA-CQL")):
        key = f"run{seed}"
        runs.append((key, "point", "f" * 64, "point", None, 100, 10, algorithm, seed, phases, text({"episodes": 2}),
                     text({}), text({"jax": "1"})))  # fmt: skip
        cells.append(("table1", "smoke", "point", seed, variant, 0, key))
        played += [(key, step, episode, step, 1.0 + episode, 50.0) for step in (10, 20) for episode in range(2)]
        metrics += [(key, step, "train", text({"loss/td": 0.5, "weights/mean": 1.0})) for step in (10, 20)]
        events.append((key, 0, 10, "ratio-unreliable"))
    with Store(file, create=True) as made:
        made.add(Results({
            "experiments": [("table1", "smoke", "Table", "Which?", "SA-CQL")], "cells": cells, "runs": runs,
            "evaluations": played, "metrics": metrics, "events": events,
        }))  # fmt: skip
    return file


def arrays() -> dict[str, np.ndarray]:
    """A small log."""
    rng, rows = np.random.default_rng(0), 40
    done = np.arange(rows) % 10 == 9
    return {"observations": rng.normal(size=(rows, 3)).astype("f4"), "rewards": rng.normal(size=rows).astype("f4"),
            "actions": rng.uniform(-1, 1, (rows, 1)).astype("f4"), "terminals": done,
            "episode": np.arange(rows) // 10}  # fmt: skip


def csv() -> str:
    """The same as text."""
    log = arrays()
    names = [*(f"observation_{i}" for i in range(3)), "action", "reward", "terminal", "episode"]
    columns = np.column_stack([log["observations"], log["actions"], log["rewards"], log["terminals"], log["episode"]])
    return "\n".join([",".join(names), *(",".join(f"{value:g}" for value in row) for row in columns)]) + "\n"


def own_run(folder: Path, run: Path) -> Path:
    return Path(shutil.copytree(run, folder / "run"))


def opened(folder: Path) -> Run:
    found = Run(folder)
    found.restore()
    found.metrics()
    found.events()
    found.final_and_best()
    return found


def same_weights(run: Path) -> Callable[[Run], str]:
    """Says whether a run's newest checkpoint holds other arrays than that of an undamaged one."""

    def judge(found: Run) -> str:
        from safetensors.numpy import load_file

        theirs = load_file(max(Run(run).checkpoints.values()))
        ours = checkpoint_module.flatten(found.restore()[1])
        wrong = [name for name in theirs if ours[name].tobytes() != theirs[name].tobytes()]
        return f"other weights: {wrong[0]}" if wrong or ours.keys() != theirs.keys() else ""

    return judge


def same_table(file: Path) -> Callable[[Any], str]:
    """Says whether the rows that sapp reads are other than the lines of the file."""

    def judge(_: Any) -> str:
        return "" if metric_tables.read(file) == readers.text_rows(file) else "other rows than lines"

    return judge


def configuration(run: Path) -> Damage:
    def damage(folder: Path, rng: Rng) -> Callable[[], object]:
        own = own_run(folder, run)
        file = own / "config.json"
        if rng.random() < 0.2:
            file.write_bytes(mutators.damaged_bytes(file.read_bytes(), rng))
        else:
            file.write_text(json.dumps(mutators.damaged_json(json.loads(file.read_text()), rng)))
        def judge(found: Run) -> str:
            said = readers.json_of(file)
            versions = said.pop("versions", {})  # of who wrote it: the plan has our own
            return readers.lost(said, found.plan.to_json()) or readers.lost(versions, found.versions)

        return lambda: opened(own), judge

    return damage


def reported_configuration(run: Path) -> Damage:
    def damage(folder: Path, rng: Rng) -> Callable[[], object]:
        configuration(run)(folder, rng)
        return lambda: report([folder / "run"], folder / "r.html")

    return damage


def tables(run: Path) -> Damage:
    def damage(folder: Path, rng: Rng) -> Judged:
        own = own_run(folder, run)
        file = own / ("metrics.csv", "evaluations.csv", "events.csv")[int(rng.integers(3))]
        file.write_bytes(mutators.damaged_text(file.read_text(), rng))

        def read() -> None:
            with contextlib.suppress(SappError):
                opened(own)
            report([own], folder / "r.html")

        return read, same_table(file)

    return damage


def resumed_tables(run: Path) -> Damage:
    def damage(folder: Path, rng: Rng) -> Callable[[], object]:
        tables(run)(folder, rng)
        own = folder / "run"
        found = Run(own)
        for step, file in found.checkpoints.items():
            if step == found.total_steps:
                file.unlink()
        return lambda: resume(own, progress=False)

    return damage


def checkpoint(run: Path) -> Damage:
    def damage(folder: Path, rng: Rng) -> Callable[[], object]:
        own = own_run(folder, run)
        file = max(Run(own).checkpoints.values())
        file.write_bytes(mutators.damaged_bytes(file.read_bytes(), rng))
        return lambda: opened(own), same_weights(run)

    return damage


def stored(store: Path) -> Damage:
    def damage(folder: Path, rng: Rng) -> Callable[[], object]:
        own = Path(shutil.copy(store, folder / "r.sqlite"))
        if rng.random() < 0.3:
            own.write_bytes(mutators.damaged_bytes(own.read_bytes(), rng))
        else:
            mutators.damage_store(own, rng)

        def judge(_: Any) -> str:
            with Store(own) as found:
                for table in ("runs", "evaluations", "metrics", "events"):
                    ours = [tuple(row.values()) for row in found.rows(table)]
                    if sorted(map(repr, ours)) != sorted(map(repr, readers.store_rows(own, table))):
                        return f"other rows in {table}"
            return ""

        return lambda: report([own], folder / "r.html"), judge

    return damage


TIMINGS = "job,variants,members,steps,seconds,device\na,CQL; SA-CQL,4,100,1.5,cpu\nb,CQL,2,10,0.25,cpu\n"


def timed(store: Path) -> Damage:
    """A store whose file of timings is damaged."""

    def damage(folder: Path, rng: Rng) -> Judged:
        own = Path(shutil.copy(store, folder / "r.sqlite"))
        file = folder / "r-timings.csv"
        file.write_bytes(mutators.damaged_text(TIMINGS, rng))

        def judge(_: Any) -> str:
            same = timings.read(file) == [tuple(row.values()) for row in readers.lines(file)]
            return "" if same else "other timings than lines"

        return lambda: report([own], folder / "r.html"), judge

    return damage


def as_text(store: Path) -> Damage:
    """A store as a folder of CSV files."""

    def damage(folder: Path, rng: Rng) -> Judged:
        rows = folder / "rows"
        own = Path(shutil.copy(store, folder / "r.sqlite"))
        (folder / "r-timings.csv").write_text(TIMINGS)
        with Store(own) as whole:
            text_store.write(whole, rows)
        file = rows / f"{list(text_store.COLUMNS)[int(rng.integers(len(text_store.COLUMNS)))]}.csv"
        what = rng.random()
        if what < 0.1:
            texts = {each.name: each.read_text() for each in sorted(rows.glob("*.csv"))}
            (rows / text_store.JOURNAL).write_text(json.dumps(mutators.damaged_json(texts, rng)))
        elif what < 0.15:
            file.unlink()
        else:
            file.write_bytes(mutators.damaged_text(file.read_text(), rng))

        def read() -> Any:
            found = text_store.read(rows)
            with Store(folder / "again.sqlite", create=True) as again:
                again.add(found)
            report([rows], folder / "r.html")
            return found

        def judge(found: Results) -> str:
            for name in ("experiments", "cells", "runs", "evaluations", "metrics", "events"):
                lines = readers.text_store_rows(rows, name)
                ours = [tuple("" if value is None else value for value in row) for row in found.rows[name]]
                ours = [row[:-1] for row in ours] if name == "evaluations" else ours  # scores are computed
                if name == "metrics":
                    ours = [(*row[:-1], dict(sorted(json.loads(row[-1]).items()))) for row in ours]
                if sorted(map(repr, ours)) != sorted(map(repr, lines)):
                    return f"other rows in {name}"
            return ""

        return read, judge

    return damage


def scored(folder: Path, rng: Rng) -> Judged:
    """A file of scores of whoever wrote it."""
    file = folder / "scores.csv"
    lines = [f"r{run},{method},d-{data},{seed},{step},{step + seed}.5;{run}" for run in range(2) for method in "ab"
             for data in range(2) for seed in range(2) for step in (5, 10)]  # fmt: skip
    file.write_bytes(mutators.damaged_text("\n".join(["run,method,dataset,seed,step,returns", *lines]) + "\n", rng))

    def read() -> Any:
        report([file], folder / "r.html")
        return report_sources.read([file])

    def judge(found: Any) -> str:
        ours = sorted((member.dataset, member.seed, step, list(played.values())) for each in found
                      for member in each.members for step, played in member.evaluations.items())  # fmt: skip
        theirs = sorted(readers.scores(file))
        return "" if ours == theirs else "other scores than lines"

    return read, judge


def npz(folder: Path, rng: Rng) -> Judged:
    file = folder / "log.npz"
    np.savez(file, **mutators.damaged_arrays(arrays(), rng))
    if rng.random() < 0.3:
        file.write_bytes(mutators.damaged_bytes(file.read_bytes(), rng))
    return lambda: load(file), lambda found: readers.differs(found, readers.npz_columns(file))


def hdf5(folder: Path, rng: Rng) -> Judged:
    import h5py

    file = folder / "log.hdf5"
    with h5py.File(file, "w") as out:
        for key, value in mutators.damaged_arrays(arrays(), rng).items():
            out[key] = value if value.dtype.kind not in "UM" else np.zeros(value.shape, "S2")
    if rng.random() < 0.5:
        file.write_bytes(mutators.damaged_bytes(file.read_bytes(), rng))
    return lambda: load(file), lambda found: readers.differs(found, readers.hdf5_columns(file))


def text_table(folder: Path, rng: Rng) -> Judged:
    file = folder / "log.csv"
    file.write_bytes(mutators.damaged_text(csv(), rng))
    return lambda: load(file), lambda found: readers.differs(found, readers.csv_columns(file))


def parquet(folder: Path, rng: Rng) -> Judged:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    file = folder / "log.parquet"
    found = mutators.damaged_arrays(arrays(), rng)
    columns = {key: pa.array(list(value) if value.ndim > 1 else value.tolist()) for key, value in found.items()
               if value.dtype.kind not in "cM" and value.ndim in (1, 2)}  # fmt: skip
    rows = min(map(len, columns.values()), default=0)
    pyarrow.parquet.write_table(pa.table({key: value[:rows] for key, value in columns.items()}), file)
    if rng.random() < 0.5:
        file.write_bytes(mutators.damaged_bytes(file.read_bytes(), rng))
    return lambda: load(file), lambda found: readers.differs(found, readers.parquet_columns(file))


TOML = """observation = ["observation_0", "observation_1", "observation_2"]
action = "action"
reward = "reward"
terminal = "terminal"
episode = "episode"
ignore = ["nothing"]
last_step = "end"
action_low = -2.0
max_episode_steps = 10
"""


def toml(folder: Path, rng: Rng) -> Judged:
    file = folder / "map.toml"
    (folder / "log.csv").write_text(csv())
    if rng.random() < 0.3:
        file.write_bytes(mutators.damaged_bytes(TOML.encode(), rng))
    else:
        content = mutators.damaged_json(tomllib.loads(TOML), rng)
        pairs = content.items() if isinstance(content, dict) else [("x", content)]
        file.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in pairs), errors="replace")

    def judge(found: Any) -> str:
        said = tomllib.loads(file.read_text())
        columns = readers.csv_columns(folder / "log.csv")
        names = said.get("observation")
        if not isinstance(names, list) or said.get("action") != "action" or said.get("reward") != "reward":
            return ""  # other columns than ours
        number = {name: i for i, name in enumerate(f"observation_{i}" for i in range(3))}
        chosen = columns["observation"][:, [number[name] for name in names]]
        return readers.differs(found, {**columns, "observation": chosen})

    return lambda: load(folder / "log.csv", columns=file), judge


FORMATS: dict[str, tuple[str, Callable[..., object]]] = {
    "config.json opened": ("run", configuration),
    "config.json reported": ("run", reported_configuration),
    "tables reported": ("run", tables),
    "tables resumed": ("run", resumed_tables),
    "checkpoints": ("run", checkpoint),
    "stores": ("store", stored),
    "timings": ("store", timed),
    "results as text": ("store", as_text),
    "scores": ("", scored),
    "npz": ("", npz),
    "hdf5": ("", hdf5),
    "csv": ("", text_table),
    "parquet": ("", parquet),
    "toml": ("", toml),
    **more_formats.FORMATS,
}
SLOW = {"tables resumed": 10, "config.json opened": 3, "command lines": 2}
"""One case of these costs as much as so many of the others."""


@pytest.mark.parametrize("name", FORMATS)
def test_damaged_files_are_read_or_refused(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    fixture, made = FORMATS[name]
    damage: Damage = made(request.getfixturevalue(fixture)) if fixture else made  # type: ignore[assignment]
    wrong: dict[str, list[int]] = {}
    counts = {"read": 0, "refused": 0}
    for seed in range(FIRST, FIRST + max(1, CASES // SLOW.get(name, 1))):
        folder = tmp_path / str(seed)
        folder.mkdir()
        made_now = damage(folder, np.random.default_rng((seed, len(name))))
        read, judge = made_now if isinstance(made_now, tuple) else (made_now, lambda _: "")
        try:
            found = read()
            counts["read"] += 1
            if problem := judge(found):
                wrong.setdefault(f"wrongly accepted: {problem}", []).append(seed)
        except SappError as error:
            counts["refused"] += 1
            if "\n" in str(error) or not str(error).strip():
                wrong.setdefault(f"more than one line: {error!r}", []).append(seed)
        except Exception as error:
            trace = error.__traceback__
            while trace is not None and trace.tb_next is not None:
                trace = trace.tb_next
            place = "" if trace is None else f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
            wrong.setdefault(f"{type(error).__name__} at {place}: {str(error)[:100]}", []).append(seed)
        assert not [each for each in folder.rglob("*") if each.name.endswith(".tmp")]
        shutil.rmtree(folder)
    keep("fuzz", name, **counts, wrong=sum(map(len, wrong.values())))
    assert wrong == {}
