"""Given policies of image games: convolutional networks in npz files of plain arrays, drawn from by their softmax."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from sapp.core.errors import SappError
from sapp.data.loaders.limits import check_npz
from sapp.envs.frames import Act, Frames

NATURE_STRIDES = (4, 2, 1)
"""Strides of the Nature network's three convolutions, where a file does not name its own."""

Layer = tuple[jax.Array, jax.Array]


@dataclass(frozen=True)
class ConvPolicy:
    """Convolutions with valid padding, one dense layer and a head; ReLUs between, pixels divided by 255.

    Attributes:
        convolutions: (weight [out, in, k, k], bias [out]) of each.
        strides: of each.
        dense: weight [out, in] and bias [out].
        head: the same; one output an action.
    """

    convolutions: tuple[Layer, ...]
    strides: tuple[int, ...]
    dense: Layer
    head: Layer

    @property
    def num_actions(self) -> int:
        """How many actions it chooses from."""
        return int(self.head[1].shape[0])

    def takes(self, frame: Sequence[int]) -> bool:
        """Whether its layers fit stacks of a shape (stack, height, width)."""
        try:
            jax.eval_shape(self.logits, jax.ShapeDtypeStruct((1, *frame), jnp.uint8))
        except (TypeError, ValueError):  # how JAX says that shapes do not fit
            return False
        return True

    def logits(self, stacks: jax.Array) -> jax.Array:
        """Scores [B, n] of stacks uint8 [B, stack, H, W]."""
        x = stacks.astype(jnp.float32) / 255.0
        for (weight, bias), stride in zip(self.convolutions, self.strides, strict=True):
            y = jax.lax.conv_general_dilated(
                x, weight, (stride, stride), "VALID", dimension_numbers=("NCHW", "OIHW", "NCHW")
            )
            x = jax.nn.relu(y + bias[:, None, None])
        x = jax.nn.relu(x.reshape(x.shape[0], -1) @ self.dense[0].T + self.dense[1])
        return x @ self.head[0].T + self.head[1]

    def sampler(self, seed: int, temperature: float = 1.0) -> Act:
        """Draws actions from softmax of scores/temperature; a function of the seed and of the calls before.

        Policies trained with an entropy bonus are often nearly uniform where it matters little what they do; a
        temperature below 1 makes them more decided.
        """
        if not temperature > 0:
            raise SappError(f"temperature is {temperature:g}; it must be above 0")
        key = jax.random.PRNGKey(seed)
        calls = iter(range(2**32))

        @jax.jit
        def draw(stacks: jax.Array, call: jax.Array) -> jax.Array:
            return jax.random.categorical(jax.random.fold_in(key, call), self.logits(stacks) / temperature)

        def act(stacks: Frames) -> npt.NDArray[np.int64]:
            return np.asarray(draw(jnp.asarray(stacks), jnp.uint32(next(calls)))).astype(np.int64)

        return act


def load_conv_policy(path: str | Path) -> ConvPolicy:
    """Loads a policy from an npz file.

    It holds c0w [out, in, k, k], c0b, c1w, c1b, … for the convolutions, fw [out, in], fb for the dense layer and aw, ab
    for the head; ``strides`` names the convolutions' (by default 4, 2, 1). Nothing in the file is executed.
    """
    path = Path(path)
    if not path.is_file():
        raise SappError(f"{path}: no such policy file; give an npz file")
    try:
        check_npz(path)
        with np.load(path, allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files}
    except (ValueError, OSError, BadZipFile) as error:
        raise SappError(f"{path}: not a readable npz policy ({error}); save it with numpy.savez") from error
    return _policy(path, arrays)


def _policy(path: Path, arrays: Mapping[str, Any]) -> ConvPolicy:
    count = sum(1 for key in arrays if key[:1] == "c" and key[1:-1].isdigit() and key.endswith("w"))
    names = [*(f"c{number}" for number in range(count)), "f", "a"]
    if missing := [key for name in names for key in (f"{name}w", f"{name}b") if key not in arrays]:
        raise SappError(f"{path}: no array {missing[0]}; see sapp.envs.frame_policies.load_conv_policy")
    strides = tuple(int(stride) for stride in np.atleast_1d(arrays.get("strides", NATURE_STRIDES)))
    if not count or len(strides) != count or min(strides) < 1:
        raise SappError(f"{path}: {count} convolutions and strides {list(strides)}; each has one, of 1 or more")
    width = None
    for name in names:
        weight, bias = np.asarray(arrays[f"{name}w"]), np.asarray(arrays[f"{name}b"])
        shaped = weight.ndim == (4 if name[0] == "c" else 2) and bias.shape == weight.shape[:1]
        # the dense layer's inputs depend on the size of the frames
        if not shaped or (name != "f" and width is not None and weight.shape[1] != width):
            raise SappError(f"{path}: {name}w {weight.shape} and {name}b {bias.shape} do not fit the layers before")
        if not np.isfinite(weight).all() or not np.isfinite(bias).all():
            raise SappError(f"{path}: a weight of {name} is not finite; the file is damaged")
        width = weight.shape[0]
    pairs = [
        (jnp.asarray(arrays[f"{name}w"], jnp.float32), jnp.asarray(arrays[f"{name}b"], jnp.float32)) for name in names
    ]
    return ConvPolicy(tuple(pairs[:-2]), strides, pairs[-2], pairs[-1])
