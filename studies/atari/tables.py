"""The study's table, from its rows: python -m studies.atari.tables"""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

from sapp.core.comparisons import holm
from sapp.core.statistics import student
from sapp.report.marked_sections import write_sections
from sapp.report.report_tables import table

HERE = Path(__file__).parent
PAGE = HERE / "README.md"
METHODS = ("CQL", "SA-CQL", "shuffled", "matched", "random", "REM")


def sections() -> dict[str, str]:
    """The marked sections of the page."""
    with open(HERE / "rows" / "curves.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    scores: dict[tuple[str, str], dict[int, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        scores[row["game"], row["column"]][int(row["updates"])][int(row["seed"])] = float(row["return"])
    games = list(dict.fromkeys(row["game"] for row in rows))
    last = {key: found[max(found)] for key, found in scores.items()}
    finals = [[game, *(student(list(last[game, name].values())).interval() for name in METHODS)] for game in games]
    others = [name for name in METHODS if name != "SA-CQL"]
    gaps = {
        (game, other): student([last[game, "SA-CQL"][seed] - last[game, other][seed] for seed in last[game, other]])
        for game in games
        for other in others
    }
    plain = [gap.p for (_, other), gap in gaps.items() if other != "REM" and gap.error > 0]
    held = sum(p < 0.05 for p in holm(plain))
    alone = sum(p < 0.05 for p in plain)
    told = (
        f"Paired by seed. Of the {len(plain)} differences from CQL and the controls, {alone or 'none'} would be "
        f"significant if looked at alone, and {held or 'none'} with Holm's correction."
    )
    lines = [[game, *(gaps[game, other].interval() for other in others)] for game in games]
    caption = "Return at the last evaluation: mean over three seeds, Student's 95 % interval."
    return {
        "scores": table("Scores", caption, ("game", *METHODS), finals).markdown().strip(),
        "differences": table("SA-CQL minus", told, ("game", *others), lines).markdown().strip(),
    }


if __name__ == "__main__":
    write_sections(PAGE, sections())
