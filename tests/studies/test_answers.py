"""Sentences of the studies' pages that have no figure in them follow from the rows; each stands on its page."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sapp.core.statistics import Interval, student
from sapp.data.benchmark_names import NAMES
from sapp.data.normalised_scores import normalized_score
from sapp.report.score_summary import cells, differences
from sapp.report.sources import read
from studies.baselines import tables as baselines
from studies.benchmark_data import table
from studies.benchmark_data.levels import D4RL_RETURNS, d4rl_return
from studies.ope.tables import snapshots
from studies.sepsis.experiment import summarise
from studies.sepsis.rows import read_rows
from studies.skewed_coverage import tables as skewed_tables

ROOT = Path(__file__).parents[2]
STUDIES = ROOT / "studies"
SAID: list[tuple[str, str, Callable[[], None]]] = []


def said(page: str, sentence: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Register what shows a sentence of a page."""

    def register(shown: Callable[[], None]) -> Callable[[], None]:
        SAID.append((page, sentence, shown))
        return shown

    return register


def scores(name: str, dataset: str, step: int | None = None) -> list[float]:
    """Of a baseline's seeds at a step, or at its last."""
    found = baselines.of(baselines.scores(), *baselines.METHODS[name], dataset)
    return list(found[max(found) if step is None else step].values())


@said("studies/baselines/README.md", "EDAC reaches the published level on halfcheetah and hopper")
def edac_arrives() -> None:
    for dataset, published in list(zip(baselines.DATASETS, baselines.PUBLISHED["EDAC"][1:], strict=True))[:2]:
        assert abs(np.mean(scores("EDAC", dataset)) - float(published)) < 4


@said("docs/algorithms/edac.md", "the first 100,000 show little")
def edac_begins_late() -> None:
    for dataset in baselines.DATASETS:
        assert np.mean(scores("EDAC", dataset, 100_000)) < 0.3 * np.mean(scores("EDAC", dataset))


@said("studies/baselines/README.md", "UWAC ends up where behaviour cloning does, and BEAR below it.")
def clones() -> None:
    for dataset in baselines.DATASETS:
        cloned = np.mean(scores("BC", dataset))
        assert abs(np.mean(scores("UWAC", dataset)) - cloned) < 5
        assert np.mean(scores("BEAR", dataset)) < cloned - 4


@said("studies/baselines/README.md", "gain a little over the plain algorithm on halfcheetah, mostly because of their")
def mean_weights_explain() -> None:
    made = baselines.scores()
    for plain in baselines.STATE_AWARE.values():
        run, dataset = f"sa-{plain}", baselines.DATASETS[0]
        mine, *others = (made[run, name, dataset] for name in (run, plain, f"matched-{run}"))
        step = max(set(mine) & set(others[0]))
        gain, left = (np.mean(list(mine[step].values())) - np.mean(list(each[step].values())) for each in others)
        assert 0 < gain < 5
        assert left < 0.5 * gain


@said("studies/benchmark_data/README.md", "All seeds of halfcheetah and walker2d pass the expert level and stay near")
@said("studies/benchmark_data/README.md", "Hopper's seeds come near it early and fall away from it repeatedly")
def policies_on_the_way() -> None:
    curves: dict[str, list[tuple[int, float]]] = defaultdict(list)
    with open(STUDIES / "benchmark_data" / "rows" / "sac" / "evaluations.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            curves[row["member"]].append((int(row["step"]), float(row["stochastic_score"])))
    for member, curve in curves.items():
        environment = member.split("/")[0]
        bar = float(normalized_score(environment, d4rl_return(f"{environment}-expert")))
        values = np.array([score for _, score in sorted(curve)])
        near = int(np.argmax(values > 0.9 * bar))
        after = values[near:]
        assert after[0] > 0.9 * bar, member
        falls = int(np.sum((after[:-1] > 0.8 * bar) & (after[1:] < 0.6 * bar)))
        if environment == "hopper":
            assert near < 0.45 * len(values), member
            assert falls >= 3, member
        else:
            assert values.max() > bar, member
            assert np.median(after) > 0.95 * bar, member
            assert falls <= 2, member


@said("docs/datasets.md", "hopper-medium-replay has more and shorter episodes than D4RL's, with less spread")
@said("docs/datasets.md", "hopper-medium and walker2d-medium (hence medium-expert) have somewhat more")
def what_is_not_d4rls() -> None:
    rows = table.read(STUDIES / "benchmark_data" / "rows" / "datasets.csv")
    spread = {name: rows[name]["return_deviation"] / D4RL_RETURNS[name][1] for name in D4RL_RETURNS if name in rows}
    replay = "hopper-medium-replay"
    assert rows[replay]["episodes"] > 1.1 * table.parse(replay).d4rl_episodes
    assert spread[replay] < 0.75
    for name in ("hopper-medium", "walker2d-medium", "hopper-medium-expert", "walker2d-medium-expert"):
        assert rows[name]["episodes"] > 1.05 * table.parse(name).d4rl_episodes


@said("docs/physics.md", "the three policies that DOPE published (last snapshots, acting stochastically) agree")
def dope() -> None:
    rows = snapshots(STUDIES / "ope" / "rows")
    assert len(rows) == 3
    for _, theirs, ours, _ in rows:
        (published, deviation), (mean, error) = (map(float, each.split(" ± ")) for each in (theirs, ours))
        assert abs(mean - published) < min(deviation, 2 * error)


@said("studies/sepsis/README.md", "by a few thousandths, with a sign that depends on the log and on the divergence")
@said("studies/sepsis/README.md", "beats PP by several times as much wherever the log is informative")
def sepsis() -> None:
    signs = set()
    for name in ("kl", "cql"):
        gaps = {
            (line.size, line.method): line.against_pp
            for line in summarise(read_rows(STUDIES / "sepsis" / "rows" / f"{name}.csv"))
            if line.against_pp is not None
        }
        for size in {size for size, _ in gaps if size > 1000}:
            ratio, counts = gaps[size, "w"], gaps[size, "count"]
            assert abs(ratio.value) < 0.004
            assert counts.interval().high < 0
            assert counts.value < -2 * abs(ratio.value)
            signs |= {np.sign(end) for end in ratio.interval()[1:] if ratio.p < 0.05}
    assert signs == {-1, 1}


@said("studies/atari/README.md", "CQL of any kind is far above REM")
def atari() -> None:
    last: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    with open(STUDIES / "atari" / "rows" / "curves.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):  # in the order of updates
            last[row["game"], row["column"]][row["seed"]] = float(row["return"])
    for (game, name), seeds in last.items():
        if name != "REM" and "start" not in game:
            assert min(seeds.values()) > 2 * max(0.0, *last[game, "REM"].values())


@said("studies/six_datasets/README.md", "On hopper-medium, scores swing by tens of points between evaluations")
def chance() -> None:
    (six,) = read([STUDIES / "six_datasets" / "rows" / "scores.csv"])
    hopper = [member for member in six.members if member.dataset == "hopper-medium"]
    swings = [np.abs(np.diff([one.mean(step) for step in sorted(one.evaluations)])).max() for one in hopper]
    assert min(swings) > 20


@said("studies/skewed_coverage/README.md", "pessimism placed where the policy goes changes critics; placed")
@said("studies/skewed_coverage/README.md", "The largest change, with the occupancy model's frozen weights on the")
def critics() -> None:
    lines = [line.strip("| ").split(" | ") for line in skewed_tables.critics().splitlines() if " % (" in line]
    assert len(lines) == 10
    for name, *changes in lines:
        placed = not (name == "random" or name.endswith("-shuffled"))
        assert placed or not any("‡" in change for change in changes), name
    assert sum(any("‡" in change for change in changes) for _, *changes in lines) >= 4
    sizes = {change: abs(float(change.split(" ")[0].replace("−", "-"))) for _, *changes in lines for change in changes}
    largest = max(sizes, key=lambda change: sizes[change])
    assert largest == {name: changes for name, *changes in lines}["occupancy-frozen"][-1]
    assert "‡" not in largest


@said("studies/medium_datasets/README.md", "the same weights at other states, or their mean everywhere, do nearly as")
def medium() -> None:
    (experiment,) = read([STUDIES / "medium_datasets" / "rows" / name for name in ("hopper", "halfcheetah-walker2d")])
    gaps = {gap.other: gap for gap in differences(experiment, cells(experiment)) if "halfcheetah" in gap.dataset}
    for other in ("shuffled", "matched"):
        assert abs(gaps[other].corrected.raw.estimate) < 0.3 * gaps["CQL"].corrected.raw.estimate


@said("studies/uneven_coverage/README.md", "the same weights at the wrong states *add* to the loss")
@said("studies/uneven_coverage/README.md", "with even coverage there is nothing to gain")
@said("studies/uneven_coverage/README.md", "the paper's log-min–max *does harm* where coverage is even")
@said("README.md", "the same weights at the wrong states do harm")
def uneven() -> None:
    gaps = {}
    for case in ("uneven", "even"):
        file = STUDIES / "uneven_coverage" / "rows" / f"exact-{case}-coverage.json"
        for row in json.loads(file.read_text(encoding="utf-8"))["rows"]:
            gaps[case, row["variant"]] = Interval(*row["difference"])
    assert gaps["uneven", "√w shuffled"].low > 0
    assert all(gaps["even", name].high > 0 for name in ("SA-CQL, w", "SA-CQL, √w", "SA-CQL, log-min–max"))
    assert gaps["even", "SA-CQL, log-min–max"].low > 0
    assert gaps["even", "SA-CQL, √w"].low < 0


@said("studies/uneven_coverage/README.md", "With networks too, state weights beat every constant weight")
@said("studies/uneven_coverage/README.md", "does as well as the true one")
def uneven_learned() -> None:
    losses: dict[tuple[str, float], dict[int, float]] = defaultdict(dict)
    with open(STUDIES / "uneven_coverage" / "rows" / "learned.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            losses[row["column"], float(row["alpha"])][int(row["world"])] = float(row["lost"])
    judged = {key: np.array([by[world] for world in range(200, 400)]) for key, by in losses.items()}
    alpha = min(alpha for name, alpha in judged if name == "SA-CQL, DualDICE")
    learned = judged["SA-CQL, DualDICE", alpha]
    constant = [values for (name, _), values in judged.items() if name == "CQL"]
    assert len(constant) == 4
    for values in constant:
        assert student(learned - values).interval().high < 0
    low, high = student(learned - judged["SA-CQL, true ratio", alpha]).interval()[1:]
    assert low < 0 < high


@said("README.md", "Final scores of three seeds, CORL's in brackets, on the medium datasets")
def four_arrive() -> None:
    for name in ("TD3+BC", "IQL", "ReBRAC", "Fisher-BRC"):
        source, *published = baselines.PUBLISHED[name]
        assert ("CORL" in source) == (name != "Fisher-BRC")
        for dataset, printed in zip(baselines.DATASETS, published, strict=True):
            found = scores(name, dataset)
            assert abs(np.mean(found) - float(printed)) < 4
            assert len(found) == 3


@said("README.md", "its eighteen locomotion datasets are regenerated locally")
@said("docs/datasets.md", "# The benchmark's eighteen datasets, without a download")
def benchmark() -> None:
    assert len(NAMES) == 18


@said("studies/theory/README.md", "Theorem 6's condition is met in one family only, where it says nothing")
@said("studies/theory/errata.md", "it is met only in the two families that have one")
def where_conditions_are_met() -> None:
    with open(STUDIES / "theory" / "rows" / "audit.csv", encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if int(row["not_met"]) < int(row["checked"])]
    met = {name: [row for row in rows if row["statement"] == name] for name in ("theorem6-log", "theorem2-repaired")}
    assert [row["informative"] for row in met["theorem6-log"]] == ["0"]
    assert len(met["theorem2-repaired"]) == 2


@pytest.mark.parametrize(("page", "sentence", "shown"), SAID, ids=[f"{page}: {text[:40]}" for page, text, _ in SAID])
def test_a_sentence_follows_from_the_rows(page: str, sentence: str, shown: Callable[[], None]) -> None:
    assert sentence in " ".join((ROOT / page).read_text(encoding="utf-8").split()), f"{page} does not say so any more"
    shown()
