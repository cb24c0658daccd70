"""Every command that writes: what it starts from, and how it is run again after it failed or was killed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from forked import Command, Forked
from kit import DQN, MAKE_ROWS, MAKE_STORE, SHORT, TINY, copies

TRAIN = ["train", "bc", "point.npz", *TINY, *SHORT, "--out", "run"]
SAC = ["collect", "point", "--steps", "96", "--random-steps", "32", "--rows", "4", "--chunk", "16", "--snapshots", "2",
       "--hidden", "8", "--batch-size", "8", "--eval-episodes", "1", "--threads", "1", "--quiet",
       "--out", "sac"]  # fmt: skip
ONLINE = ["collect", "catch", *DQN, "--out", "new"]
LOCAL = {"MINARI_DATASETS_PATH": "minari"}
SHIPPED = """
import sys, types
from pathlib import Path
import importlib.util
if importlib.util.find_spec("imageio") is None:
    sys.modules["imageio"] = types.ModuleType("imageio")
from sapp.collect.benchmark import make, shipped
shipped.FOLDER = Path("policies").absolute()
"""
DEMO = """
from sapp.cli.demo_problem import Sizes
from sapp.cli.demo_run import demo
demo("demo", Sizes(exact_worlds=4, worlds=2, steps=3, hidden=(8,)), progress=False)
"""
GRID = """
from dataclasses import replace
from sapp.experiments.paper_grids import random_ratio
from sapp.experiments.grid import Scale
from sapp.experiments.variants import *

SIZES = {"hidden": (8,), "weights.of.hidden": (8,), "batch_size": 8, "action_samples": 1}


def grid(scale):
    found = random_ratio(Scale("smoke", 4, 2, 2, (0,), 2, 1, 2, SIZES))
    return replace(found, datasets=("point-6",))
"""


@dataclass(frozen=True)
class Scenario:
    """A command and what goes with it."""

    command: Command
    needs: Sequence[str] = ()
    """Of the kit."""
    prepare: Callable[[Path], object] = lambda folder: None
    again: Callable[[Path], Command] | None = None
    """What goes on; by default the same command."""
    before: str = ""
    env: dict[str, str] | None = None
    trains: bool = False
    """Whether a case takes seconds."""
    ends: int = 0
    """Its exit code."""
    pure: bool = True
    """Whether every file is at all times as before or as after."""


def unfinished(folder: Path) -> None:
    """The run before its last checkpoint."""
    (max((folder / "run" / "checkpoints").iterdir())).unlink()


def resume_or(command: Sequence[str], run: str, resume: Sequence[str]) -> Callable[[Path], Command]:
    """Resume where there is a run, else start it again."""
    return lambda folder: list(resume) if (folder / run / "config.json").exists() else list(command)


SCENARIOS: dict[str, Scenario] = {
    "train": Scenario(TRAIN, ["point.npz"], again=resume_or(TRAIN, "run", ["resume", "run", "--quiet"]), trains=True,
                      pure=False),
    "resume": Scenario(["resume", "run", "--quiet"], ["point.npz", "run"], unfinished, trains=True, pure=False),
    "evaluate": Scenario(["evaluate", "run", "--episodes", "1"], ["run"], trains=True),
    "evaluate --video": Scenario(["evaluate", "run", "--episodes", "1", "--video"], ["run"], trains=True),
    "evaluate --offline": Scenario(
        ["evaluate", "run", "--offline", "--fit-steps", "2", "--bags", "2", "--fit-hidden", "4"],
        ["run", "point.npz"], trains=True, ends=3,
    ),
    "export": Scenario(["export", "run", "policy.onnx", "--samples", "10"], ["run"], trains=True),
    "report of a run": Scenario(["report", "run", "--out", "r.html", "--figures", "figures"], ["run"]),
    "report of a store": Scenario(["report", "results.sqlite", "--out", "r.html"], ["results.sqlite"]),
    "data convert": Scenario(["data", "convert", "log.csv", "log.npz", "--map", "last_step=end"], ["log.csv"]),
    "data convert of frames": Scenario(["data", "convert", "dqn/replay_logs", "frames"], ["dqn"]),
    "data show": Scenario(["data", "show", "point.npz", "--plot", "f.png"], ["point.npz"]),
    "data make": Scenario(["data", "make", "hopper-medium", "--transitions", "300", "--quiet", "--threads", "1"],
                          ["policies"], before=SHIPPED, env=LOCAL, pure=False),
    "collect --policy": Scenario(["collect", "point", "--policy", "uniform", "--steps", "200", "--out", "given",
                                  "--quiet"]),
    "collect --minari": Scenario(["collect", "point", "--policy", "uniform", "--steps", "200", "--quiet", "--minari",
                                  "mine/log-v0"], env=LOCAL),
    "collect --policy of frames": Scenario(["collect", "catch", "--policy", "dqn", "--steps", "128", "--rows", "4",
                                            "--threads", "1", "--out", "played", "--quiet"], ["dqn"], trains=True,
                                           pure=False),
    "collect sac": Scenario(SAC, again=resume_or(SAC, "sac", ["collect", "--resume", "sac", "--threads", "1", "--quiet",
                                                              "--eval-episodes", "1"]), trains=True, pure=False),
    "collect dqn": Scenario(ONLINE, again=resume_or(ONLINE, "new", ["collect", "--resume", "new", "--threads", "1",
                                                                   "--quiet"]), trains=True, pure=False),
    "demo": Scenario(DEMO, trains=True, pure=False),
    "select": Scenario(
        ["select", "run", "--data", "point.npz", "--fit-steps", "2", "--bags", "2", "--fit-hidden", "4"],
        ["run", "point.npz"], trains=True, ends=3,
    ),
    "store": Scenario(MAKE_STORE, pure=False),
    "results as text": Scenario(MAKE_ROWS, ["results.sqlite"], pure=False),
    "experiment": Scenario(["experiment", "grid.py", "--out", "experiment", "--quiet"],
                           prepare=lambda folder: (folder / "grid.py").write_text(GRID), trains=True, pure=False),
    "theory audit": Scenario(["theory", "audit", "--mdps", "1", "--plot", "a.png"]),
    "theory chain": Scenario(["theory", "chain", "--plot", "c.png"]),
}  # fmt: skip


def laid_out(forked: Forked, scenario: Scenario, kit: Path, folder: Path) -> None:
    """Put what a scenario needs into its folder."""
    scenario.prepare(copies(forked, kit, folder, *scenario.needs))
