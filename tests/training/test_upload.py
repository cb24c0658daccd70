"""From datasets to what populations are trained from: on the device, shared, or streamed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from frame_logs import make_log

import sapp
from sapp.algorithms import ConvScores, DiscreteCQL
from sapp.envs.point import behaviour_dataset
from sapp.runs.members import Member
from sapp.runs.phases import Phase
from sapp.runs.plan import Plan
from sapp.runs.problem import Problem
from sapp.training import upload
from sapp.training.device_frames import DeviceFrames
from sapp.training.streaming import HostFrames
from sapp.training.upload import populations_of


def plan(members: list[Member], datasets: list) -> Plan:
    return Plan(
        tuple(members), tuple(Problem.of(each, None) for each in datasets), (Phase("train", 1, ratio=False),),
        log_every=1, checkpoint_every=0, eval_every=0, eval_episodes=1, eval_seed=0, keep=1,
    )  # fmt: skip


def test_groups_hold_the_data_they_use_once() -> None:
    datasets = [replace(behaviour_dataset(2, seed), name=str(seed)) for seed in range(3)]
    narrow, wide = sapp.BC(hidden=(4,)), sapp.BC(hidden=(6,))
    members = [Member("a", narrow, 2, 0), Member("b", wide, 2, 0), Member("c", sapp.BC(hidden=(8,)), 0, 0)]
    one, same, other = populations_of(plan(members, datasets), datasets, None)
    assert one.supply.feed is same.supply.feed
    assert other.supply.feed is not one.supply.feed
    assert one.supply.feed.reward.size == datasets[2].size
    assert other.supply.feed.reward.size == datasets[0].size


@pytest.mark.parametrize(("stream", "room", "kind"), [
    (None, 1e9, DeviceFrames), (None, 10.0, HostFrames), (True, 1e9, HostFrames), (False, 10.0, DeviceFrames),
])  # fmt: skip
def test_frames_are_streamed_where_they_do_not_fit_or_if_asked(
    stream: bool | None, room: float, kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload, "_room", lambda: room)
    game = make_log([6], [True], side=8)
    algorithm = DiscreteCQL(network=ConvScores((2,), (4,), (4,), 4), batch_size=2)
    (population,) = populations_of(plan([Member("a", algorithm, 0, 0)], [game]), [game], stream)
    assert population.supply.resident == (kind is DeviceFrames)
    population.close()
