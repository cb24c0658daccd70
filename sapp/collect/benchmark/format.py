"""How ``sapp.load`` finds the benchmark's datasets: by name or Minari id; one that is not there yet is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sapp.data import benchmark_names as names
from sapp.data.dataset import Dataset
from sapp.data.frames import FrameDataset
from sapp.data.load import with_options
from sapp.data.registry import COMMON, Format, Request


def load_benchmark(
    text: str, *, progress: Callable[[int, int], None] | None = None, **options: Any
) -> Dataset | FrameDataset:
    """Load one of the benchmark's datasets.

    Args:
        text: such as "hopper-medium" or "minari:sapp/hopper/medium-v0".
        progress: called with transitions done and in all while it is made.
        options: see ``sapp.load``.
    """
    from sapp.collect.benchmark.make import load  # MuJoCo, only where a dataset of the benchmark is asked for

    return with_options(load(_name(text) or text, progress=progress), options)


def _name(text: str) -> str | None:
    return text if names.is_name(text) else names.of_minari(text.removeprefix("minari:"))


def _recognises(request: Request) -> bool:
    return _name(request.text) is not None


FORMAT = Format(
    "a name of the benchmark such as hopper-medium", _recognises, load_benchmark, (*COMMON, "progress"), names.NAMES
)
