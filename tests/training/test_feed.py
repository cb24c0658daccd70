"""A feed that is all on the device serves every update."""

from __future__ import annotations

from sapp.data import Dataset
from sapp.envs.point import behaviour_dataset
from sapp.training.device_data import DeviceData
from sapp.training.feed import Resident


def test_one_block_serves_all_updates() -> None:
    data: Dataset = behaviour_dataset(2)
    supply = DeviceData.of([data]).supply([(0, 0)], batch_size=4, stride=50)
    assert isinstance(supply, Resident)
    assert supply.resident
    ((feed, count),) = supply.blocks(0, 5, 25)
    assert feed is supply.feed
    assert count == 20
    supply.close()
