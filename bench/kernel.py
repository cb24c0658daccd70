"""CQL's critic gradient by itself, computed in each way; products and networks of ratio estimators; UWAC's dropout.

python bench/kernel.py --members 54 --layers 2 3          # on a GPU; on a CPU the fused kernel is interpreted
python bench/kernel.py --products
python bench/kernel.py --dropout --members 18
"""

from __future__ import annotations

import argparse
import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from sapp.algorithms.cql import critic_gradient, fused_critic_gradient, propose
from sapp.algorithms.uwac import ABREAST, UWAC
from sapp.core.spec import Batch
from sapp.kernels import conservative, conservative_tiles
from sapp.kernels.split_fp16 import perceptron
from sapp.networks import MLP, DropoutCritic, StateActionNetwork

OBSERVATIONS, ACTIONS, SAMPLES, WIDTH = 17, 6, 10, 256
PASSES = UWAC().passes


def by(precision):
    """The library's product at a precision."""
    return lambda x, w: jnp.matmul(x, w, precision=precision)


PRODUCTS = {
    "float32, highest": by(jax.lax.Precision.HIGHEST),
    "three TF32": by(jax.lax.DotAlgorithmPreset.TF32_TF32_F32_X3),
    "six bf16": by(jax.lax.DotAlgorithmPreset.BF16_BF16_F32_X6),
    "three bf16": by(jax.lax.DotAlgorithmPreset.BF16_BF16_F32_X3),
    "TF32": by(jax.lax.DotAlgorithmPreset.TF32_TF32_F32),
}


def problem(layers: int, batch: int, precision: str):
    keys = jax.random.split(jax.random.PRNGKey(0), 12)
    network = lambda key: StateActionNetwork(key, OBSERVATIONS, ACTIONS, (WIDTH,) * layers, precision)  # noqa: E731
    critics = jax.vmap(network)(jax.random.split(keys[0], 2))
    normal = lambda key, *shape: jax.random.normal(keys[key], (batch, *shape))  # noqa: E731
    rows = Batch(
        normal(1, OBSERVATIONS), jnp.tanh(normal(2, ACTIONS)), normal(3), normal(4, OBSERVATIONS), jnp.zeros(batch),
        normal(5, OBSERVATIONS),
    )  # fmt: skip
    sources = [(jnp.tanh(normal(k, SAMPLES, ACTIONS)), normal(k + 1, SAMPLES)) for k in (6, 8)]
    weights = jax.random.uniform(keys[11], (batch,))
    return critics, rows, normal(3), propose(*sources, keys[10]), weights, jnp.float32(2.5)


def seconds(function, *arguments, calls: int = 10) -> float:
    """Least time of a call over three rounds of calls that queue up behind one another."""
    jax.block_until_ready(function(*arguments))
    rounds = []
    for _ in range(3):
        began = time.perf_counter()
        for _ in range(calls):
            out = function(*arguments)
        jax.block_until_ready(out)
        rounds.append((time.perf_counter() - began) / calls)
    return min(rounds)


def gradients(layers: int, members: int, batch: int, calls: int) -> None:
    exact = jax.tree.leaves(critic_gradient(*problem(layers, batch, "float32"))[1])
    one = problem(layers, batch, "mixed")
    many = jax.tree.map(lambda leaf: jnp.stack([leaf] * members), one)
    ways = {"plain": critic_gradient} | {
        name: partial(fused_critic_gradient, module.log_sum_exp_gradient)
        for name, module in (("fused", conservative), ("tiles", conservative_tiles))
    }
    for name, gradient in ways.items():
        found = jax.tree.leaves(jax.jit(gradient)(*one)[1])
        worst = max(float(jnp.linalg.norm(a - b) / jnp.linalg.norm(b)) for a, b in zip(found, exact, strict=True))
        took = seconds(jax.jit(jax.vmap(gradient)), *many, calls=calls)
        print(f"{layers} layers  {name}  {1e6 * took / members:9.2f} us a run-step  error {worst:.1e}", flush=True)


def products(members: int) -> None:
    keys = jax.random.split(jax.random.PRNGKey(0))
    x = jax.random.normal(keys[0], (members, 3 * WIDTH, WIDTH))
    w = jax.random.normal(keys[1], (members, WIDTH, WIDTH)) / WIDTH**0.5
    exact = np.asarray(x[0], np.float64) @ np.asarray(w[0], np.float64)
    sizes = jnp.abs(x), jnp.abs(w)  # of positive numbers, so that rounding towards zero shows as a bias
    positive = np.asarray(sizes[0][0], np.float64) @ np.asarray(sizes[1][0], np.float64)
    for name, function in PRODUCTS.items():
        multiply = jax.jit(function)
        there_and_back = jax.jit(lambda x, w, function=function: jax.vjp(function, x, w)[1](function(x, w)))
        try:
            error = np.abs(np.asarray(multiply(x, w)[0]) - exact).max() / np.abs(exact).max()
            bias = np.mean(np.asarray(multiply(*sizes)[0]) / positive - 1.0)
            took, both = seconds(multiply, x, w), seconds(there_and_back, x, w)
        except Exception as reason:  # what this device cannot compute
            print(f"{name}: not here ({str(reason).splitlines()[0][:80]})")
            continue
        print(
            f"{name:20} {1e6 * took / members:7.2f} us a member, with both gradients {1e6 * both / members:7.2f}, "
            f"error {error:.1e}, bias of positive products {bias:.1e}",
            flush=True,
        )


def networks(members: int, layers: int) -> None:
    """A ratio network and its gradient, as float32 computes it and by split float16 operands."""
    network = jax.vmap(lambda key: MLP(key, OBSERVATIONS + ACTIONS, (WIDTH,) * layers, 1))(
        jax.random.split(jax.random.PRNGKey(0), members)
    )
    x = jax.random.normal(jax.random.PRNGKey(1), (members, 3 * WIDTH, OBSERVATIONS + ACTIONS))

    def by_split_fp16(network: MLP, x: jax.Array) -> jax.Array:
        return perceptron(tuple((layer.weight, layer.bias) for layer in network.layers), x)

    routes = {"float32, highest": lambda network, x: network(x), "split float16": by_split_fp16}
    found = {}
    for name, function in routes.items():
        gradient = jax.jit(jax.vmap(jax.grad(lambda n, x, f=function: jnp.mean(jnp.square(f(n, x))))))
        value = jax.jit(jax.vmap(function))
        found[name] = gradient(network, x).layers[1].weight
        print(
            f"{layers} layers  {name:20} {1e6 * seconds(value, network, x) / members:7.2f} us a member, "
            f"gradient {1e6 * seconds(gradient, network, x) / members:7.2f}",
            flush=True,
        )
    one, other = found.values()
    print(f"{layers} layers  gradients differ by {float(jnp.linalg.norm(one - other) / jnp.linalg.norm(one)):.1e}")


def dropout(members: int, batch: int, calls: int) -> None:
    """UWAC's dropout samples: of ten actions per state for the target, and their gradient towards one for the actor."""
    critics = jax.vmap(lambda key: DropoutCritic(key, OBSERVATIONS, ACTIONS, (WIDTH, WIDTH), "tf32"))(
        jax.random.split(jax.random.PRNGKey(0), 2 * members)
    )
    state = jax.random.normal(jax.random.PRNGKey(1), (2 * members, batch, OBSERVATIONS))
    action = jnp.tanh(jax.random.normal(jax.random.PRNGKey(2), (2 * members, batch, SAMPLES, ACTIONS)))
    keys = jax.random.split(jax.random.PRNGKey(3), 2 * members * PASSES).reshape(2 * members, PASSES, -1)

    def plain(critic: DropoutCritic, state: jax.Array, action: jax.Array, keys: jax.Array) -> jax.Array:
        groups = keys.reshape(-1, ABREAST, keys.shape[-1])
        one = jax.vmap(critic.dropout_sample, in_axes=(None, None, 0))
        return jax.lax.map(lambda group: one(state, action, group), groups).reshape(PASSES, *action.shape[:-1])

    def towards(function):
        return jax.grad(lambda action, *rest: jnp.sum(jnp.square(function(rest[0], rest[1], action, rest[2]))))

    found = {}
    for name, function in (("plain", plain), ("fused", DropoutCritic.samples)):
        values = jax.jit(jax.vmap(function))
        gradient = jax.jit(jax.vmap(towards(function)))
        one = action[:, :, 0], critics, state, keys
        found[name] = gradient(*one)
        took = seconds(values, critics, state, action, keys, calls=calls), seconds(gradient, *one, calls=calls)
        value, pull = (1e3 * each / members for each in took)
        print(f"dropout  {name}  {value:7.3f} ms per run-step, gradient {pull:7.3f}")
    error = jnp.linalg.norm(found["plain"] - found["fused"]) / jnp.linalg.norm(found["plain"])
    print(f"dropout  gradients differ by {float(error):.1e}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=54)
    parser.add_argument("--layers", type=int, nargs="*", default=[2, 3])
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--calls", type=int, default=10)
    parser.add_argument("--products", action="store_true", help="measure the products instead")
    parser.add_argument("--dropout", action="store_true", help="measure UWAC's dropout samples instead")
    options = parser.parse_args()
    if options.dropout:
        dropout(options.members, options.batch, options.calls)
        return
    if options.products:
        products(options.members)
        for layers in options.layers:
            networks(options.members, layers)
        return
    for layers in options.layers:
        gradients(layers, options.members, options.batch, options.calls)


if __name__ == "__main__":
    main()
