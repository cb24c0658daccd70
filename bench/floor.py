"""How near a step on a CPU comes to its matrix products alone: all products of the step, with nothing between them.

    python bench/floor.py                    # CQL and SA-CQL with two layers of 256, in turns with their products
    python bench/floor.py --hidden 256,256,256 --json floor.json

The products are read off the program that ``sapp.train`` compiles, with their sizes and how often each is computed.
They are timed one kind after the other, as plain matrices in the layout that suits the library, which lie in the cache:
so their sum is a lower bound of the step's time.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from worker_sapp import SIZES, population_of, task

import sapp
from sapp.runs.phases import Phase
from sapp.training import program
from sapp.weights import DualDICE, Uniform

WEIGHTS = {"CQL": Uniform(), "SA-CQL": DualDICE()}
Product = tuple[int, int, int, int]
"""How many pairs of matrices [rows, inner] and [inner, columns], then rows, columns and inner."""


def products(jaxpr: Any, times: int = 1) -> Counter[Product]:
    """Every product of a program, and how often it is computed."""
    found: Counter[Product] = Counter()
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            left, right = (factor.aval.shape for factor in equation.invars)
            (inner_axes, _), (pair_axes, _) = equation.params["dimension_numbers"]
            inner, pairs = (math.prod(left[axis] for axis in axes) for axes in (inner_axes, pair_axes))
            found[pairs, *(math.prod(side) // (inner * pairs) for side in (left, right)), inner] += times
        often = times * equation.params["length"] if equation.primitive.name == "scan" else times
        for value in equation.params.values():
            for part in value if isinstance(value, list | tuple) else (value,):
                body = getattr(part, "jaxpr", part)
                if hasattr(body, "eqns"):
                    found += products(body, often)
    return found


def products_of(algorithm: sapp.Algorithm) -> Counter[Product]:
    """The products of one step of one member in its joint phase."""
    population, phase = population_of(algorithm), Phase("joint", 0)
    steps = partial(program.steps, (population.kind(phase),), 1)
    inputs, learner = population.inputs(population._feed), population.init()
    sums = population.empty_sums(phase)
    return products(jax.make_jaxpr(steps)((inputs,), (learner,), (sums,), jnp.int32(1)).jaxpr)


def alone(found: Counter[Product]) -> Callable[[int], None]:
    """So many steps' products, and nothing else."""
    key = jax.random.PRNGKey(0)
    calls = []
    multiply = jax.jit(partial(jnp.matmul, precision=jax.lax.Precision.HIGHEST))
    for (pairs, rows, columns, inner), times in found.items():
        factors = jax.random.normal(key, (pairs, rows, inner)), jax.random.normal(key, (pairs, inner, columns))
        calls.append((multiply.lower(*factors).compile(), factors, times))

    def run(steps: int) -> None:
        for function, factors, times in calls:
            for _ in range(steps * times):
                last = function(*factors)
            last.block_until_ready()

    return run


def seconds(run: Callable[[int], None], steps: int) -> float:
    """Of a step."""
    began = time.perf_counter()
    run(steps)
    return (time.perf_counter() - began) / steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hidden", default=",".join(map(str, SIZES["hidden"])))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--steps", type=int, default=40, help="of a turn")
    parser.add_argument("--json", type=Path, help="also append one JSON object a line to this file")
    options = parser.parse_args()
    widths = tuple(int(width) for width in options.hidden.split(","))
    for name, weights in WEIGHTS.items():
        algorithm = sapp.CQL(
            weights=weights, hidden=widths, batch_size=SIZES["batch"], action_samples=SIZES["samples"]
        )  # fmt: skip
        whole, floor = task(algorithm), alone(products_of(algorithm))
        for run in (whole, floor):
            run(3)
        rounds = [(seconds(floor, options.steps), seconds(whole, options.steps)) for _ in range(options.rounds)]
        share = statistics.median(least / step for least, step in rounds)
        least, step = (1e3 * statistics.median(times) for times in zip(*rounds, strict=True))
        print(f"{name}, layers {widths}: products {least:.1f} ms of a step's {step:.1f} ms, {share:.0%}", flush=True)
        if options.json:
            row = {"algorithm": name, "hidden": widths, "products_ms": least, "step_ms": step, "share": share}
            with options.json.open("a") as file:
                file.write(json.dumps(row | {"rounds": options.rounds, "jax": jax.__version__}) + "\n")


if __name__ == "__main__":
    main()
