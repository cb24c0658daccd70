"""Event files for TensorBoard."""

from __future__ import annotations

import numpy as np
import pytest
from hooked import Train

from sapp.hooks import TensorBoard


def test_tensorboard_holds_what_the_tables_hold(train: Train) -> None:
    pytest.importorskip("tensorboardX")
    run = train("run", TensorBoard(), steps=20)
    (file,) = (run.path / "tensorboard").iterdir()
    content = file.read_bytes()
    assert content.count(b"critic/td\x15") == 2
    assert content.count(b"return_mean\x15") == 2
    assert np.float32(run.metrics()[-1]["critic/td"]).tobytes() in content
