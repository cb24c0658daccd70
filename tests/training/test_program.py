"""A population spread over several devices learns what it learns on one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = """
import sys
import jax, numpy as np
import sapp
from sapp.data import Dataset
from sapp.runs.run import Run
rng = np.random.default_rng(0)
observation = rng.normal(size=(301, 3))
action = np.tanh(observation[:-1, :1] + rng.normal(size=(300, 1)))
data = Dataset(observation[:-1], action, action[:, 0] * observation[:-1, 1], observation[1:],
               rng.random(300) < 0.05, np.arange(300) % 20 == 19, name="toy")
dice = sapp.DualDICE(hidden=(16, 16), nu_lr=1e-3, zeta_lr=1e-3)
algorithm = sapp.CQL(weights=dice, hidden=(16, 16), batch_size=32, action_samples=2)
options = dict(seeds=8, steps=30, phases=sapp.sa_protocol(30, 5, 5), eval_every=0, log_every=10, progress=False)
run = sapp.train(algorithm, data, out=sys.argv[1], **options)
_, learners = run.restore()
leaves = jax.tree.leaves(learners[0])
np.savez(sys.argv[2], *[np.asarray(leaf) for leaf in leaves], devices=len(jax.devices()))
"""


def train(folder: Path, devices: int) -> dict[str, np.ndarray]:
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={devices}"
    environment = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    file = folder / f"{devices}.npz"
    command = [sys.executable, "-c", SCRIPT, str(folder / f"run{devices}"), str(file)]
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=300)
    with np.load(file) as arrays:
        return dict(arrays)


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> dict[str, np.ndarray]:
    return train(tmp_path_factory.mktemp("one"), 1)


@pytest.mark.parametrize("devices", [4, 3])
def test_members_on_several_devices_equal_those_on_one(
    one: dict[str, np.ndarray], tmp_path: Path, devices: int
) -> None:
    """Eight members: two each on four devices; three do not divide them, so two devices take four each."""
    several = train(tmp_path, devices)
    assert (one["devices"], several["devices"]) == (1, devices)
    assert one.keys() == several.keys()
    for name in one.keys() - {"devices"}:
        np.testing.assert_allclose(several[name], one[name], rtol=1e-4, atol=2e-6, err_msg=name)
