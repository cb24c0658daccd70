"""The actions of an online run, on disk: what was synced is found again, what came after is dropped."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sapp.collect.action_log import ActionLog
from sapp.core.errors import SappError

ROUNDS = np.arange(12).reshape(4, 3)


def written(path: Path) -> int:
    with ActionLog(path, rows=3) as log:
        for action in ROUNDS[:3]:
            log.add(action)
        checksum = log.sync()
        log.add(ROUNDS[3])
    return checksum


def test_rounds_up_to_the_checkpoint_come_back_and_later_ones_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "actions"
    checksum = written(path)
    assert path.stat().st_size == 4 * 3 * 4
    with ActionLog(path, 3, rounds=3, checksum=checksum) as log:
        np.testing.assert_array_equal(log.past, ROUNDS[:3])
        log.add(ROUNDS[0])
        both = log.sync()
    with ActionLog(path, 3, rounds=4, checksum=both) as log:
        np.testing.assert_array_equal(log.past, ROUNDS[[0, 1, 2, 0]])


@pytest.mark.parametrize("damage", ["changed", "short", "gone"])
def test_what_its_checkpoint_was_not_made_with_is_refused(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "actions"
    checksum = written(path)
    content = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(content[:20] if damage == "short" else b"\1" + content[1:])
    message = "cannot read" if damage == "gone" else "is not what its checkpoint was made with"
    with pytest.raises(SappError, match=message):
        ActionLog(path, 3, rounds=3, checksum=checksum)
