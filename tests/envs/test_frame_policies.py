"""Given policies of image games: their scores by hand, what they draw, and files that are none."""

from __future__ import annotations

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from sapp.core.errors import SappError
from sapp.envs.frame_policies import load_conv_policy


def arrays(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Two convolutions over two 9×9 frames: 9 → 4 → 3, so the dense layer sees 3 · 3 · 3 numbers."""
    shapes = {"c0w": (4, 2, 3, 3), "c1w": (3, 4, 2, 2), "fw": (5, 27), "aw": (3, 5)}
    found = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    found |= {f"{name[:-1]}b": rng.normal(size=shape[0]).astype(np.float32) for name, shape in shapes.items()}
    return found | {"strides": np.array([2, 1])}


def by_hand(weights: dict[str, np.ndarray], stack: np.ndarray) -> np.ndarray:
    """Scores of one stack [2, 9, 9], pixel by pixel."""
    x = stack / 255.0
    for name, stride in (("c0", 2), ("c1", 1)):
        weight, bias = weights[f"{name}w"], weights[f"{name}b"]
        size, kernel = (x.shape[1] - weight.shape[2]) // stride + 1, weight.shape[2]
        y = np.empty((len(bias), size, size))
        for i in range(size):
            for j in range(size):
                patch = x[:, i * stride : i * stride + kernel, j * stride : j * stride + kernel]
                y[:, i, j] = (weight * patch).sum((1, 2, 3)) + bias
        x = np.maximum(y, 0.0)
    hidden = np.maximum(weights["fw"] @ x.reshape(-1) + weights["fb"], 0.0)
    return weights["aw"] @ hidden + weights["ab"]


def save(path: Path, **changes: np.ndarray | None) -> Path:
    kept = {k: v for k, v in (arrays(np.random.default_rng(0)) | changes).items() if v is not None}
    np.savez(path, **kept)
    return path


def test_scores_are_those_of_the_arrays(tmp_path: Path) -> None:
    policy = load_conv_policy(save(tmp_path / "policy.npz"))
    assert policy.num_actions == 3
    stacks = np.random.default_rng(1).integers(0, 256, (4, 2, 9, 9)).astype(np.uint8)
    wanted = [by_hand(arrays(np.random.default_rng(0)), stack) for stack in stacks]
    np.testing.assert_allclose(policy.logits(jnp.asarray(stacks)), wanted, rtol=1e-5, atol=1e-5)


def test_draws_follow_the_softmax_and_the_seed(tmp_path: Path) -> None:
    policy = load_conv_policy(save(tmp_path / "policy.npz"))
    stack = np.random.default_rng(1).integers(0, 256, (2, 9, 9)).astype(np.uint8)
    stacks = np.broadcast_to(stack, (20_000, 2, 9, 9))
    act = policy.sampler(3)
    first = act(stacks)
    scores = by_hand(arrays(np.random.default_rng(0)), stack)
    wanted = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
    np.testing.assert_allclose(np.bincount(first, minlength=3) / len(first), wanted, atol=0.012)  # 3 standard errors
    assert (act(stacks) != first).any()
    np.testing.assert_array_equal(policy.sampler(3)(stacks), first)


def test_files_that_hold_no_policy_are_named(tmp_path: Path) -> None:
    with pytest.raises(SappError, match="no such policy file"):
        load_conv_policy(tmp_path / "nothing.npz")
    (tmp_path / "text.npz").write_text("no archive")
    with pytest.raises(SappError, match="not a readable npz policy"):
        load_conv_policy(tmp_path / "text.npz")
    wrong: list[tuple[dict[str, np.ndarray | None], str]] = [
        ({"c1b": None}, "no array c1b"),
        ({"strides": None}, r"2 convolutions and strides \[4, 2, 1\]"),
        ({"ab": np.zeros(4, np.float32)}, "aw"),
        ({"c1w": np.zeros((3, 5, 2, 2), np.float32)}, "c1w"),
        ({"fb": np.full(5, np.nan, np.float32)}, "f is not finite"),
    ]
    for changes, message in wrong:
        with pytest.raises(SappError, match=message):
            load_conv_policy(save(tmp_path / "wrong.npz", **changes))
