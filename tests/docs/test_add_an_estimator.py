"""docs/add-an-estimator.md does what it says: the estimator finds a known ratio, trains, is controlled and resumes."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sapp
from sapp.algorithms.config import import_modules
from sapp.core.spec import Batch, Spec
from sapp.envs.point import behaviour_dataset
from sapp.networks.gaussian import TanhGaussian

PAGE = Path(__file__).parents[2] / "docs" / "add-an-estimator.md"
GAMMA = 0.9


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The page's first block of code, imported as the command does."""
    code = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[0]
    file = tmp_path_factory.mktemp("page") / "state_td.py"
    file.write_text(code, encoding="utf-8")
    import_modules([str(file)])
    return sys.modules["state_td"]


def drift(mean: float, rng: np.random.Generator, rows: int, steps: int = 60) -> tuple[np.ndarray, ...]:
    """Rows (s, a, s', t) of s' = 0.8·s + a/2 + noise under a = tanh(mean + 0.5·noise), from s₀ ~ N(0, 0.3²)."""
    state, found = 0.3 * rng.normal(size=rows), []
    for time in range(steps):
        action = np.tanh(mean + 0.5 * rng.normal(size=rows))
        following = 0.8 * state + 0.5 * action + 0.1 * rng.normal(size=rows)
        found.append((state, action, following, np.full(rows, time)))
        state = following
    return tuple(np.concatenate(column).astype(np.float32) for column in zip(*found, strict=True))


def test_it_finds_a_known_ratio(module: ModuleType) -> None:
    rng = np.random.default_rng(0)
    state, action, following, time = drift(0.0, rng, 400)
    rows = len(state)
    starts = np.where(time == 0)[0]
    dice = module.StateTD(hidden=(32, 32), tau=0.05, lr=2e-3)
    spec = Spec(1, 1, jnp.asarray([state.mean()]), jnp.asarray([state.std()]))

    def policy(observation: jax.Array) -> TanhGaussian:
        shape = (*observation.shape[:-1], 1)
        return TanhGaussian(jnp.full(shape, 0.4), jnp.full(shape, jnp.log(0.5)))

    @jax.jit
    def run(learned, keys):
        def step(learned, key):
            row_key, start_key, own = jax.random.split(key, 3)
            rows_ = jax.random.randint(row_key, (256,), 0, rows)
            first = jnp.asarray(starts)[jax.random.randint(start_key, (256,), 0, len(starts))]
            column = lambda values, at: jnp.asarray(values)[at, None]  # noqa: E731
            batch = Batch(
                column(state, rows_), column(action, rows_), jnp.zeros(256), column(following, rows_), jnp.zeros(256),
                column(state, first),
            )  # fmt: skip
            return dice.update(learned, batch, policy, jnp.float32(GAMMA), own)[0], None

        return jax.lax.scan(step, learned, keys)[0]

    learned = run(dice.init(jax.random.PRNGKey(0), spec), jax.random.split(jax.random.PRNGKey(1), 4_000))
    ours, _, _, when = drift(0.4, rng, 4_000)
    edges = np.quantile(state, np.linspace(0, 1, 21))
    theirs, _ = np.histogram(state, edges)
    wanted, _ = np.histogram(np.clip(ours, edges[0], edges[-1]), edges, weights=(1 - GAMMA) * GAMMA**when / 4_000)
    truth = wanted / (theirs / rows)
    at, zero = jnp.asarray(state)[:, None], jnp.zeros(rows)
    each = np.asarray(dice.ratio(learned, Batch(at, at, zero, at, zero, at), policy))
    found = np.histogram(state, edges, weights=each)[0] / theirs  # the mean over a bin's rows, as the truth is
    assert np.corrcoef(np.log(found), np.log(truth))[0, 1] > 0.97
    np.testing.assert_allclose(found, truth, rtol=0.3, atol=0.1)
    assert each.mean() == pytest.approx(1.0, abs=0.2)  # an error of importance weights counts 1/(1−γ) times
    assert not bool(dice.unreliable(learned))


def test_it_trains_with_its_controls_and_resumes_bit_for_bit(module: ModuleType, tmp_path: Path) -> None:
    small = {"hidden": (8,), "batch_size": 8, "action_samples": 1}
    weights = module.StateTD(hidden=(8,))
    named = {
        "state-aware": sapp.CQL(weights=weights, **small),
        "shuffled": sapp.CQL(weights=sapp.ShuffledWeights(weights), **small),
    }
    phases = [sapp.Phase("pretrain", 6, ratio=False, weighted=False), sapp.Phase("joint", 12)]
    options = {"phases": phases, "eval_every": 0, "log_every": 6, "checkpoint_every": 6, "progress": False, "keep": 9}
    run = sapp.train(named, behaviour_dataset(6), out=tmp_path / "run", **options)
    last = run.checkpoints[18]
    whole = last.read_bytes()
    last.unlink()
    assert sapp.resume(tmp_path / "run", progress=False).checkpoints[18].read_bytes() == whole
    means = {row["algorithm"]: float(row["weights/mean"]) for row in run.metrics() if row["step"] == "18"}
    assert means["shuffled"] == pytest.approx(means["state-aware"], abs=0.2)
    assert {row["ratio/unreliable"] for row in run.metrics() if row["phase"] == "joint"} == {"0"}


def test_it_goes_by_its_name(module: ModuleType) -> None:
    weights = sapp.preset("cql", "walker2d-expert-v2", "matched:state-td").weights
    assert isinstance(weights.of, module.StateTD)
    assert (weights.of.f.b0, weights.of.f.b1) == (0.5, 5.0)
