"""Which datasets an experiment has at a scale, and where they come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from sapp import save_npz
from sapp.core.errors import SappError
from sapp.envs.point import behaviour_dataset
from sapp.experiments.datasets import SMOKE_DATA, all_datasets, datasets_of, load_dataset
from sapp.experiments.driver import run_experiment
from sapp.experiments.grid import scaled
from sapp.experiments.paper_grids import table1 as grid


def test_a_scale_says_which_datasets() -> None:
    assert all_datasets(scaled("smoke")) == SMOKE_DATA
    assert len(all_datasets(scaled("paper"))) == 18
    assert set(all_datasets(scaled("small"))) == {
        f"{task}-{quality}" for task in ("halfcheetah", "hopper", "walker2d") for quality in ("medium", "random")
    }
    assert datasets_of(scaled("small"), ("hopper",), ("expert",)) == ("hopper-expert",)


def test_a_folders_files_are_found_under_the_names_people_give_them(tmp_path: Path) -> None:
    data = behaviour_dataset(6)
    save_npz(data, tmp_path / "hopper_medium-v2.npz")
    found = load_dataset("hopper-medium", tmp_path)
    assert (found.name, len(found)) == ("hopper-medium", len(data))
    with pytest.raises(SappError, match=r"no file for hopper-random \(such as hopper-random.npz"):
        load_dataset("hopper-random", tmp_path)


def test_a_missing_file_is_said_before_anything_is_trained(tmp_path: Path) -> None:
    save_npz(behaviour_dataset(6), tmp_path / "halfcheetah-medium.npz")
    with pytest.raises(SappError, match=r"no file for halfcheetah-random"):
        run_experiment(grid(scaled("small")), tmp_path / "out", data=tmp_path)
    assert not (tmp_path / "out").exists()


def test_smoke_data_are_made_in_a_moment() -> None:
    assert load_dataset("point-6").num_episodes == 6
    assert load_dataset("catch-3").name == "catch-3"
