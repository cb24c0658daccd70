"""Experiments by their name, or by a Python file of your own that declares one."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path

from sapp.core.errors import SappError, did_you_mean
from sapp.experiments import atari
from sapp.experiments import paper_grids as paper
from sapp.experiments.grid import Grid, Scale

EXPERIMENTS: dict[str, Callable[[Scale], Grid]] = {
    "table1": paper.table1,
    "atari": atari.grid,
    "ratio-quality": paper.ratio_quality,
    "random-ratio": paper.random_ratio,
    "alpha-sweep": paper.alpha_sweep,
    "b0": paper.b0,
}
"""The paper's, which ``sapp experiment NAME`` runs."""
FILE_MODULE = "sapp_experiment_"
"""How the modules of files begin; no other machine can import them."""


def declared(name: str, scale: Scale) -> Grid:
    """The grid that an experiment declares at a scale."""
    declare = find_experiment(name)
    try:
        grid = declare(scale)
    except SappError:
        raise
    except Exception as error:  # whatever somebody's file raises
        if name in EXPERIMENTS:
            raise
        raise SappError(f"{name}: grid(scale) failed ({type(error).__name__}: {error})") from error
    if not isinstance(grid, Grid):
        raise SappError(f"{name}: grid(scale) returns {type(grid).__name__}, not a sapp.experiments.grid.Grid")
    return grid


def find_experiment(name: str) -> Callable[[Scale], Grid]:
    """The grid of an experiment of the paper, or of a file whose function ``grid(scale)`` declares it."""
    if name in EXPERIMENTS:
        return EXPERIMENTS[name]
    if not name.endswith(".py"):
        raise SappError(
            f"experiment {name!r} is unknown{did_you_mean(name, EXPERIMENTS)}; use {', '.join(EXPERIMENTS)}, or a "
            "Python file that defines grid(scale)"
        )
    path = Path(name)
    if not path.is_file():
        raise SappError(f"{path}: no such file; give one that defines grid(scale)")
    name = f"{FILE_MODULE}{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)  # where dataclasses look for their module
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever somebody's file raises
        raise SappError(f"{path}: cannot be imported ({type(error).__name__}: {error})") from error
    declared = getattr(module, "grid", None)
    if not callable(declared):
        raise SappError(f"{path}: defines no function grid(scale) that returns a sapp.experiments.grid.Grid")
    return declared
