import numpy as np
import pytest

from sapp.core.errors import SappError
from sapp.envs import base_name, normalized_score, normalized_std


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("halfcheetah", -280.178953, 12135.0),
        ("hopper", -20.272305, 3234.3),
        ("walker2d", 1.629008, 4592.3),
    ],
)
def test_the_scale_is_d4rls(name, low, high):
    assert normalized_score(name, low) == 0
    assert normalized_score(name, high) == 100
    assert normalized_score(f"{name}-medium-v2", np.array([low, (low + high) / 2])) == pytest.approx([0, 50])
    assert normalized_score(name, 2 * high - low) == pytest.approx(200)


def test_a_spread_is_scaled_and_never_offset():
    returns = np.random.default_rng(0).normal(1000, 300, 50)
    assert normalized_std("hopper", returns.std()) == pytest.approx(normalized_score("hopper", returns).std())
    assert normalized_std("hopper", 0.0) == 0
    assert normalized_std("hopper", np.zeros(2)) == pytest.approx([0, 0])


def test_names():
    assert base_name("halfcheetah_medium_replay-v2") == "halfcheetah"
    assert base_name("Walker2d-v4") == "walker2d"
    assert base_name("Ant-v5") is None
    with pytest.raises(SappError, match="did you mean 'hopper'"):
        normalized_score("hoper", 1.0)
    with pytest.raises(SappError, match="report returns"):
        normalized_score("Ant-v5", 1.0)
