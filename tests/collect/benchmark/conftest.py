from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_policies import random_policy

from sapp.envs.policy_files import save_policies

STEPS = (500, 1_000, 2_000, 4_000)


@pytest.fixture(scope="session")
def policies(tmp_path_factory) -> Path:
    """A folder as the package ships it, with four small random policies for hopper."""
    folder = tmp_path_factory.mktemp("policies")
    names = [f"step-{step:010d}" for step in STEPS]
    save_policies(
        folder / "hopper.safetensors", {name: random_policy(i) for i, name in enumerate(names)}, {}, half=True
    )
    listed = [{"name": name, "step": step, "score": 1.0} for name, step in zip(names, STEPS, strict=True)]
    shares = {
        "medium-replay": {"uniform": 2_000, names[0]: 200_000, names[1]: 200_000},
        "full-replay": dict.fromkeys(["uniform", *names], 200_000),
    }
    entry = {
        "seed": 3, "random_steps": 500, "medium": names[1], "expert": names[3], "snapshots": listed, "shares": shares,
    }  # fmt: skip
    (folder / "card.json").write_text(json.dumps({"environments": {"hopper": entry}}))
    return folder
