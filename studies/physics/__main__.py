"""How exactly are D4RL's recorded transitions replayed?

python -m studies.physics FILE...          # D4RL's files of the three environments: replays every row, writes rows
python -m studies.physics.tables           # the table of the committed rows, into docs/physics.md
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from pathlib import Path

import mujoco

from sapp.core.errors import SappError
from sapp.envs.one_step_replay import replay
from studies.physics.tables import FIELDS, ROWS


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line."""
    files = list(sys.argv[1:] if arguments is None else arguments)
    if not files:
        raise SappError("no file given: name D4RL's .hdf5 files of halfcheetah, hopper or walker2d")
    with open(ROWS, "w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(FIELDS)
        for file in files:
            report = replay(file)
            for each in report.errors:
                numbers = (each.median, each.high, each.largest, each.reward)
                writer.writerow([
                    Path(file).stem, report.rows, report.tested, report.state, each.physics,
                    *(f"{number:.3g}" for number in numbers), each.terminals, mujoco.__version__,
                ])  # fmt: skip


if __name__ == "__main__":
    main()
