"""What a finished run brings into a store."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from sapp.experiments.collect_results import _timing
from sapp.experiments.store import TABLES, Store


def everything(store: Path) -> dict[str, list[dict[str, object]]]:
    with Store(store) as opened:
        return {table: opened.rows(table) for table in TABLES}


def test_scores_are_those_of_the_run_folder(finished: Path) -> None:
    import numpy as np

    import sapp
    from sapp.data.normalised_scores import normalized_score

    rows = everything(finished / "results.sqlite")
    keys = {(row["variant"], row["seed"]): row["run"] for row in rows["cells"]}
    (folder,) = finished.glob("cql-point-*")
    for row in sapp.Run(folder / "joint").evaluations():
        column, seed = row["algorithm"], row["seed"]
        stored = [
            (each["return"], each["score"])
            for each in rows["evaluations"]
            if (each["run"], each["step"]) == (keys[column, int(seed)], int(row["step"]))
        ]
        returns = np.array([float(value) for value in row["returns"].split(";")])
        np.testing.assert_array_equal([ret for ret, _ in stored], returns)
        np.testing.assert_array_equal([score for _, score in stored], normalized_score("point", returns))


def test_speed_is_that_of_the_last_session_in_the_last_phase() -> None:
    """The clock begins anew when a run goes on: what lies between two sessions is no training."""
    rows = [("ratio", 10, 3.0), ("joint", 20, 5.0), ("joint", 30, 6.0), ("joint", 40, 0.5), ("joint", 60, 2.5)]
    plan = SimpleNamespace(phases=[SimpleNamespace(name=n) for n in ("ratio", "joint")], members=[
        SimpleNamespace(name="CQL"), SimpleNamespace(name="SA-CQL"), SimpleNamespace(name="CQL"),
    ])  # fmt: skip
    metrics = [{"phase": phase, "step": step, "seconds": seconds} for phase, step, seconds in rows]
    run = SimpleNamespace(plan=plan, metrics=lambda: metrics)
    assert _timing(run, "job")[:5] == ("job", "CQL; SA-CQL", 3, 20, 2.0)
