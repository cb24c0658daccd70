"""What a learner is told of frames."""

from __future__ import annotations

import jax
import numpy as np

from sapp.core.spec import Spec


def test_frames_are_sizes_without_statistics() -> None:
    spec = Spec.of_frames(np.array([4, 20, 22]), actions=3, return_span=7.0)
    assert (spec.observation_size, spec.action_size, spec.discrete) == (4 * 20 * 22, 3, True)
    assert spec.frame == (4, 20, 22)
    assert (float(spec.observation_mean), float(spec.observation_std), float(spec.return_span)) == (0.0, 1.0, 7.0)
    assert float(Spec.of_frames((4, 8, 8), 3).return_span) == 1.0


def test_sizes_are_structure_and_statistics_are_numbers() -> None:
    one, two, other = (Spec.of_frames((4, 8, 8), actions, span) for actions, span in ((3, 1.0), (3, 2.0), (4, 1.0)))
    assert jax.tree.structure(one) == jax.tree.structure(two) != jax.tree.structure(other)
