"""JAX functions as ONNX graphs: what they compute, and which operations have no counterpart."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problems_of_policies import problem

from sapp.algorithms.registry import preset
from sapp.core.errors import SappError
from sapp.core.spec import Spec
from sapp.export.graph import build
from sapp.export.policy import policy_function

onnxruntime = pytest.importorskip("onnxruntime")


def test_bounds_are_kept_on_either_side() -> None:
    content = build(lambda x: jax.lax.clamp(-0.5, x, 0.25), 3, "y", {})
    (found,) = onnxruntime.InferenceSession(content).run(None, {"observation": np.array([[-1, 0, 1]], np.float32)})
    np.testing.assert_array_equal(found, [[-0.5, 0.0, 0.25]])


def test_choices_leave_as_whole_numbers_with_their_names(tmp_path: Path) -> None:
    algorithm = preset("discrete-cql")
    state = algorithm.init(jax.random.PRNGKey(0), Spec(5, 3, jnp.zeros(5), jnp.ones(5), True))
    function = policy_function(algorithm.policy(state), problem(True, scaled=False))
    content = build(function, 5, "action", {"labels": '["a", "b", "c"]'})
    session = onnxruntime.InferenceSession(content)
    (action,) = session.run(None, {"observation": np.zeros((4, 5), np.float32)})
    assert action.dtype == np.int64
    assert action.shape == (4,)
    assert session.get_modelmeta().custom_metadata_map["labels"] == '["a", "b", "c"]'


def test_what_cannot_be_exported_is_named() -> None:
    with pytest.raises(SappError, match="operation 'cumsum', which cannot be exported"):
        build(lambda x: jnp.cumsum(x, axis=1), 5, "action", {})
