"""The tables of docs/datasets.md and of the study's page, from its rows: python -m studies.benchmark_data.page"""

from __future__ import annotations

import json
from pathlib import Path

from sapp.collect.benchmark.shipped import shipped
from sapp.report.marked_sections import write_sections
from sapp.report.report_tables import table as markdown_table
from studies.benchmark_data import buffer_check, comparison, table

HERE = Path(__file__).parent
PAGES = (HERE.parents[1] / "docs" / "datasets.md", HERE / "README.md")


def sections() -> dict[str, str]:
    """The marked sections of both pages."""
    replay = json.loads((HERE / "rows" / "sac" / "replay.json").read_text(encoding="utf-8"))
    genuine = comparison.markdown(comparison.read(HERE / "rows" / "d4rl-medium" / "comparison.json"))
    made = table.read(HERE / "rows" / "datasets.csv")
    return {
        "eighteen": table.markdown(made),
        "scores": table.short(made),
        "replay": buffer_check.markdown(replay).strip(),
        "genuine": genuine.strip(),
        "policies": policies(),
    }


def policies() -> str:
    """Scores of the shipped policies, from their card."""
    lines = []
    for environment in ("halfcheetah", "hopper", "walker2d"):
        _, training, card = shipped(environment)
        scores = {each["name"]: float(each["score"]) for each in card["snapshots"]}
        chosen = (scores[training.medium], scores[training.expert], max(scores.values()))
        lines.append([environment, *(f"{score:.1f}" for score in chosen)])
    head = ("environment", "medium", "expert", "the best that is shipped")
    caption = "Normalised scores over 200 episodes, from the card."
    return markdown_table("Shipped policies", caption, head, lines).markdown().strip()


if __name__ == "__main__":
    for each in PAGES:
        write_sections(each, sections())
