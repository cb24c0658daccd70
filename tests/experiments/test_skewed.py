"""The grid of estimators and controls: which members it has, its data, its table, and one tiny run."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

import sapp
from sapp.runs.phases import sa_protocol
from sapp.weights import Control, ControlKind, RescaledWeights
from studies.medium_datasets.weight_picture import draw, health, plane
from studies.skewed_coverage import skewed
from studies.skewed_coverage.skewed import COMMON, ESTIMATORS, KINDS, PARTS, Mixture, Settings, columns, grid, main, mix
from studies.skewed_coverage.skewed_report import critics_table, differences_table, health_table, late, pairs, report
from studies.skewed_coverage.skewed_report import main as write_report


def test_every_estimator_has_every_control_and_what_none_changes_runs_once() -> None:
    names = [name for part in PARTS for name in columns(part, Settings())]
    assert len(names) == len(set(names)) == 3 * len(ESTIMATORS) + 2
    expected = {"CQL": "uniform", "random": "real", "occupancy": "real"}
    for part in (COMMON, "occupancy"):
        for name, make in columns(part, Settings(mean=0.7)).items():
            weights = make("walker2d-medium-v2").weights
            assert isinstance(weights, RescaledWeights)
            assert weights.mean == 0.7
            assert isinstance(weights.of, Control)
            assert ControlKind(weights.of.kind).label == expected.get(name, name.split("-")[-1])
            assert [float(bound) for bound in weights.of.bounds()] == [0.5, 1.5]


def test_a_mixture_has_the_better_policys_share(tmp_path: Path) -> None:
    pytest.importorskip("mujoco")
    data = mix(Mixture("hopper-mixed", "hopper", "random", "random", 0.25), tmp_path, tmp_path, 400)
    assert (len(data), data.name, data.environment) == (400, "hopper-mixed", "hopper")
    assert data.provenance["loader"] == "concatenate" or "parts" in str(data.provenance)


def test_options_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(sapp.SappError, match="no joint runs"):
        write_report([str(tmp_path)])
    with pytest.raises(sapp.SappError, match="random95"):
        main(["--out", str(tmp_path), "--policies", str(tmp_path), "--environments", "--mixtures", "none"])


def test_the_time_is_shared_by_members_and_what_comes_next_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begun: dict[str, float] = {}

    def endless(out: Path, *_: object, **__: object) -> None:
        begun[out.name] = time.monotonic()
        if out.name in PARTS:
            time.sleep(30.0)

    monkeypatch.setattr(skewed, "_continue", endless)
    start = time.monotonic()
    runs = grid(tmp_path, [], [COMMON, "occupancy"], sa_protocol(1, 1, 1), Settings(), end=start + 5.0)
    assert runs == []  # none left a folder
    assert list(begun) == ["pretrain", COMMON, "occupancy-ratio", "occupancy"]
    assert 1.95 < begun["occupancy-ratio"] - start < 2.8  # two of five columns have 2 of 5 seconds
    assert 4.9 < time.monotonic() - start < 6.5
    assert capsys.readouterr().out.count("time limit reached") == 2


def test_somebodys_own_interruption_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(skewed, "_continue", stopped)
    with pytest.raises(KeyboardInterrupt):
        grid(tmp_path, [], ["occupancy"], sa_protocol(1, 1, 1), Settings(), end=time.monotonic() + 60.0)


def test_differences_are_paired_and_late_ones_are_of_the_second_half() -> None:
    """Two seeds that differ by 50 points, and SA-CQL above its controls by exactly 1, 2, 3 or 4 in both."""
    rng = np.random.default_rng(0)

    def curves(above: float) -> dict[int, np.ndarray]:
        return {step: base[step] + above * (1.0 if step > 20 else 100.0) for step in base}

    base = {step: np.array([[0.0], [50.0]]) + rng.normal(size=(1, 3)) for step in (10, 20, 30, 40)}
    found = {"dualdice": curves(0.0), "CQL": curves(-1.0), "random": curves(-2.0)}
    found |= {"dualdice-shuffled": curves(-3.0), "dualdice-frozen": curves(-4.0)}
    assert list(pairs(found)) == [("dualdice", name) for name in (*KINDS[COMMON], *list(KINDS["dualdice"])[1:])]
    del found["CQL"][40]  # not played there yet
    np.testing.assert_allclose(late(found["random"], 30), (base[20] - 200.0 + base[30] - 2.0) / 2)
    table = differences_table({"one": found, "two": found}, final=True)
    rows = [line for line in table.splitlines() if line.startswith("| dualdice")]
    for number, row in enumerate(rows, start=1):
        assert row.count(f"{number}.0 ({number}.0 to {number}.0)") == 3
    assert len(rows) == 4
    assert all("| 30 |" in row for row in rows)
    found |= {name: {30: base[30]} for name in ("infonce", "infonce-shuffled")}  # a part that was stopped sooner
    del found["random"][30]
    table = differences_table({"one": found}, final=True)
    steps = {row.split(" | ")[0]: row.split(" | ")[1] for row in table.splitlines()[2:]}
    assert steps["| dualdice − CQL"] == "20"
    assert "| infonce − CQL" not in steps  # its columns have no step in common
    alone = {name: {step: values[:1] for step, values in curve.items()} for name, curve in found.items()}
    row = next(line for line in differences_table({"one": alone}, final=True).splitlines() if "dualdice − CQL" in line)
    assert row.endswith("| 20 | 100.0 (one seed) | 100.0 |")


def test_data_can_be_made_alone(tmp_path: Path) -> None:
    pytest.importorskip("mujoco")
    words = "--environments --mixtures --mixture hopper-mixed hopper random random --transitions 300 --data-only"
    main(["--policies", str(tmp_path), "--out", str(tmp_path / "out"), *words.split()])
    assert [file.name for file in tmp_path.rglob("*") if file.is_file()] == ["hopper-mixed-300.npz"]


def test_states_are_drawn_in_named_coordinates_or_principal_components() -> None:
    states = np.random.default_rng(0).normal(size=(50, 4)) * np.array([1.0, 5.0, 1.0, 1.0])
    states[:, 2] = states[:, 0]
    points, names = plane(states, (3, 1))
    np.testing.assert_array_equal(points, states[:, [3, 1]])
    assert names == ["coordinate 3", "coordinate 1"]
    points, _ = plane(states, None)
    assert points.shape == (50, 2)
    assert points[:, 0].var() > points[:, 1].var()
    assert abs(np.corrcoef(points[:, 0], states[:, 0])[0, 1]) > 0.8
    with pytest.raises(sapp.SappError, match="coordinates"):
        plane(states, (0, 9))


@pytest.mark.slow
def test_the_grid_trains_forks_and_reports(tmp_path: Path) -> None:
    pytest.importorskip("mujoco")
    data = [mix(Mixture("hopper-mixed", "hopper", "random", "random"), tmp_path, tmp_path, 300)]
    tiny = Settings(
        ratio={"hidden": (8,)}, base={"hidden": (8, 8), "batch_size": 16, "action_samples": 1}
    )  # fmt: skip
    options = {"seeds": 2, "log_every": 2, "eval_every": 4, "eval_episodes": 2, "progress": False}
    parts = [COMMON, "occupancy"]
    runs = grid(tmp_path, data, parts, sa_protocol(4, 2, 3), tiny, **options)
    assert [len(run.members) for run in runs] == [2 * 2, 2 * 3]
    for run in runs:
        np.testing.assert_allclose([float(row["weights/mean"]) for row in run.metrics()], 1.0, rtol=1e-5)
    spread = [float(row["weights/std"]) for row in runs[0].metrics() if row["member"].startswith("CQL")]
    assert max(spread) == 0.0
    text = report(runs)
    assert text.count("\n| occupancy") == 3 + 2 * 4 + 1 + 3  # scores, two tables of differences, health, critics
    assert "| CQL |" in text
    assert "| random |" in text
    assert "| occupancy | hopper-mixed |" in health_table(runs, 4)
    first = [row for row in runs[0].metrics() if row["member"].startswith("CQL/") and row["step"] == "2"]
    means = [np.mean([float(row[f"critic/{name}"]) for row in first]) for name in ("penalty", "td", "value")]
    assert f"| CQL | {', '.join(f'{mean:.4g}' for mean in means)} |" in critics_table(runs, 2)
    again = grid(tmp_path, data, parts, sa_protocol(4, 2, 3), tiny, **options)  # all done: nothing to do
    assert again[1].evaluations() == runs[1].evaluations()
    learner = runs[1].restore()[1][0]
    frozen = runs[1].members.index("occupancy-frozen/hopper-mixed/0")
    shared = sapp.Run(tmp_path / "occupancy-ratio").restore()[1][0]
    np.testing.assert_array_equal(
        np.asarray(learner.ratio.readout.layers[0].weight)[frozen], shared.ratio.readout.layers[0].weight[0]
    )
    write_report([str(tmp_path)])
    assert (tmp_path / "skewed.md").read_text(encoding="utf-8").startswith("### hopper-mixed, 4 joint steps")
    assert (tmp_path / "skewed.png").read_bytes()[:4] == b"\x89PNG"
    picture = tmp_path / "weights.png"
    draw(runs[1], data[0], picture, "occupancy/hopper-mixed/0", None, 64)
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert "clipped" in health(runs[1], "occupancy/hopper-mixed/0")
