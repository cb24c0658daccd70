"""Several policies in one file."""

from __future__ import annotations

import numpy as np
import pytest
from small_policies import random_policy

from sapp.core.errors import SappError
from sapp.envs.policies import policy_from_arrays
from sapp.envs.policy_files import load_policies, rounded, save_policies


def test_policies_are_stored_as_rounded(tmp_path) -> None:
    policy = random_policy(0)
    noisy = {key: value + np.float32(1e-4) for key, value in policy.arrays().items()}
    fine = policy_from_arrays("fine", noisy)
    save_policies(tmp_path / "p.safetensors", {"a/0": fine}, {"note": 1}, half=True)
    found, information = load_policies(tmp_path / "p.safetensors")
    assert information["note"] == 1
    for key, value in rounded(fine).arrays().items():
        np.testing.assert_array_equal(found["a/0"].arrays()[key], value)
        assert np.abs(value - fine.arrays()[key]).max() > 0
    save_policies(tmp_path / "q.safetensors", {"a/0": fine}, {})
    np.testing.assert_array_equal(load_policies(tmp_path / "q.safetensors")[0]["a/0"].mean[0], fine.mean[0])
    size = (tmp_path / "p.safetensors").stat().st_size
    (tmp_path / "p.safetensors").write_bytes((tmp_path / "p.safetensors").read_bytes()[: size // 2])
    with pytest.raises(SappError, match="damaged or not a policy file"):
        load_policies(tmp_path / "p.safetensors")
