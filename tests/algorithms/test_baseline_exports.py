"""Every baseline's policy as ONNX: normalisation, noise and the best of many candidates travel with it."""

from __future__ import annotations

import pytest
from numpy_reference import A, S, init

from sapp import BC, BCQ, BEAR, BRAC, EDAC, IQL, TD3BC, UWAC, Algorithm, FisherBRC, ReBRAC
from sapp.runs.problem import Problem

pytest.importorskip("onnxruntime")

VAE = {"hidden": (16, 16), "vae_hidden": (16,), "candidates": 10}
PROBLEM = Problem(
    name="made", source=None, fingerprint="", environment=None, physics=None, observation_size=S, action_size=A,
    action_low=[-1.0] * A, action_high=[1.0] * A, transitions=1, episodes=1,
)  # fmt: skip


@pytest.mark.parametrize(
    "algorithm",
    [
        *(kind(hidden=(16, 16)) for kind in (TD3BC, ReBRAC, BC, IQL, FisherBRC, BRAC, EDAC)),
        *(kind(**VAE) for kind in (BCQ, BEAR, UWAC)),
    ],
    ids=lambda algorithm: type(algorithm).__name__,
)
def test_the_exported_graph_acts_as_the_policy(algorithm: Algorithm) -> None:
    from sapp.export.graph import build
    from sapp.export.policy import compare, in_float32, policy_function

    function = policy_function(in_float32(algorithm.policy(init(algorithm, 1))), PROBLEM)
    check = compare(build(function, S, "action", {}), function, PROBLEM, 50)
    assert check["largest_difference"] < 1e-5
