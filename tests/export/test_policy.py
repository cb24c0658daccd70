"""Exported policies: every algorithm's agrees with ours, runs without us, and carries its card."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problems_of_policies import problem

from sapp.algorithms.registry import ALGORITHMS, preset
from sapp.core.errors import SappError
from sapp.core.spec import Spec
from sapp.export import export_policy
from sapp.export.graph import build
from sapp.export.policy import TOLERANCE, compare, in_float32, policy_function
from sapp.runs.problem import Problem

pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_agrees_with_its_file(name: str) -> None:
    algorithm = preset(name, "x")
    discrete = bool(getattr(algorithm, "discrete_actions", False))
    spec = Spec(5, 3, jnp.full(5, 0.3), jnp.full(5, 2.0), discrete)
    # the policy's shapes without the work of making it, filled with random numbers
    shapes = jax.eval_shape(lambda key: algorithm.policy(algorithm.init(key, spec)), jax.random.PRNGKey(1))
    rng = np.random.default_rng(0)

    def fill(leaf):
        if not jnp.issubdtype(leaf.dtype, jnp.floating):
            return jnp.zeros(leaf.shape, leaf.dtype)
        return jnp.asarray(rng.uniform(-0.3, 0.3, leaf.shape) / max(1, leaf.shape[0] if leaf.shape else 1) ** 0.25)

    actor = jax.tree.map(fill, shapes)
    # standard deviations must not be negative
    actor = jax.tree.map(lambda leaf: jnp.abs(leaf) + 0.5 if leaf.shape == (5,) else leaf, actor)
    function = policy_function(in_float32(actor), problem(discrete))
    found = compare(build(function, 5, "action", {}), function, problem(discrete), 200)
    assert found["largest_difference"] <= TOLERANCE


class Halved(eqx.Module):
    """A policy whose action is half of the first three values it sees, at once its own distribution."""

    seen: jax.Array | None = None

    def __call__(self, observation: jax.Array) -> Halved:
        return Halved(observation)

    def mode(self) -> jax.Array:
        return self.seen[:, :3] / 2.0


def test_a_file_takes_observations_and_gives_actions_in_the_logs_units() -> None:
    """By hand: scaled observations 1, −1 and 6, so actions ½, −½ and 3 of ±1, in bounds −2…3, 0…10 and 1…2."""
    content = build(policy_function(Halved(), problem(False)), 5, "action", {})
    session = onnxruntime.InferenceSession(content)
    (action,) = session.run(None, {"observation": np.array([[2.0, 150.0, 9.0, 0.0, 0.0]], np.float32)})
    np.testing.assert_allclose(action, [[1.75, 2.5, 2.0]], rtol=1e-6)
    (action,) = session.run(None, {"observation": np.array([[-9.0, 200.0, -9.0, 0.0, 0.0]], np.float32)})
    np.testing.assert_allclose(action, [[-2.0, 5.0, 1.0]], rtol=1e-6)


def test_the_file_runs_with_onnxruntime_and_numpy_alone(trained: Path, tmp_path: Path) -> None:
    export_policy(trained, tmp_path / "policy.onnx")
    code = (
        "import sys, numpy, onnxruntime\n"
        "s = onnxruntime.InferenceSession('policy.onnx')\n"
        "print(s.run(None, {'observation': numpy.zeros((3, 2), 'float32')})[0].shape)\n"
        "print(sorted({'sapp', 'jax', 'equinox', 'onnx', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.splitlines() == ["(3, 2)", "[]"]


def test_half_precision_policies_leave_in_float32() -> None:
    from sapp.networks import GaussianActor

    actor = GaussianActor(jax.random.PRNGKey(0), 5, 3, (16, 16), "mixed")
    function = policy_function(in_float32(actor), problem(False))
    assert compare(build(function, 5, "action", {}), function, problem(False), 100)["largest_difference"] < 1e-5


def test_a_file_that_disagrees_is_not_written() -> None:
    content = build(lambda x: x[:, :3] * 1.001, 5, "action", {})
    with pytest.raises(SappError, match="differs from our policy"):
        compare(content, lambda x: x[:, :3], problem(False), 10)


def test_policies_of_frames_take_stacks_of_bytes() -> None:
    from sapp.algorithms import REM, ConvScores

    frame = (4, 20, 22)
    algorithm = REM(ensemble=5, network=ConvScores((4, 6), (4, 3), (2, 2), 16))
    spec = Spec(4 * 20 * 22, 3, jnp.float32(0), jnp.float32(1), True, frame=frame)
    actor = jax.jit(lambda key: algorithm.policy(algorithm.init(key, spec)))(jax.random.PRNGKey(0))
    where = Problem("x", None, "f", None, None, 4 * 20 * 22, 3, [0.0], [2.0], 0, 0, 3, frame=list(frame))
    function = policy_function(in_float32(actor), where)
    content = build(function, frame, "action", {})
    assert compare(content, function, where, 50)["inputs"] == 50
    session = onnxruntime.InferenceSession(content)
    assert (session.get_inputs()[0].type, session.get_inputs()[0].shape) == ("tensor(uint8)", ["batch", *frame])
    stacks = np.random.default_rng(1).integers(0, 256, (6, *frame), dtype=np.uint8)
    (action,) = session.run(None, {"observation": stacks})
    np.testing.assert_array_equal(action, function(jnp.asarray(stacks)))
