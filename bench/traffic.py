"""What a step launches on an H200 and how many bytes it moves, found without one: its program is compiled, not run.

    python -m venv cuda && cuda/bin/pip install "jax[cuda13]" .
    JAX_SKIP_CUDA_CONSTRAINTS_CHECK=1 cuda/bin/python bench/traffic.py --members 54 --kernel fused tiles

Prints the launches of a step, the gigabytes that its kernels read and write, and how many microseconds per run-step
these take at full bandwidth: a lower bound, which products that are bound by arithmetic exceed. An operand of which a
kernel reads only a part counts whole. The compiler tries out configurations on the GPU it compiles for; here it has
none, so some products may be made otherwise than there.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import sys
from collections import Counter
from pathlib import Path

import jax
import jax.numpy as jnp
from jax.experimental import topologies
from jax.sharding import SingleDeviceSharding
from population import PHASES, dataset

import sapp
from sapp.runs.learners import Sums
from sapp.runs.members import Member
from sapp.runs.phases import Phase
from sapp.training import program
from sapp.training.device_data import DeviceData, spec_of
from sapp.training.population import STRIDE, Population
from sapp.weights import DualDICE, Uniform

WEIGHTS = {"none": Uniform(), "dualdice": DualDICE()}
BANDWIDTH = 4.8e12
H200 = """
gpu_device_info {
  threads_per_block_limit: 1024
  threads_per_warp: 32
  shared_memory_per_block: 49152
  shared_memory_per_core: 233472
  threads_per_core_limit: 2048
  core_count: 132
  fpus_per_core: 128
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  memory_bandwidth: 4800000000000
  l2_cache_size: 52428800
  clock_rate_ghz: 1.98
  device_memory_size: 150000000000
  shared_memory_per_block_optin: 232448
  cuda_compute_capability { major: 9 minor: 0 feature_extension: ACCELERATED_FEATURES }
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 12 }
runtime_version { major: 13 }
device_description_str: "NVIDIA H200"
"""
# s8: the libraries' workspaces, which they hardly touch
BYTES = {"pred": 1, "u8": 1, "f16": 2, "bf16": 2, "u16": 2, "f32": 4, "s32": 4, "u32": 4, "f64": 8, "s64": 8}
FREE = {"parameter", "get-tuple-element", "tuple", "constant", "bitcast", "while", "after-all"}


def pretend_cuda() -> None:
    """Let every module of sapp make the program that it makes on an NVIDIA GPU."""
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("sapp") and hasattr(module, "on_cuda"):
            module.on_cuda = lambda: True
    jax.default_backend = lambda: "cuda"


def compiled(population: Population, phase: Phase, device: object) -> str:
    """The program of a population's steps for a device, as the compiler prints it."""
    there = SingleDeviceSharding(device)

    def on(tree: object) -> object:
        return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=there), tree)

    kind, learner = population.kind(phase), population.group.shapes()
    inputs = population.inputs(population._feed)
    names = jax.eval_shape(lambda *given: program.first_metrics(kind, *given), inputs, learner)
    row = jax.ShapeDtypeStruct((len(population.members),), jnp.float32)
    sums = Sums(dict.fromkeys(names, row), row)
    steps = jax.jit(program.steps, **program.COMPILED)
    lowered = steps.lower(
        (kind,), STRIDE, (on(inputs),), (on(learner),), (on(sums),), on(jax.ShapeDtypeStruct((), jnp.int32))
    )
    return lowered.compile(compiler_options=program.SIDE_BY_SIDE | {"xla_gpu_autotune_level": 0}).as_text()


def size(shape: str) -> int:
    """Bytes of a shape as the compiler prints it, a tuple's parts summed."""
    total = 0
    for kind, sides in re.findall(r"(\w+)\[([\d,]*)\]", shape):
        count = BYTES.get(kind, 0)
        for side in filter(None, sides.split(",")):
            count *= int(side)
        total += count
    return total


def launches(text: str) -> list[tuple[str, int]]:
    """The kernels of one step by name, without numbers, and the bytes that each reads and writes."""
    bodies: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if opening := re.match(r"^(?:ENTRY )?%?([\w.\-]+) \(.*\{$", line):
            lines = bodies.setdefault(opening[1], [])
        else:
            lines.append(line.strip())
    step = max(bodies.values(), key=lambda body: sum(" fusion(" in line or "custom-call(" in line for line in body))
    found = [re.match(r"(?:ROOT )?%([\w.\-]+) = (\(.*?\)|\S+) ([\w\-]+)\((.*?)\)(?:,|$)(.*)", line) for line in step]
    made = {each[1]: each for each in found if each}
    kernels = []
    for name, each in made.items():
        if each[3] in FREE:
            continue
        read = {other for other in re.findall(r"%([\w.\-]+)", each[4]) if other in made}
        moved = size(each[2]) + sum(size(made[other][2]) for other in read)
        label = re.search(r'op_name="[^"]*?(\w+)\)*/pallas_call"', each[5])
        kernels.append((label[1] if label else re.sub(r"[._]\d+", "", name), moved))
    return kernels


def report(title: str, kernels: list[tuple[str, int]], members: int, most: int) -> None:
    """Print what a step does in all, and its kinds of kernels by their bytes."""
    floor = 1e6 / BANDWIDTH / members
    moved = sum(size for _, size in kernels)
    print(f"{title}: {len(kernels)} launches, {moved / 1e9:.2f} GB, {moved * floor:.1f} us per run-step or more")
    total, count = Counter[str](), Counter(name for name, _ in kernels)
    for name, own in kernels:
        total[name] += own
    for name, own in total.most_common(most):
        print(f"{own * floor:8.2f} us  {count[name]:3} launches  {name}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, nargs="+", default=[54])
    parser.add_argument("--hidden", nargs="+", default=["256,256"])
    parser.add_argument("--kernel", nargs="+", default=["fused"])
    parser.add_argument("--weights", nargs="+", choices=sorted(WEIGHTS), default=["dualdice"])
    parser.add_argument("--precision", default="mixed")
    parser.add_argument("--most", type=int, default=12, help="kinds of kernels shown")
    parser.add_argument("--json", type=Path, help="also append one JSON object a line to this file")
    options = parser.parse_args()
    jax.config.update("jax_platforms", "cpu,cuda")
    device = topologies.get_topology_desc("", "cuda", topology="1x1x1", target_config=H200).devices[0]
    data = dataset(17, 6, 100_000)
    feed, specs = DeviceData.of([data]), [spec_of(data)]
    pretend_cuda()
    for count, hidden, weights, kernel in itertools.product(
        options.members, options.hidden, options.weights, options.kernel
    ):
        widths = tuple(int(width) for width in hidden.split(","))
        algorithm = sapp.CQL(weights=WEIGHTS[weights], hidden=widths, precision=options.precision, kernel=kernel)
        members = [Member(str(seed), algorithm, 0, seed) for seed in range(count)]
        kernels = launches(compiled(Population(members, feed, specs), PHASES["joint"], device))
        report(f"{count} members  {hidden}  {weights}  {kernel}", kernels, count, options.most)
        if options.json:
            row = {"members": count, "hidden": hidden, "weights": weights, "kernel": kernel, "launches": len(kernels)}
            row |= {"bytes": sum(size for _, size in kernels), "jax": jax.__version__}
            with options.json.open("a") as file:
                file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
