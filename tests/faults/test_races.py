"""Two processes that do the same at the same moment: what is there afterwards is whole, and the loser gets one line."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from pathlib import Path

import pytest
from forked import Forked
from measured import keep
from scenarios import SCENARIOS, laid_out
from test_faults import contents, leftovers

MANY = int(os.environ.get("SAPP_FAULTS", "0"))
PAIRS = {
    "store": 18, "results as text": 6, "data convert": 16, "collect --policy": 16, "collect --minari": 16,
    "data make": 12, "report of a store": 12, "data convert of frames": 6, "resume": 2, "train": 2,
}  # fmt: skip
"""How many pairs race; 106 in all."""
FEW = {"store": 2, "results as text": 2, "data convert": 2, "collect --policy": 2, "collect --minari": 2}


@pytest.mark.parametrize("name", PAIRS if MANY else FEW)
def test_one_wins_whole_and_the_other_gets_one_line(forked: Forked, kit: Path, tmp_path: Path, name: str) -> None:
    scenario = SCENARIOS[name]
    folder = tmp_path / "case"  # of one name for all: runs note where their data are
    laid_out(forked, scenario, kit, folder)
    assert forked.run(folder, scenario.command, env=scenario.env, before=scenario.before).code == 0
    then = contents(folder)
    shutil.rmtree(folder)
    wrong: list[str] = []
    ends: Counter[str] = Counter()
    for _ in range((PAIRS if MANY else FEW)[name]):
        laid_out(forked, scenario, kit, folder)
        done = forked.run(folder, scenario.command, scenario.command, env=scenario.env, before=scenario.before)
        ends[str(sorted(map(str, done.codes)))] += 1
        for code, told in zip(done.codes, done.err, strict=True):
            if code not in (0, 2) or (code == 2 and (told.count("\n") != 1 or not told.startswith("sapp: error: "))):
                wrong.append(f"exit {code}: {told[-400:]}")
        if 0 not in done.codes:
            wrong.append(f"nobody won: {done.err}")
        elif (now := contents(folder)) != then or leftovers(folder):
            other = sorted(each for each in {*now, *then} if now.get(each) != then.get(each))
            wrong.append(f"other files: {other}, left: {leftovers(folder)}")
        shutil.rmtree(folder)
    keep("races", name, **ends, wrong=len(wrong))
    assert not wrong, "\n".join(wrong)
