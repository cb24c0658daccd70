"""Speed of online training: updates per second by precision and number of members, and the simulators beside them.

python bench/online.py --members 9 12 18 --precision tf32 mixed --padded both --seconds 4
"""

from __future__ import annotations

import argparse
import time

import jax
import jax.numpy as jnp

from sapp.algorithms.sac import SAC
from sapp.collect.sac_learners import Learners
from sapp.collect.simulation import Simulation
from sapp.envs import make
from sapp.envs.blas import one_blas_thread

SIZES = {"mixed": [(17, 6), (11, 3), (17, 6)], "alike": [(17, 6)], "small": [(11, 3)]}


def updates(members: int, precision: str, kind: str, chunk: int, seconds: float, rows: int = 200_000) -> dict:
    sizes = (SIZES[kind] * members)[:members]
    learners = Learners(SAC(precision=precision), sizes, range(members))
    state = learners.init()
    buffer = jax.random.normal(jax.random.PRNGKey(0), (members, rows, learners.row_width), jnp.float32)
    began = time.perf_counter()
    state, _ = learners.learn(state, buffer, 0, rows, chunk, rows)
    jax.block_until_ready(state)
    compiled = time.perf_counter() - began
    began, done = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        state, _ = learners.learn(state, buffer, done, rows, chunk, rows)
        jax.block_until_ready(state)
        done += chunk
    took = time.perf_counter() - began
    return {"compile_s": compiled, "us_per_update": 1e6 * took / done}


def simulate(name: str, members: int, rows: int, rounds: int, threads: int) -> float:
    environment = make(name, threads=threads)
    sizes = [(environment.observation_size, environment.action_size)] * members
    learners = Learners(SAC(), sizes, range(members))
    policies = learners.policies(learners.init())
    simulation = Simulation(environment, range(members), rows)
    with one_blas_thread():
        simulation.play(policies, 0, rounds)
        began = time.perf_counter()
        for chunk in range(1, 6):
            simulation.play(policies, chunk, rounds)
        return (time.perf_counter() - began) / 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, nargs="+", default=[9, 12, 18])
    parser.add_argument("--precision", nargs="+", default=["tf32", "mixed"])
    parser.add_argument("--kind", nargs="+", default=["mixed"], choices=list(SIZES))
    parser.add_argument("--chunk", type=int, default=256)
    parser.add_argument("--rows", type=int, default=16, help="environments of a member")
    parser.add_argument("--threads", type=int, default=5, help="simulator threads of an environment")
    parser.add_argument("--seconds", type=float, default=4.0)
    options = parser.parse_args()
    print(f"device: {jax.devices()[0].device_kind}")
    for kind in options.kind:
        for precision in options.precision:
            for members in options.members:
                found = updates(members, precision, kind, options.chunk, options.seconds)
                print(
                    f"{kind:>6} {precision:>8} {members:>3} members: {found['us_per_update']:8.1f} us an update "
                    f"(compile {found['compile_s']:.1f} s)",
                    flush=True,
                )
    rounds = options.chunk // options.rows
    for name in ("halfcheetah", "hopper", "walker2d"):
        seconds = simulate(name, max(1, options.members[0] // 3), options.rows, rounds, options.threads)
        print(f"{name}: {1e3 * seconds:.1f} ms to simulate a chunk of {options.chunk} steps per member", flush=True)


if __name__ == "__main__":
    main()
