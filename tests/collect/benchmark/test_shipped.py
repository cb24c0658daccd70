"""The policies that the package ships."""

from __future__ import annotations

import pytest

from sapp.collect.benchmark.shipped import FOLDER, available, shipped
from sapp.core.errors import SappError
from sapp.data.benchmark_names import ENVIRONMENTS
from sapp.envs import make as make_environment


def test_a_damaged_card_is_named(tmp_path) -> None:
    (tmp_path / "card.json").write_text("{")
    with pytest.raises(SappError, match=r"card\.json: the card of the shipped policies is damaged"):
        available(tmp_path)
    with pytest.raises(SappError, match="no policies are shipped"):
        shipped("hopper", tmp_path / "elsewhere")


def test_what_is_shipped() -> None:
    """The package's own policies fit their environments, and a card entry names only what is there."""
    assert available() == ENVIRONMENTS
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) < 15e6
    for environment in ENVIRONMENTS:
        policies, training, _ = shipped(environment)
        assert {training.medium, training.expert} <= set(policies)
        place = make_environment(environment)
        assert {(p.observation_size, p.action_size) for p in policies.values()} == {
            (place.observation_size, place.action_size)
        }
