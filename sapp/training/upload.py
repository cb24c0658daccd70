"""From datasets to what populations are trained from: vectors and frames on the device, or frames streamed."""

from __future__ import annotations

import os
from collections.abc import Sequence

import jax

from sapp.core.spec import Spec
from sapp.data import Dataset
from sapp.data.frames import FrameDataset
from sapp.runs.plan import Plan
from sapp.training.device_data import DeviceData, spec_of
from sapp.training.device_frames import DeviceFrames, frame_spec
from sapp.training.feed import Data
from sapp.training.population import Population
from sapp.training.streaming import HostFrames

AnyDataset = Dataset | FrameDataset
FRAME_SHARE = 0.7
"""Frames that take more than this share of the device's memory are streamed instead of resident."""


def populations_of(plan: Plan, datasets: Sequence[AnyDataset], stream: bool | None) -> list[Population]:
    """A population for each group of a plan's members.

    Groups hold only the datasets that their members use, and share those that they use both. ``stream`` is as ``train``
    has it.
    """
    found = []
    uploaded: dict[tuple[int, ...], Data] = {}
    for indices in plan.groups():
        members = [plan.members[index] for index in indices]
        used = tuple(sorted({member.dataset for member in members}))
        if used not in uploaded:
            uploaded[used] = _on_device([datasets[number] for number in used], used, len(datasets), stream)
        specs = [problem.empty_spec() for problem in plan.problems]
        for number in used:
            specs[number] = spec(datasets[number])
        found.append(Population(members, uploaded[used], specs))
    return found


def spec(dataset: AnyDataset) -> Spec:
    """What a learner is told about a dataset."""
    return frame_spec(dataset) if isinstance(dataset, FrameDataset) else spec_of(dataset)


def _on_device(chosen: Sequence[AnyDataset], numbers: Sequence[int], total: int, stream: bool | None) -> Data:
    frames = [dataset for dataset in chosen if isinstance(dataset, FrameDataset)]
    if not frames:
        return DeviceData.of([dataset for dataset in chosen if isinstance(dataset, Dataset)], numbers, total)
    if stream if stream is not None else sum(dataset.frames.nbytes for dataset in frames) > _room():
        return HostFrames(frames, numbers, total)
    return DeviceFrames.of(frames, numbers, total)


def _room() -> float:
    """Bytes that frames may take on the device."""
    limit = (jax.local_devices()[0].memory_stats() or {}).get("bytes_limit")
    if limit is None and not hasattr(os, "sysconf"):  # Windows, which pages
        return float("inf")
    if limit is None:  # the CPU's: what the machine has
        limit = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return FRAME_SHARE * float(limit)
