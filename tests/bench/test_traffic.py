"""What a compiled step launches and moves, read off its text; and which products a program has."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import jax
import jax.numpy as jnp
import pytest

BENCH = Path(__file__).parents[2] / "bench"
Scripts = Callable[[str], ModuleType]
PROGRAM = """
%inner (a: f32[4,8]) -> f32[4] {
  %a = f32[4,8]{1,0} parameter(0)
  ROOT %sum.1 = f32[4]{0} reduce(%a), dimensions={1}
}

%body (all: (f32[4,8], bf16[8,2])) -> (f32[4,8], bf16[8,2]) {
  %all = (f32[4,8]{1,0}, bf16[8,2]{1,0}) parameter(0)
  %x = f32[4,8]{1,0} get-tuple-element(%all), index=0
  %w = bf16[8,2]{1,0} get-tuple-element(%all), index=1
  %input_reduce_fusion.3 = f32[4]{0} fusion(%x), kind=kInput, calls=%inner
  %gemm.7 = (f32[4,2]{1,0}, s8[1024]{0}) custom-call(%x, %w, %x), custom_call_target="__cublas$gemm"
  %pallas_call.2 = (bf16[4,2]{1,0}, f32[4]{0}) custom-call(%w), metadata={op_name="jit(steps)/vmap(last)/pallas_call"}
  ROOT %out = (f32[4,8]{1,0}, bf16[8,2]{1,0}) tuple(%x, %w)
}

ENTRY %main (p: f32[4,8]) -> f32[4,8] {
  %p = f32[4,8]{1,0} parameter(0)
  ROOT %copy.1 = f32[4,8]{1,0} copy(%p)
}
"""


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Scripts:
    """A script of measurements by its name; they import one another."""
    monkeypatch.syspath_prepend(str(BENCH))
    return importlib.import_module


def test_bytes_are_those_of_shapes(script: Scripts) -> None:
    size = script("traffic").size
    assert size("f32[4,8]{1,0}") == 128
    assert size("(bf16[4,2]{1,0}, f32[], pred[7]{0})") == 16 + 4 + 7
    assert size("s8[33554432]{0}") == 0  # a library's workspace


def test_a_step_is_the_body_with_the_most_kernels_and_each_operand_counts_once(script: Scripts) -> None:
    assert script("traffic").launches(PROGRAM) == [
        ("input_reduce_fusion", 16 + 128),
        ("gemm", 32 + 128 + 32),
        ("last", 16 + 16 + 32),
    ]


def test_products_are_found_wherever_they_are_and_counted_as_often_as_they_run(script: Scripts) -> None:
    def program(x: jax.Array, w: jax.Array) -> jax.Array:
        def again(total: jax.Array, _: None) -> tuple[jax.Array, None]:
            return jnp.tanh(total @ w), None

        many = jax.vmap(lambda row: jnp.einsum("ab,cb->ac", row, w))(jnp.stack([x, x, x]))
        return jax.lax.scan(again, x, None, length=5)[0] + many[0]

    found = script("floor").products(jax.make_jaxpr(program)(jnp.ones((4, 8)), jnp.ones((8, 8))).jaxpr)
    assert sum(found.values()) == 6
    assert found[1, 4, 8, 8] == 5  # pairs, rows, columns, inner
    assert found[1, 12, 8, 8] == 1  # one product of all three
