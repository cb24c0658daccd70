"""One-step replay of recorded transitions: does a simulator reproduce what a D4RL file recorded?

Each row's simulator state is set from the file, its action applied once, and the outcome compared with the recorded
next observation and reward. An observation holds the whole state but for the horizontal position, which the dynamics do
not depend on. `infos/qpos` and `infos/qvel` are used where they are the row's state (in D4RL's v1 files they are not),
else the observation is. Hopper and Walker2d record velocities clipped to ±10, so only rows strictly inside are a test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sapp.core.errors import SappError
from sapp.data.loaders.limits import open_hdf5
from sapp.envs.locomotion import TASKS, Locomotion

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Errors:
    """How far one physics is from the file: the largest absolute deviation in each row, summarised over rows.

    Attributes:
        physics: "d4rl" or "v4".
        median: of the next observation's error.
        high: its 99th percentile.
        largest: its maximum.
        reward: largest absolute error of the reward.
        terminals: rows whose end of episode differs from the recorded one.
    """

    physics: str
    median: float
    high: float
    largest: float
    reward: float
    terminals: int


@dataclass(frozen=True)
class Report:
    """The replay of one file.

    Attributes:
        path: the file.
        environment: "hopper", "halfcheetah" or "walker2d".
        rows: transitions in the file.
        tested: those whose recorded state is complete.
        state: where the states came from, "infos" or "observations".
        errors: one entry for each physics.
    """

    path: str
    environment: str
    rows: int
    tested: int
    state: str
    errors: tuple[Errors, ...]

    def table(self) -> Table:
        """The report as a table for the terminal."""
        from rich.table import Table

        title = f"{Path(self.path).name}: {self.tested} of {self.rows} rows tested, states from {self.state}"
        table = Table(title=title)
        table.add_column("physics")
        for heading in ("median", "99 %", "max", "reward, max", "terminals that differ"):
            table.add_column(heading, justify="right")
        for one in self.errors:
            numbers = [f"{value:.1e}" for value in (one.median, one.high, one.largest, one.reward)]
            table.add_row(one.physics, *numbers, str(one.terminals))
        return table


def replay(path: str | Path, physics: str | Sequence[str] = ("d4rl", "v4"), environment: str | None = None) -> Report:
    """Replays every row of a D4RL HDF5 file for one step.

    Args:
        path: the file.
        physics: which to try, "d4rl" or "v4" or both.
        environment: "hopper", "halfcheetah" or "walker2d"; by default from the file's name.
    """
    path = Path(path)
    name = environment or _guess(path)
    if name not in TASKS:
        raise SappError(f"environment {name!r} cannot be replayed: use one of {', '.join(sorted(TASKS))}")
    arrays = _read(path)
    tried = (physics,) if isinstance(physics, str) else tuple(physics)
    batches = [Locomotion(name, one) for one in tried]
    positions = int(batches[0].model.nq)
    observation = arrays["observations"]
    if observation.shape[1] != batches[0].observation_size or arrays["actions"].shape[1] != batches[0].action_size:
        raise SappError(
            f"{path}: {observation.shape[1]} observation and {arrays['actions'].shape[1]} action dimensions are not "
            f"those of {name}; name the environment it is from"
        )
    position = np.concatenate([np.zeros((len(observation), 1)), observation[:, : positions - 1]], -1)
    velocity, source = observation[:, positions - 1 :], "observations"
    if _is_state(arrays, position, velocity):
        position, velocity, source = arrays["infos/qpos"], arrays["infos/qvel"], "infos"
    tested = (np.abs(velocity) < batches[0].task.velocity_bound).all(-1)
    tested &= np.isfinite(arrays["next_observations"]).all(-1)
    if not tested.any():
        raise SappError(f"{path}: no row has a complete state (all velocities are clipped), so nothing can be replayed")
    errors = []
    for batch in batches:
        batch.set_state(position[tested], velocity[tested])
        outcome, reward, terminal = batch.step(arrays["actions"][tested])
        error = np.abs(outcome - arrays["next_observations"][tested]).max(-1)
        errors.append(
            Errors(
                batch.physics,
                float(np.median(error)),
                float(np.quantile(error, 0.99)),
                float(error.max()),
                float(np.abs(reward - arrays["rewards"][tested]).max()),
                int((terminal != (arrays["terminals"][tested] > 0)).sum()),
            )
        )
    return Report(str(path), name, len(observation), int(tested.sum()), source, tuple(errors))


def print_report(report: Report, console: Console | None = None) -> None:
    """Prints a report as a table."""
    from rich.console import Console

    (console or Console()).print(report.table())


def _guess(path: Path) -> str:
    found = [name for name in TASKS if name in path.name.lower()]
    if len(found) != 1:
        raise SappError(f"{path}: cannot tell the environment from its name; give one of {', '.join(sorted(TASKS))}")
    return found[0]


def _read(path: Path) -> dict[str, Matrix]:

    if not path.is_file():
        raise SappError(f"{path}: no such file; give a D4RL HDF5 file")
    arrays: dict[str, Matrix] = {}
    try:
        with open_hdf5(path) as file:
            for key in ("observations", "actions", "rewards", "terminals", "timeouts", "next_observations"):
                if key in file:
                    arrays[key] = np.asarray(file[key][()], np.float64)
            for key in ("infos/qpos", "infos/qvel"):
                if key in file:
                    arrays[key] = np.asarray(file[key][()], np.float64)
    except OSError as error:
        raise SappError(f"{path}: not a readable HDF5 file ({error}); download it again") from error
    missing = [key for key in ("observations", "actions", "rewards", "terminals") if key not in arrays]
    if missing:
        raise SappError(f"{path}: no field {', '.join(missing)}; is it a D4RL file?")
    for key in ("rewards", "terminals", "timeouts"):
        if key in arrays:
            arrays[key] = arrays[key].reshape(len(arrays[key]), -1)[:, 0]
    lengths = {key: len(value) for key, value in arrays.items()}
    if len(set(lengths.values())) > 1 or not lengths["observations"]:
        raise SappError(f"{path}: fields have different lengths or none ({lengths}); the file is damaged")
    if "next_observations" not in arrays:
        # a successor is the next row's observation, except where an episode ends
        successor = np.full_like(arrays["observations"], np.nan)
        successor[:-1] = arrays["observations"][1:]
        successor[(arrays["terminals"] > 0) | (arrays.get("timeouts", arrays["terminals"]) > 0)] = np.nan
        arrays["next_observations"] = successor
    return arrays


def _is_state(arrays: dict[str, Matrix], position: Matrix, velocity: Matrix) -> bool:
    """Whether infos hold the state of the same row: they must agree with the observation."""
    qpos, qvel = arrays.get("infos/qpos"), arrays.get("infos/qvel")
    if qpos is None or qvel is None or qpos.shape != position.shape or qvel.shape != velocity.shape:
        return False
    inside = np.abs(velocity) < 10
    return bool(
        np.allclose(qpos[:, 1:], position[:, 1:], atol=1e-4) and np.allclose(qvel[inside], velocity[inside], atol=1e-4)
    )
