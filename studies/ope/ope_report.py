"""The page and the tables of ``studies.ope.ope``."""

from __future__ import annotations

import csv
import json
import shutil
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sapp.core.files import write_text
from sapp.core.statistics import spearman
from sapp.ope.offline import NAMES
from sapp.ope.ranking import regret_at_1

Row = dict[str, Any]


def read(folder: Path) -> list[Row]:
    """All rows of a folder of results, numbers as numbers."""
    rows: list[Row] = []
    for file in sorted(folder.glob("*.csv")):
        with file.open(newline="", encoding="utf-8") as handle:
            for row in csv.DictReader(handle):
                rows.append({k: _number(v) for k, v in row.items()})
    return rows


def _number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def pooled(rows: Sequence[Row]) -> list[Row]:
    """The rows, with the truth of a policy that several draws of the logs share taken from the rollouts of all of them.

    Those of a family are the same policies in every draw; checkpoints are trained on the draw and are not.
    """
    truths: dict[tuple[Any, ...], dict[Any, tuple[float, float]]] = defaultdict(dict)
    for row in rows:
        if str(row["problem"]).endswith("family"):
            truths[row["problem"], row["policy"]][row["draw"]] = (row["truth"], row["truth_error"])
    out = []
    for row in rows:
        found = truths.get((row["problem"], row["policy"]))
        if found:
            means, errors = zip(*found.values(), strict=True)
            error = float(np.sqrt(np.sum(np.square(errors)))) / len(errors)
            row = row | {"truth": float(np.mean(means)), "truth_error": error}
        out.append(row)
    return out


def covered(row: Row) -> bool:
    """Whether the interval holds the truth, give or take two standard errors of the truth itself."""
    slack = 2 * row["truth_error"]
    return bool(row["low"] - slack <= row["truth"] <= row["high"] + slack)


def grouped(rows: Iterable[Row], *keys: str) -> dict[tuple[Any, ...], list[Row]]:
    """Rows by the values of some columns, in order of appearance."""
    found: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        found[tuple(row[key] for key in keys)].append(row)
    return dict(found)


def allowed(rows: Sequence[Row]) -> set[tuple[Any, ...]]:
    """(problem, policy, draw) whose estimate was not refused."""
    return {(r["problem"], r["policy"], r["draw"]) for r in rows if r["verdict"] in ("trusted", "doubtful")}


def measures(rows: Sequence[Row], keep: set[tuple[Any, ...]] | None) -> list[list[str]]:
    """One line a problem and estimator: policies, rank correlation, error, coverage, regret."""
    lines = []
    for (problem, estimator), found in grouped(rows, "problem", "estimator").items():
        if keep is not None:
            found = [row for row in found if (row["problem"], row["policy"], row["draw"]) in keep]
        if not found:
            lines.append([str(problem), NAMES[str(estimator)], "0", *["–"] * 5])
            continue
        span = float(np.ptp([row["truth"] for row in found])) or 1.0
        correlations, regrets = [], []
        for draw in grouped(found, "draw").values():
            if len(draw) > 2:
                truth, estimate = [r["truth"] for r in draw], [r["estimate"] for r in draw]
                correlations.append(spearman(estimate, truth))
                regrets.append(regret_at_1(estimate, truth))
        error = np.abs([row["estimate"] - row["truth"] for row in found])
        lines.append(
            [
                str(problem), NAMES[str(estimator)], str(len(found)),
                f"{np.nanmean(correlations):.2f}" if correlations else "–",
                f"{np.mean(error):.3g}", f"{np.median(error) / span:.0%}",
                f"{np.mean([covered(row) for row in found]):.0%}",
                f"{np.mean(regrets):.0%}" if regrets else "–",
            ]
        )  # fmt: skip
    return lines


def verdicts(rows: Sequence[Row]) -> list[list[str]]:
    """How the quoted estimates of each verdict did."""
    lines = []
    spans = {
        key[0]: float(np.ptp([r["truth"] for r in found])) or 1.0 for key, found in grouped(rows, "problem").items()
    }
    for verdict in ("trusted", "doubtful", "refused"):
        found = [row for row in rows if row["verdict"] == verdict]
        if found:
            error = [abs(row["estimate"] - row["truth"]) / spans[row["problem"]] for row in found]
            share = np.mean([covered(row) for row in found])
            lines.append(
                [verdict, str(len(found)), f"{np.median(error):.0%}", f"{np.quantile(error, 0.9):.0%}", f"{share:.0%}"]
            )
    return lines


def table(headings: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    out = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    return "\n".join([*out, *("| " + " | ".join(line) + " |" for line in lines)])


def costs(rows: Sequence[Row]) -> list[list[str]]:
    """Seconds for all policies of a problem at once, as measured."""
    return [
        [
            str(problem),
            str(len({row["policy"] for row in found})),
            f"{np.median([row['seconds'] for row in found]):.0f} s",
        ]
        for (problem,), found in grouped(rows, "problem").items()
    ]


def snapshots(folder: Path) -> list[list[str]]:
    """Our rollouts of DOPE's snapshots, all draws together, beside DOPE's published returns."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for file in sorted(folder.glob("*.json")):
        facts = json.loads(file.read_text(encoding="utf-8"))
        if "DOPE" in facts.get("family", {}).get("returns", {}):
            found[facts["environment"]].append(facts)
    lines = []
    for environment, draws in found.items():
        dope = draws[0]["dope"]
        ours = [_mean([facts["family"]["returns"][policy] for facts in draws]) for policy in ("DOPE", "behaviour")]
        lines.append([environment, f"{dope['return']:.0f} ± {dope['std']:.0f}", *ours])
    return lines


def _mean(draws: Sequence[Sequence[float]]) -> str:
    """The mean of several means of equally many episodes, with its error."""
    means, errors = np.array(draws).T
    return f"{means.mean():.0f} ± {np.sqrt(np.square(errors).sum()) / len(errors):.0f}"


HEADINGS = (
    "problem", "estimator", "estimates", "rank correlation", "mean error", "median error / spread", "coverage",
    "regret@1",
)  # fmt: skip


def report(out: Path, results: Path) -> Path:
    """Write RESULTS/ope.md and copy the tables beside it."""
    rows = pooled(read(out))
    keep = allowed(rows)
    pieces = {
        "VERDICTS": table(
            ("verdict", "estimates", "median error / spread", "90 % of errors below", "coverage"), verdicts(rows)
        ),
        "KEPT": table(HEADINGS, measures(rows, keep)),
        "ALL": table(HEADINGS, measures(rows, None)),
        "DOPE": table(
            ("environment", "DOPE's table (± deviation)", "our rollouts (± error)", "behaviour"), snapshots(out)
        ),
        "FINDINGS": FINDINGS,
        "COSTS": table(("problem", "policies", "seconds"), costs(rows)),
    }
    text = PAGE
    for name, content in pieces.items():
        text = text.replace(f"<{name}>", content)
    folder = results / "ope"
    folder.mkdir(parents=True, exist_ok=True)
    for file in sorted([*out.glob("*.csv"), *out.glob("*.json")]):
        shutil.copyfile(file, folder / file.name)
    write_text(results / "ope.md", text)
    return results / "ope.md"


PAGE = """# Off-policy estimates against the truth

What `sapp evaluate --offline` says a policy is worth, beside what it is worth. Values are normalised, (1−γ) ×
discounted return (reward per step). Three estimators are fitted to the same logs: fitted Q evaluation (FQE),
DualDICE, and their doubly robust combination ([how](../offline-evaluation.md)). *Spread* is the range of true values
among a problem's policies; *regret@1* is what taking the policy of highest estimate loses, as a share of that range
(0 % is best); *coverage* is the share of 95 % intervals that hold the truth (give or take two standard errors where the
truth itself is a mean of rollouts).

Problems:

- **hopper, walker2d, halfcheetah, family**: logs of D4RL's medium behaviour policy, regenerated under D4RL's physics,
  60,000 transitions, γ = 0.99. Twelve policies: the behaviour with less and more noise, with shifted actions, blends
  with the snapshot that the DOPE benchmark published, and that snapshot itself. Three draws of the logs; truth: 60
  episodes each of our own rollouts.
- **checkpoints**: CQL at three weights after 100, 400 and 1,200 steps on each draw of the logs, played
  deterministically (20 episodes). These are early, mostly bad policies, far from the data: what an estimator must not
  be fooled by.
- **sepsis**: ICU-Sepsis (716 states, 25 actions, γ = 0.99) with 500, 2,000 and 5,000 logged patients: eight policies
  around the clinicians', exact true values, 20 draws of the logs, equations solved exactly.
- **ward**: a finite task of the same form (12 states) with 200 logged patients, networks instead of exact solutions, 3
  draws of the logs.

## Does the verdict mean anything?

Every estimate comes with a verdict. The quoted estimates (doubly robust where the ratios are healthy, else FQE), by
verdict:

<VERDICTS>

Refused estimates are never quoted by the command; here they only show why. Most are of policies whose actions the logs
do not hold, where FQE diverges.

## Estimates that were not refused

<KEPT>

## All estimates

<ALL>

## What it says

<FINDINGS>

## True returns of DOPE's snapshots

<DOPE>

Undiscounted returns of the same policies, DOPE's published ones beside our rollouts.

## Cost

All policies of a problem are fitted at once, as one compiled program. Seconds on one or two processor cores that other
work shared (the median of the draws): upper bounds, not a benchmark. No accelerator was used.

<COSTS>

## Make it again

```
python -m studies.ope.ope locomotion --environment hopper --policies POLICIES --dope DOPE --out OUT --seed 0 \\
    --transitions 60000 --truth 20 --steps 4000 --bags 4 --hidden 64 64 --batch 128 --value-lr 1e-3 --nu-lr 1e-3 \\
    --checkpoint-hidden 64 64 --weights 0.5 5 20 --checkpoint-steps 100 400 1200
python -m studies.ope.ope sepsis --out OUT
python -m studies.ope.ope ward --out OUT --draws 3
python -m studies.ope.ope report --out OUT --results docs/results
```

Once for each environment and `--seed` 0, 1, 2 (a draw of the logs each). The tables are in [ope/](ope).
"""

FINDINGS = """- FQE and the combination are right where the logs hold the policy's actions and useless where they do
  not; the verdict mostly tells these apart. What it trusted lay within a tenth of the spread (median); 98 % of those
  intervals hold the truth (18 of 19 on locomotion, the rest on finite tasks).
- On finite tasks, where sampling is the only error, the combination's intervals cover 96 to 100 % and FQE's 86 to 92 %;
  both rank policies almost perfectly.
- On locomotion, over three draws of the logs, FQE's intervals of what was not refused cover 88 to 94 %, the
  combination's 67 to 75 %: they are narrower, and miss a bias that Q and ζ share. It comes back in every draw (blends
  on hopper are put too low, less noise on walker2d too high), so more bags or episodes would not mend it.
  On halfcheetah ratios that are barely healthy throw the combination off where FQE is right. Of the two, take FQE's
  interval.
- Rank correlation needs something to rank: the true values of walker2d's policies lie within a few of their own
  standard errors of one another, and no estimator orders them well.
- DualDICE alone is the weakest. On finite tasks it loses the mass of pairs it has not seen; on locomotion at γ = 0.99
  it has not converged in the steps given. It earns its place as FQE's check.
- DOPE's own snapshots were trained elsewhere: three quarters and more of their actions are off these logs, and every
  estimate of them is refused, in every draw. On halfcheetah that saves the reader from values between −2.4 and 2.4
  where the truth is 6.4; on walker2d FQE's 2.0 to 2.2 would have been right. A negative result about the data either
  way.
- Of 81 early checkpoints 72 are refused (FQE's values of them reach 10⁵ where the truth is 0.1 to 1.3), none is
  trusted, and nine pass as doubtful, all of them wrong: on halfcheetah FQE says 2.9 [2.3, 3.4] for a policy that is
  worth nothing, although only a tenth of its actions at logged states are rare. Its own path leaves the logged states,
  which no sign taken at those states shows; that DualDICE was unhealthy is the only warning. Take *doubtful* at its
  word."""
