"""The table of docs/physics.md, from the study's rows: python -m studies.physics.tables"""

from __future__ import annotations

import csv
from pathlib import Path

from sapp.report.marked_sections import write_sections
from sapp.report.report_tables import table

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "physics.md"
ROWS = HERE / "rows" / "replay.csv"
FIELDS = (
    "file", "rows", "tested", "states_from", "physics", "median", "high", "largest", "reward", "terminals", "mujoco",
)  # fmt: skip


def rows() -> list[dict[str, str]]:
    """The committed rows."""
    with open(ROWS, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def sections() -> dict[str, str]:
    """The marked sections of the page."""
    by_file: dict[str, dict[str, dict[str, str]]] = {}
    for row in rows():
        by_file.setdefault(row["file"], {})[row["physics"]] = row

    def told(value: str) -> str:
        return f"{float(value):.1e}".replace("e-0", "e-")

    lines = []
    for name, found in by_file.items():
        ours, plain = found["d4rl"], found["v4"]
        three = " / ".join(told(ours[field]) for field in ("median", "high", "largest"))
        tested = f"{int(ours['tested']):,} of {int(ours['rows']):,}"
        lines.append([name, tested, told(plain["median"]), three, told(ours["reward"]), ours["terminals"]])
    head = (
        "file", "rows tested", "`-v4` as it is: median", "restored: median / 99 % / max", "restored reward: max",
        "ends that differ",
    )  # fmt: skip
    version = rows()[0]["mujoco"]
    caption = f"Largest deviation of the next observation in each row, MuJoCo {version}."
    return {"replay": table("One-step replay", caption, head, lines).markdown().strip()}


if __name__ == "__main__":
    write_sections(PAGE, sections())
