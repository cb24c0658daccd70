"""How matrix products are computed: one switch for every network, and what each setting means.

A value that is bootstrapped comes back a hundredfold: at γ = 0.99 the fixed point of y = r + γ·Q̄ multiplies whatever
error a product makes each time by γ/(1 − γ) = 99. So no setting rounds a network's output, and none stores what lies
between two layers in fewer than the bits that its products read.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any, Literal, TypeVar, get_args

import jax
import jax.numpy as jnp
from jax import Array

from sapp.core.backend import on_cuda
from sapp.core.errors import SappError

Precision = Literal["auto", "float32", "tf32", "mixed"]
"""How matrix products are computed.

- ``float32``: exactly as float32 has it, everywhere.
- ``tf32``: products' operands are rounded to TF32 (11 significant bits), to the nearest; sums, what is kept between
  layers, and the last layer of networks with one output (critics) are float32.
- ``mixed``: as ``tf32``; and CQL's critics score the thirty proposals of the penalty, from which nothing is
  bootstrapped, with bfloat16 operands (8 significant bits), on an NVIDIA GPU by a kernel of sapp's.
- ``auto``: ``mixed`` on an NVIDIA GPU, else ``float32``.
"""

TF32, BF16 = 10, 7
"""Bits of the mantissa; both have float32's exponent."""
EXPONENT = 8
T = TypeVar("T")


def check_precision(precision: str) -> None:
    """Refuse an unknown precision by name."""
    if precision not in get_args(Precision):
        raise SappError(f"precision {precision!r} is unknown: use one of {', '.join(get_args(Precision))}")


def resolve(precision: Precision) -> Precision:
    """What ``auto`` means on this machine; any other setting is itself."""
    if precision != "auto":
        return precision
    return "mixed" if on_cuda() else "float32"


def resolved(tree: T) -> T:
    """The same algorithm (or network structure) with every ``auto`` in a field ``precision`` resolved."""
    if not dataclasses.is_dataclass(tree) or isinstance(tree, type):
        return tree
    changes: dict[str, Any] = {}
    for field in dataclasses.fields(tree):
        value = getattr(tree, field.name)
        if field.name == "precision" and value == "auto":
            changes[field.name] = resolve(value)
        elif (new := resolved(value)) is not value:
            changes[field.name] = new
    return dataclasses.replace(tree, **changes) if changes else tree


def lax_precision(precision: Precision) -> jax.lax.Precision:
    """What a setting means to JAX, whose default on an NVIDIA GPU is TF32."""
    return jax.lax.Precision.HIGHEST if resolve(precision) == "float32" else jax.lax.Precision.DEFAULT


def matmul(x: Array, weight: Array, precision: Precision) -> Array:
    """Product ``x @ weight`` at the given precision, float32."""
    x, weight = operands(precision, x, weight)
    return result(precision, jnp.matmul(x, weight, precision=lax_precision(precision)))


def last_product(x: Array, weight: Array, precision: Precision) -> Array:
    """As ``matmul``, for a network's last layer: where it has one output, exactly as float32 has it."""
    if weight.shape[-1] > 1 or resolve(precision) == "float32":
        return matmul(x, weight, precision)
    return jnp.sum(x * weight[:, 0], axis=-1, keepdims=True)


def operands(precision: Precision, *arrays: Array) -> tuple[Array, ...]:
    """Operands of a product as a setting wants them; ``result`` takes the product."""
    rounds = resolve(precision) != "float32" and not on_cuda()
    return tuple(rounded(array, TF32) for array in arrays) if rounds else arrays


def result(precision: Precision, product: Array) -> Array:
    """A product of ``operands``, so that the gradient's products have rounded operands, too."""
    return product if resolve(precision) == "float32" or on_cuda() else _rounded_gradient(product, TF32)


def rough_matmul(x: Array, weight: Array) -> Array:
    """Product of bfloat16 operands with a float32 sum, rounded to bfloat16 like all that is kept between layers."""
    if on_cuda():
        return half_product(x, weight)
    product = jnp.matmul(rounded(x, BF16), rounded(weight, BF16), precision=jax.lax.Precision.HIGHEST)
    return _rounded_gradient(rounded(product, BF16), BF16)


@jax.custom_vjp
def half_product(x: Array, weight: Array) -> Array:
    """``rough_matmul`` of x [..., in] and weight [in, out] by products whose operands are bfloat16 arrays.

    Its gradient's operands are, too: left to itself, the derivative would multiply with float32 ones.
    """
    return _half_product_forward(x, weight)[0]


def _half_product_forward(x: Array, weight: Array) -> tuple[Array, tuple[Array, Array]]:
    x, weight = x.astype(jnp.bfloat16), weight.astype(jnp.bfloat16)
    product = jnp.matmul(x, weight, preferred_element_type=jnp.float32)
    return rounded(product, BF16), (x, weight)


def _half_product_backward(operands: tuple[Array, Array], gradient: Array) -> tuple[Array, Array]:
    x, weight = operands
    gradient = gradient.astype(jnp.bfloat16)
    of_x = jnp.matmul(gradient, weight.T, preferred_element_type=jnp.float32)
    rows, columns = x.reshape(-1, x.shape[-1]), gradient.reshape(-1, gradient.shape[-1])
    return of_x, jnp.matmul(rows.T, columns, preferred_element_type=jnp.float32)


half_product.defvjp(_half_product_forward, _half_product_backward)


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def rounded(x: Array, bits: int) -> Array:
    """``x`` to the nearest number of so many mantissa bits; to gradients it is the identity.

    On an NVIDIA GPU a product in TF32 itself rounds like this. Elsewhere it is done here, so that ``tf32`` means the
    same.
    """
    return jax.lax.reduce_precision(x, EXPONENT, bits)


@rounded.defjvp
def _rounded_jvp(bits: int, primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return rounded(primals[0], bits), tangents[0]


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def _rounded_gradient(y: Array, bits: int) -> Array:
    """``y`` as it is, with its gradient rounded: that is an operand of the next products on the way back."""
    return y


@_rounded_gradient.defjvp
def _rounded_gradient_jvp(bits: int, primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return primals[0], jax.lax.reduce_precision(tangents[0], EXPONENT, bits)
