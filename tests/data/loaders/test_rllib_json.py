"""RLlib's JSON logs: batches that cut episodes, and lines that are none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sapp.core.errors import SappError
from sapp.data import load


def batch(first: int, count: int, **more: Any) -> dict[str, Any]:
    """Steps of episode 7, from ``first`` on; the last of six ends it."""
    steps = range(first, first + count)
    return {
        "type": "SampleBatch", "obs": [[i / 10, 1.0] for i in steps], "new_obs": [[(i + 1) / 10, 1.0] for i in steps],
        "actions": [[0.5] for _ in steps], "rewards": [float(i) for i in steps], "eps_id": [7] * count,
        "t": list(steps), "terminateds": [i == 5 for i in steps], "infos": [{} for _ in steps], **more,
    }  # fmt: skip


def write(path: Path, *batches: Any) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in batches))
    return path


def test_batches_in_any_order_are_one_episode(tmp_path: Path) -> None:
    data = load(write(tmp_path / "output-1.json", batch(4, 2), batch(0, 4)))
    assert data.reward.tolist() == [0, 1, 2, 3, 4, 5]
    assert data.episode_lengths.tolist() == [6]
    assert data.terminal.tolist() == [False] * 5 + [True]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([batch(0, 6, rewards="packed")], "has no list of rewards"),
        ([batch(0, 6, obs="gASV")], "field 'obs' is packed .a pickle., which is never loaded"),
        ([batch(0, 6, t=[1])], "field 't' does not have the 6 rows of rewards"),
        ([batch(0, 3), batch(3, 3, extra=[0] * 3)], "batch 1 and the first differ in field 'extra'"),
        ([{"type": "MultiAgentBatch", "policy_batches": {"a": {}, "b": {}}}], "holds steps of 2 policies .a, b."),
        ([], "output-1.json"),
    ],
)
def test_what_is_no_batch_of_steps_is_named(tmp_path: Path, content: list[Any], message: str) -> None:
    with pytest.raises(SappError, match=message):
        load(write(tmp_path / "output-1.json", *content))


def test_a_line_that_was_cut_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "output-1.json", batch(0, 6))
    path.write_text(path.read_text() + '{"type": "Sam')
    with pytest.raises(SappError, match=r"line 2 is not JSON .*remove it"):
        load(path)
