"""The motivating chain against numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from sapp.core.errors import SappError
from sapp.theory.chain import SPREADS, chain, sweep
from sapp.theory.chain_show import plot_chain

GAMMA = 0.9
G = GAMMA / (2 - GAMMA)  # d(k+1)/d(k) on an arm: half of the time the uniform policy tries the unseen step, and stays


def test_occupancy_and_ratio_by_hand() -> None:
    found = chain(arm=2, left=5, right=20, discount=GAMMA)
    d = np.array([G**2, G, 1, G, G**2])
    visits = np.array([5, 5, 25, 20, 20]) / 75
    np.testing.assert_allclose(found.occupancy[1:-1], d / d.sum(), atol=1e-12)
    np.testing.assert_allclose(found.data[1:-1], visits, atol=1e-12)
    np.testing.assert_allclose(found.ratio[1:-1], d / d.sum() / visits, atol=1e-12)
    assert np.sum(found.data * found.ratio) == pytest.approx(1)
    assert found.skew == pytest.approx(20 / 5)
    assert found.data[[0, -1]].tolist() == [0, 0]


def test_pessimism_by_hand() -> None:
    found = chain(arm=2, left=5, right=20, discount=GAMMA, alpha=0.2)
    tv = np.array([0.5, 0.5, 0.3, 0.5, 0.5])
    np.testing.assert_allclose(found.pessimism["pp"][1:-1], 0.2 * tv, atol=1e-12)
    np.testing.assert_allclose(found.pessimism["w"], 0.2 * found.ratio * found.distance, atol=1e-12)
    root = np.sqrt(found.ratio)
    np.testing.assert_allclose(found.pessimism["sqrt-w"], 0.2 * root * found.distance / (found.data @ root), atol=1e-12)
    # v(ℓ₂) = ½·0.6 − p + ½γ·v(ℓ₂), and so on towards s₀
    last = (0.5 * 0.6 - 0.1) / (1 - GAMMA / 2)
    before = (0.5 * GAMMA * last - 0.1) / (1 - GAMMA / 2)
    assert found.value["pp"][1:3] == pytest.approx([last, before])
    assert found.value["none"][1] == pytest.approx(0.3 / (1 - GAMMA / 2))


def test_mirrored_coverage_mirrors_everything() -> None:
    one = chain(left=3, right=30, left_reward=0.4, right_reward=0.7)
    other = chain(left=30, right=3, left_reward=0.7, right_reward=0.4)
    for name in SPREADS:
        np.testing.assert_allclose(one.value[name], other.value[name][::-1], atol=1e-12)
        np.testing.assert_allclose(one.pessimism[name], other.pessimism[name][::-1], atol=1e-12)


@pytest.mark.parametrize("name", ["kl", "cql"])
def test_unbounded_divergences_are_infinite_on_both_arms(name: str) -> None:
    found = chain(divergence=name)
    inner = found.distance[1:-1]
    assert np.isinf(np.delete(inner, 3)).all()
    assert np.isfinite(inner[3])
    assert np.isneginf(found.value["pp"][4])
    assert np.isneginf(found.value["w"][4])
    with pytest.raises(SappError, match="smoothing"):
        plot_chain("never.png", divergence=name)


def test_smoothing_charges_the_better_known_arm_more_and_w_cancels_it() -> None:
    found = chain(divergence="cql", smoothing=0.5)
    # β̂ = (n + ½)/(n + 1) outwards: χ² = 1/(4β̂(1−β̂)) − 1
    chi = [(n + 1) ** 2 / (4 * (n + 0.5) * 0.5) - 1 for n in (10, 90)]
    assert found.distance[[3, 5]] == pytest.approx(chi)
    assert found.pessimism["pp"][5] > 9 * found.pessimism["pp"][3]
    assert found.pessimism["w"][5] == pytest.approx(found.pessimism["w"][3], rel=0.1)


def test_sweep_directions() -> None:
    found = sweep(points=9)
    tilt = {name: found.known_left[name] / found.known_right[name] for name in ("pp", "w", "sqrt-w")}
    skew = (1 - found.share) / found.share
    np.testing.assert_allclose(tilt["pp"], 1)
    np.testing.assert_allclose(tilt["w"], skew)
    np.testing.assert_allclose(tilt["sqrt-w"], np.sqrt(skew))
    assert np.all(np.diff(tilt["w"]) < 0)  # the better the left is known, the smaller its weight
    assert np.ptp(found.value["none"]) == pytest.approx(0)
    assert found.value["w"].argmax() == 4


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"arm": 0}, "arm"), ({"left": 0}, "trajectory"), ({"alpha": -1.0}, "alpha"), ({"discount": 1.0}, "discount"),
        ({"divergence": "js"}, "divergence"), ({"left_reward": 1.5}, "reward"), ({"smoothing": -1.0}, "smoothing"),
    ],
)
def test_bad_arguments(change: dict, word: str) -> None:
    with pytest.raises(SappError, match=word) as caught:
        chain(**change)
    assert "\n" not in str(caught.value)
