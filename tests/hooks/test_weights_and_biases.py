"""An offline run of Weights & Biases."""

from __future__ import annotations

import time

import pytest
from hooked import Train

from sapp.hooks import WandB


def test_an_offline_wandb_folder_holds_the_run(train: Train) -> None:
    wandb = pytest.importorskip("wandb")
    run = train("run", WandB("point", mode="offline"), steps=20)
    (file,) = (run.path / "wandb").glob("offline-run-*/run-*.wandb")
    known = (run.path / "wandb" / "sapp-run-id").read_text().strip()
    assert file.stem == f"run-{known}"
    end = time.monotonic() + 30
    while b"return_mean" not in file.read_bytes() and time.monotonic() < end:
        time.sleep(0.1)  # another process writes it
    content = file.read_bytes()
    assert b"critic/td" in content
    assert run.evaluations()[-1]["return_mean"][:5].encode() in content
    assert wandb.run is None
