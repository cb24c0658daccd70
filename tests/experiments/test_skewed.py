"""The grid of estimators and controls: which members it has, its data, its table, and one tiny run."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

import sapp
from sapp.experiments import skewed
from sapp.experiments.skewed import CONTROLS, ESTIMATORS, Mixture, Settings, columns, grid, main, mix, report
from sapp.experiments.weight_picture import draw, health, plane
from sapp.ratios import KINDS, Control
from sapp.training.phases import sa_protocol


def test_every_estimator_has_every_control_and_what_none_changes_runs_once() -> None:
    names = [name for number, each in enumerate(ESTIMATORS) for name in columns(each, number == 0, Settings())]
    assert len(names) == len(set(names)) == 3 * len(CONTROLS) + 2
    assert {"CQL", "random"} < set(names)
    for name, make in columns("occupancy", True, Settings()).items():
        weights = make("walker2d-medium-v2").weights
        assert isinstance(weights, Control)
        kind = {"CQL": "uniform", "occupancy": "real"}.get(name, name.split("-")[-1])
        assert KINDS[weights.kind] == kind
        assert (weights.of.f.b0, weights.of.f.b1) == (0.5, 1.0)


def test_a_mixture_has_the_better_policys_share(tmp_path: Path) -> None:
    pytest.importorskip("mujoco")
    data = mix(Mixture("hopper-mixed", "hopper", "random", "random", 0.25), tmp_path, tmp_path, 400)
    assert (len(data), data.name, data.environment) == (400, "hopper-mixed", "hopper")
    assert data.provenance["loader"] == "concatenate" or "parts" in str(data.provenance)


def test_options_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(sapp.SappError, match="--policies"):
        main(["--out", str(tmp_path)])
    with pytest.raises(sapp.SappError, match="no joint runs"):
        main(["--out", str(tmp_path), "--report"])
    with pytest.raises(sapp.SappError, match="random95"):
        main(["--out", str(tmp_path), "--policies", str(tmp_path), "--environments", "--mixtures", "none"])


def test_the_time_is_shared_by_members_and_what_comes_next_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begun: dict[str, float] = {}

    def endless(out: Path, *_: object, **__: object) -> None:
        begun[out.name] = time.monotonic()
        if "joint" in out.name:
            time.sleep(30.0)

    monkeypatch.setattr(skewed, "_continue", endless)
    start = time.monotonic()
    runs = grid(tmp_path, [], ["dualdice", "occupancy"], sa_protocol(1, 1, 1), Settings(), end=start + 3.3)
    assert runs == []  # none left a folder
    assert list(begun) == ["dualdice-shared", "dualdice-joint", "occupancy-shared", "occupancy-joint"]
    assert 1.95 < begun["occupancy-shared"] - start < 2.8  # six of ten columns have 2.0 of 3.3 seconds
    assert 3.2 < time.monotonic() - start < 4.5
    assert capsys.readouterr().out.count("time limit reached") == 2


def test_somebodys_own_interruption_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(skewed, "_continue", stopped)
    with pytest.raises(KeyboardInterrupt):
        grid(tmp_path, [], ["occupancy"], sa_protocol(1, 1, 1), Settings(), end=time.monotonic() + 60.0)


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
    runs = grid(tmp_path, data, ["occupancy"], sa_protocol(4, 2, 3), tiny, **options)
    assert len(runs[0].members) == 2 * (len(CONTROLS) + 2)
    text = report(runs)
    assert text.count("\n| occupancy") == len(CONTROLS)
    assert "| CQL |" in text
    assert "| random |" in text
    again = grid(tmp_path, data, ["occupancy"], sa_protocol(4, 2, 3), tiny, **options)  # all done: nothing to do
    assert again[0].evaluations() == runs[0].evaluations()
    learner = runs[0].restore()[1][0]
    frozen = runs[0].members.index("occupancy-frozen/hopper-mixed/0")
    shared = sapp.Run(tmp_path / "occupancy-shared").restore()[1][0]
    np.testing.assert_array_equal(
        np.asarray(learner.ratio.readout.layers[0].weight)[frozen], shared.ratio.readout.layers[0].weight[0]
    )
    picture = tmp_path / "weights.png"
    draw(runs[0], data[0], picture, "occupancy/hopper-mixed/0", None, 64)
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert "clipped" in health(runs[0], "occupancy/hopper-mixed/0")
