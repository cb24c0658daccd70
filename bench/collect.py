"""Transitions per second: ours in batches, beside a plain Gymnasium loop with the same policy, in the same run.

python bench/collect.py --policy hopper_medium-v2.hdf5     (a D4RL file or an .npz policy; without one: uniform actions)
python bench/collect.py --environment walker2d --transitions 100000 --seconds 20

Both sides play the environment with D4RL's physics and draw stochastic actions; the loop steps one environment, its
policy computes one action at a time with the same code, and every field is kept in a list, as a collection script would
do. The writing of the Minari dataset is measured on its own.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import gymnasium
import numpy as np

from sapp.collect.benchmark import minari_files
from sapp.envs import make
from sapp.envs.blas import one_blas_thread
from sapp.envs.collect import collect
from sapp.envs.gymnasium_specs import environment_spec
from sapp.envs.policies import StochasticPolicy, UniformPolicy, load_policy


def plain_loop(name: str, policy: StochasticPolicy, seconds: float) -> float:
    """Transitions per second of one Gymnasium environment, stepped one by one."""
    environment = gymnasium.make(environment_spec(name), disable_env_checker=True)
    rng = np.random.default_rng(0)
    rows: list[tuple] = []
    observation, _ = environment.reset(seed=0)
    with one_blas_thread():
        began = time.perf_counter()
        while time.perf_counter() - began < seconds:
            action, log_prob = policy.sample(observation[None], rng)
            following, reward, terminated, truncated, _ = environment.step(action[0])
            rows.append((observation, action[0], reward, following, terminated, truncated, log_prob[0]))
            observation = following
            if terminated or truncated:
                observation, _ = environment.reset()
        return len(rows) / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environment", default="hopper", choices=["hopper", "halfcheetah", "walker2d"])
    parser.add_argument("--policy", type=Path, help="a D4RL HDF5 file or an .npz policy")
    parser.add_argument("--transitions", type=int, default=200_000)
    parser.add_argument("--seconds", type=float, default=10.0, help="of the plain loop")
    parser.add_argument("--threads", type=int, default=None, help="simulator threads [one per core]")
    options = parser.parse_args()
    environment = make(options.environment, threads=options.threads)
    policy: StochasticPolicy = UniformPolicy(environment.action_low, environment.action_high)
    if options.policy is not None:
        policy = load_policy(options.policy)
    print(f"{options.environment}, {'uniform actions' if options.policy is None else options.policy.name}, "
          f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}")  # fmt: skip
    plain = plain_loop(options.environment, policy, options.seconds)
    began = time.perf_counter()
    data = collect(policy, environment, options.transitions, seed=0)
    ours = len(data) / (time.perf_counter() - began)
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        minari_files.write(Path(folder) / "set", "sapp/bench/set-v0", [data], {}, "")
        writing = time.perf_counter() - began
    both = len(data) / (len(data) / ours + writing)
    print(f"plain Gymnasium loop   {plain:>10,.0f} transitions per second")
    print(f"sapp, collecting       {ours:>10,.0f}  ({ours / plain:.1f} times)")
    print(f"sapp, with writing     {both:>10,.0f}  ({both / plain:.1f} times)")


if __name__ == "__main__":
    main()
