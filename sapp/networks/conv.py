"""Convolutional encoders of stacked frames, laid out for populations: every layer is one matrix product per member."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from sapp.core.errors import SappError
from sapp.core.precision import Precision, check_precision, lax_precision, operands, resolve, result
from sapp.core.spec import Spec
from sapp.networks.action_scores import MLPScores, Scores
from sapp.networks.mlp import Linear, Start

Method = Literal["patches", "conv"]
"""How a layer is computed: as a product of image patches with the weights, or by the library's convolution."""


class Conv(eqx.Module):
    """Convolution with valid padding over images [B, H, W, C], initialised as ``Linear`` is.

    Members of a population have weights of their own. ``vmap`` makes a grouped convolution of theirs, which libraries
    compute slowly; patches times weights becomes a batched matrix product, which they compute well.
    """

    linear: Linear
    kernel: int = eqx.field(static=True)
    stride: int = eqx.field(static=True)
    method: Method = eqx.field(static=True)

    def __init__(
        self, key: Array, inputs: int, outputs: int, kernel: int, stride: int, method: Method = "patches",
        start: Start = "torch",
    ) -> None:  # fmt: skip
        self.linear = Linear(key, kernel * kernel * inputs, outputs, start=start)
        self.kernel, self.stride, self.method = kernel, stride, method

    def __call__(self, x: Array, precision: Precision) -> Array:
        """Map images [B, H, W, C] to [B, H', W', outputs]."""
        if self.method == "patches":
            return self.linear(patches(x, self.kernel, self.stride), precision)
        x, weight = operands(precision, x, self.weight())
        y = jax.lax.conv_general_dilated(
            x, weight, (self.stride, self.stride), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"),
            precision=lax_precision(precision),
        )  # fmt: skip
        return result(precision, y) + self.linear.bias

    def weight(self) -> Array:
        """The kernel in its usual order [kernel, kernel, inputs, outputs]; ``linear`` holds it in that of patches."""
        block = _block(self.kernel, self.stride)
        outer, outputs = self.kernel // block, self.linear.weight.shape[1]
        split = self.linear.weight.reshape(outer, outer, block, block, -1, outputs)
        return split.transpose(0, 2, 1, 3, 4, 5).reshape(self.kernel, self.kernel, -1, outputs)


def _block(kernel: int, stride: int) -> int:
    return stride if kernel % stride == 0 else 1


def output_size(size: int, kernel: int, stride: int) -> int:
    """Positions of a kernel along an axis, without padding."""
    return (size - kernel) // stride + 1


def patches(x: Array, kernel: int, stride: int) -> Array:
    """What a kernel sees at each of its positions: images [B, H, W, C] → [B, H', W', kernel²·C].

    Where the stride divides the kernel, pixels are first gathered into blocks of stride × stride, so that neighbouring
    patches are a few shifted copies of the image of blocks (4 instead of 64 for a kernel of 8 at stride 4).
    """
    batch, height, width, channels = x.shape
    rows, columns = output_size(height, kernel, stride), output_size(width, kernel, stride)
    block = _block(kernel, stride)
    if block > 1:
        high, wide = rows - 1 + kernel // block, columns - 1 + kernel // block
        x = x[:, : high * block, : wide * block].reshape(batch, high, block, wide, block, channels)
        x = x.transpose(0, 1, 3, 2, 4, 5).reshape(batch, high, wide, block * block * channels)
    size, step = kernel // block, stride // block
    shifted = [
        x[:, i : i + (rows - 1) * step + 1 : step, j : j + (columns - 1) * step + 1 : step]
        for i in range(size)
        for j in range(size)
    ]
    return jnp.concatenate(shifted, axis=-1)


class Encoder(eqx.Module):
    """Stacks of frames, uint8 [B, stack, H, W], to features [B, F]: convolutions, then one dense layer; ReLUs."""

    layers: tuple[Conv, ...]
    dense: Linear
    precision: Precision = eqx.field(static=True)

    def __call__(self, stacks: Array) -> Array:
        """Features [B, F]."""
        # pixels are moved as bytes; what is wider than a byte is made last, where the first product reads it
        x = stacks.transpose(0, 2, 3, 1)
        for number, layer in enumerate(self.layers):
            x = jax.nn.relu(_scaled(x, layer, self.precision) if number == 0 else layer(x, self.precision))
        x = x.reshape(x.shape[0], -1)
        return jax.nn.relu(self.dense(x, self.precision))


def _scaled(x: Array, layer: Conv, precision: Precision) -> Array:
    """The first layer on bytes divided by 255."""
    if layer.method == "patches":
        return layer.linear(patches(x, layer.kernel, layer.stride).astype(jnp.float32) / 255.0, precision)
    return layer(x.astype(jnp.float32) / 255.0, precision)


class ImageScores(eqx.Module):
    """Scores of all actions from stacks of frames: an encoder and one linear head; see ``networks.scores``."""

    encoder: Encoder
    head: Scores

    def __call__(self, stacks: Array) -> Array:
        """Scores [B, n]: the mean over heads."""
        return self.head(self.encoder(stacks))

    def many(self, stacks: Array) -> Array:
        """Every head's scores [B, n, K]."""
        return self.head.many(self.encoder(stacks))

    def features(self, stacks: Array) -> Array:
        """What the head sees [B, F]."""
        return self.encoder(stacks)


class ConvScores(eqx.Module):
    """The structure of a network that scores all actions from stacks of frames; by default the Nature CNN.

    ``channels``, ``kernels`` and ``strides`` name one convolution each, all with valid padding; ``features`` is the
    width of the dense layer after them. Small images take small kernels, as in the example.

    Examples:
        >>> import sapp
        >>> small = sapp.ConvScores(channels=(16, 16), kernels=(3, 3), strides=(1, 1), features=64)
        >>> sapp.DiscreteCQL(network=small).network.features
        64
    """

    channels: tuple[int, ...] = eqx.field(static=True, default=(32, 64, 64))
    kernels: tuple[int, ...] = eqx.field(static=True, default=(8, 4, 3))
    strides: tuple[int, ...] = eqx.field(static=True, default=(4, 2, 1))
    features: int = eqx.field(static=True, default=512)
    precision: Precision = eqx.field(static=True, default="auto")
    method: Method = eqx.field(static=True, default="patches")
    start: Start = eqx.field(static=True, default="torch")

    def __check_init__(self) -> None:
        check_precision(self.precision)
        if self.method not in get_args(Method):
            raise SappError(f"ConvScores: method {self.method!r} is unknown: use patches or conv")
        if self.start not in get_args(Start):
            raise SappError(f"ConvScores: start {self.start!r} is unknown: use torch or he")
        if min(*self.channels, *self.kernels, *self.strides, self.features) < 1:
            raise SappError("ConvScores: channels, kernels, strides and features must be 1 or more")

    def encoder(self, key: Array, frame: Sequence[int]) -> Encoder:
        """A fresh encoder for stacks of a shape (stack, height, width)."""
        # checked here, not on construction: options change one of the three at a time
        if not self.channels or not len(self.channels) == len(self.kernels) == len(self.strides):
            raise SappError("ConvScores: channels, kernels and strides name one layer each and at least one in all")
        inputs, height, width = frame
        keys = jax.random.split(key, len(self.channels) + 1)
        layers = []
        for layer_key, outputs, kernel, stride in zip(keys, self.channels, self.kernels, self.strides, strict=False):
            if min(height, width) < kernel:
                raise SappError(
                    f"ConvScores: frames of {frame[1]} by {frame[2]} are too small for kernels "
                    f"{list(self.kernels)} at strides {list(self.strides)}; use smaller ones"
                )
            layers.append(Conv(layer_key, inputs, outputs, kernel, stride, self.method, self.start))
            height, width = output_size(height, kernel, stride), output_size(width, kernel, stride)
            inputs = outputs
        dense = Linear(keys[-1], height * width * inputs, self.features, start=self.start)
        return Encoder(tuple(layers), dense, resolve(self.precision))

    def build(self, key: Array, spec: Spec, heads: int = 1) -> Any:
        """A fresh network for a problem of frames."""
        if spec.frame is None:
            raise SappError("ConvScores: the observations are vectors, not frames; use MLPScores")
        encoder_key, head_key = jax.random.split(key)
        head = Linear(head_key, self.features, spec.action_size * heads)
        return ImageScores(self.encoder(encoder_key, spec.frame), Scores(head, heads, resolve(self.precision)))


class DefaultScores(eqx.Module):
    """``MLPScores`` for vectors and ``ConvScores`` for frames, whichever a problem has: one preset serves both.

    Attributes:
        hidden: layer sizes, for vectors.
        channels: outputs of each convolution, for frames.
        kernels: height and width of each convolution's patches.
        strides: of each convolution.
        features: width of the dense layer after the convolutions.
        precision: of matrix products: auto, float32, tf32 or mixed.
        method: how convolutions are computed: patches (as matrix products) or conv.
        start: initial weights of the encoder: torch (PyTorch's) or he (larger; escapes the flat start of Pong sooner).
    """

    hidden: tuple[int, ...] = eqx.field(static=True, default=(256, 256))
    channels: tuple[int, ...] = eqx.field(static=True, default=(32, 64, 64))
    kernels: tuple[int, ...] = eqx.field(static=True, default=(8, 4, 3))
    strides: tuple[int, ...] = eqx.field(static=True, default=(4, 2, 1))
    features: int = eqx.field(static=True, default=512)
    precision: Precision = eqx.field(static=True, default="auto")
    method: Method = eqx.field(static=True, default="patches")
    start: Start = eqx.field(static=True, default="torch")

    def __check_init__(self) -> None:
        self._vectors(), self._frames()

    def _vectors(self) -> MLPScores:
        return MLPScores(self.hidden, self.precision)

    def _frames(self) -> ConvScores:
        return ConvScores(
            self.channels, self.kernels, self.strides, self.features, self.precision, self.method, self.start
        )

    def build(self, key: Array, spec: Spec, heads: int = 1) -> Any:
        """A fresh network for a problem of either kind."""
        return (self._vectors() if spec.frame is None else self._frames()).build(key, spec, heads)
