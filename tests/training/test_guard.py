"""The limits of critics' values: what each algorithm may add to a target, and what the loop does beyond them."""

from __future__ import annotations

from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import pytest

import sapp
from sapp.algorithms import EDAC, IQL, SAC, Algorithm, FisherBRC, ReBRAC
from sapp.data import Dataset
from sapp.runs.events import EventKind
from sapp.training.guard import LIMIT, TD, VALUE, Guard, largest_reward


def limit(algorithm: Algorithm, reward: float = 2.0, actions: int = 3, **row: float) -> float | None:
    logged = {name.replace("__", "/"): value for name, value in row.items()}
    return Guard([algorithm], [reward], [actions]).limit(0, {VALUE: 0.0} | logged)


def test_rewards_alone() -> None:
    assert limit(sapp.TD3BC(discount=0.99)) == pytest.approx(200.0)
    assert limit(sapp.TD3BC(discount=0.5)) == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("algorithm", "row", "per_step"),
    [
        (sapp.CQL(alpha=5.0), {}, 2.0 + 1.25),
        (sapp.CQL(alpha=5.0), {"weights__max": 4.0}, 2.0 + 5.0),
        (sapp.CQL(alpha=5.0, alpha_scale="per-critic"), {}, 2.0 + 2.5),
        (SAC(), {"actor__temperature": 0.5, "actor__entropy": -4.0}, 2.0 + 0.5 * (4.0 + 3 * np.log(2))),
        (EDAC(), {"actor__temperature": 0.1, "actor__entropy": 1.0}, 2.0 + 0.1 * (1.0 + 3 * np.log(2))),
        (IQL(), {"critic__reward_scale": 10.0}, 20.0),
        (ReBRAC(critic_penalty=0.1), {}, 2.0 + 1.2),
    ],
)
def test_what_a_step_adds(algorithm: Algorithm, row: dict[str, float], per_step: float) -> None:
    assert limit(algorithm, **row) == pytest.approx(100.0 * per_step)


def test_where_there_is_no_bound() -> None:
    assert limit(FisherBRC()) is None
    assert limit(sapp.TD3BC(discount=1.0)) is None
    assert Guard([sapp.TD3BC()], [1.0], [1]).limit(0, {"loss": 1.0}) is None


@pytest.mark.parametrize(
    ("value", "td", "kind"),
    [
        (100.0, 1.0, None),
        (-124.0, 1.0, None),
        (126.0, 1.0, EventKind.VALUE_BEYOND),
        (-126.0, 1.0, EventKind.VALUE_BEYOND),
        (1_001.0, 1.0, EventKind.VALUE_STOPPED),
        (float("nan"), 1.0, EventKind.VALUE_STOPPED),
        (90.0, 8.9, None),
        (90.0, 9.1, EventKind.TARGETS_LOST),
    ],
)
def test_findings(value: float, td: float, kind: EventKind | None) -> None:
    assert Guard([sapp.TD3BC()], [1.0], [1]).finding(0, {VALUE: value, TD: td, LIMIT: 100.0}) is kind


def logs(reward: float) -> Dataset:
    rng = np.random.default_rng(0)
    observation = rng.normal(size=(201, 3)).astype(np.float32)
    ends = np.arange(200) % 20 == 19
    return Dataset(
        observation[:-1], rng.uniform(-1, 1, (200, 1)).astype(np.float32), np.full(200, reward, np.float32),
        observation[1:], np.zeros(200, bool), ends, name="logs",
    )  # fmt: skip


class Inflated(sapp.CQL):
    """CQL whose critics begin far too high."""

    offset: float = 0.0

    def init(self, key, spec):  # type: ignore[no-untyped-def]
        state = super().init(key, spec)

        def raised(critics):  # type: ignore[no-untyped-def]
            return eqx.tree_at(lambda c: c.mlp.layers[-1].bias, critics, critics.mlp.layers[-1].bias + self.offset)

        return eqx.tree_at(lambda s: (s.critics, s.targets), state, (raised(state.critics), raised(state.targets)))


def test_a_member_beyond_its_limit_is_named_and_far_beyond_it_stopped(tmp_path: Path) -> None:
    """Limits: (1 + 1.25)/(1 − 0.5) = 4.5. The sound member learns on; the run says what happened to the others."""
    sapp.register(Inflated)
    settings = {"hidden": (16, 16), "batch_size": 8, "discount": 0.5, "action_samples": 2}
    run = sapp.train(
        {
            "sound": sapp.CQL(**settings),
            "high": Inflated(**settings, offset=9.0),
            "far": Inflated(**settings, offset=1e4),
        },
        logs(1.0), steps=40, log_every=10, eval_every=0, out=tmp_path / "run", progress=False,
    )  # fmt: skip
    kinds = {(event.member.algorithm, event.kind): event.step for event in run.events()}
    assert ("far", EventKind.VALUE_STOPPED) in kinds
    assert ("high", EventKind.VALUE_BEYOND) in kinds
    assert not [key for key in kinds if key[0] == "sound"]
    assert ("far", EventKind.DIVERGED) not in kinds
    rows = run.metrics()
    assert {row["critic/value_limit"] for row in rows} == {"4.5"}
    assert [int(row["step"]) for row in rows if row["algorithm"] == "far"] == [10]
    assert [int(row["step"]) for row in rows if row["algorithm"] == "sound"] == [10, 20, 30, 40]
    _, learners = run.restore()
    alive = {
        run.members[index].algorithm: bool(learner.alive[position])
        for learner, indices in zip(learners, run.plan.groups(), strict=True)
        for position, index in enumerate(indices)
    }
    assert alive == {"sound": True, "high": True, "far": False}
    jax.block_until_ready(learners)


def test_the_largest_reward_is_in_size() -> None:
    assert largest_reward(logs(-3.0)) == 3.0
