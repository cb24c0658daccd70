"""Uneven coverage: the comparison finds what it should, exactly and with networks."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sapp.core.errors import SappError
from sapp.core.spec import Batch
from sapp.tabular.exact_cql import SPREADS, exact_losses
from sapp.tabular.uneven_coverage import CASES, Setting, make_world
from sapp.weights.transforms import Identity
from studies.uneven_coverage import __main__ as command
from studies.uneven_coverage import learned as networks
from studies.uneven_coverage.__main__ import tuned
from studies.uneven_coverage.learned import KnownRatio


def test_alpha_is_tuned_on_the_first_half_of_the_worlds_and_judged_on_the_second() -> None:
    losses = {
        "CQL": np.array([[1.0, 1.0, 5.0, 5.0], [2.0, 2.0, 0.0, 0.0]]),
        "other": np.array([[3.0, 3.0, 0.0, 0.0], [1.0, 1.0, 4.0, 3.0]]),
    }
    first, second = tuned(losses, [0.1, 10.0])
    assert (first.alpha, first.lost, first.difference.estimate) == (0.1, 5.0, 0.0)
    assert (second.alpha, second.lost, second.difference.estimate) == (10.0, 3.5, -1.5)


def test_the_ratio_helps_where_coverage_is_uneven_and_its_controls_do_not() -> None:
    alphas = np.geomspace(0.1, 100, 10).tolist()
    worlds = [make_world(CASES["uneven coverage"], seed) for seed in range(60)]
    rows = {row.variant: row for row in tuned(exact_losses(worlds, alphas), alphas)}
    assert rows["SA-CQL, log-min–max"].difference.high < 0.0
    assert rows["SA-CQL, √w"].difference.high < 0.0
    assert rows["√w shuffled"].difference.high > 0.0
    assert rows["random"].difference.high > 0.0


def test_known_ratios_weigh_a_batch_by_its_states() -> None:
    ratio = np.linspace(0.5, 3.0, 20).astype(np.float32)
    state = jnp.asarray([4, 0, 19, 4])
    one_hot = jnp.eye(20)[state]
    zero = jnp.zeros(4)
    batch = Batch(one_hot, zero, zero, one_hot, zero, one_hot)
    weights, _ = KnownRatio(ratio, Identity()).weights((), batch, None, jax.random.PRNGKey(0))  # type: ignore[arg-type]
    np.testing.assert_allclose(weights, ratio[np.asarray(state)])


def test_the_command_writes_exact_and_learned_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "CASES", {"uneven coverage": Setting(episodes=20, length=10)})
    monkeypatch.setattr(networks, "HIDDEN", (8, 8))
    monkeypatch.setattr(networks, "RATIO_HIDDEN", (8, 8))
    common = ["--out", str(tmp_path), "--cases", "uneven coverage"]
    command.main([*common, "--worlds", "4"])
    command.main([*common, "--worlds", "2", "--learned", "--steps", "5"])
    exact = (tmp_path / "exact-uneven-coverage.md").read_text()
    learned = (tmp_path / "learned-uneven-coverage.md").read_text()
    assert [line.split(" | ")[0] for line in exact.splitlines()[4:11]] == [f"| {name}" for name in SPREADS]
    assert "| DualDICE ratio, matched |" in learned
    assert "correlate with the truth by" in learned
    some = ["--learned", "--steps", "5", "--alphas", "1", "30"]
    command.main([*common, "--worlds", "2", *some, "--estimators", "known"])
    fewer = (tmp_path / "learned-uneven-coverage.md").read_text()
    assert "DualDICE" not in fewer
    assert "| known ratio, shuffled |" in fewer
    assert all(line.split(" | ")[1] in ("1", "30") for line in fewer.splitlines()[4:9])
    with pytest.raises(SappError, match="'known' comes first"):
        command.main([*common, *some, "--estimators", "DualDICE"])
    with pytest.raises(SappError, match="at least 2"):
        command.main([*common, "--worlds", "1"])
