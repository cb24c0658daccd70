"""The tables of the study, from its rows."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sapp.core.statistics import spearman
from sapp.ope.offline import NAMES
from sapp.report.report_tables import Table, table
from studies.ope.rows import Row, read

HEADINGS = (
    "problem", "estimator", "estimates", "rank correlation", "mean error", "median error / spread", "coverage",
    "regret@1",
)  # fmt: skip

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


def regret_at_1(estimates: Sequence[float], truth: Sequence[float]) -> float:
    """True value lost by taking the policy of highest estimate, as a share of the truth's range (0 best, 1 worst)."""
    real = np.asarray(truth, np.float64).ravel()
    span = float(np.ptp(real))
    return float(real.max() - real[int(np.argmax(estimates))]) / span if span > 0 else 0.0


def measures(rows: Sequence[Row], keep: set[tuple[Any, ...]] | None) -> list[list[str]]:
    """One line per problem and estimator: policies, rank correlation, error, coverage, regret."""
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

def tables(folder: Path) -> list[Table]:
    """All tables of a folder of rows."""
    rows = pooled(read(folder))
    return [
        table(
            "Verdicts", "How the quoted estimates of each verdict did.",
            ("verdict", "estimates", "median error / spread", "90 % of errors below", "coverage"), verdicts(rows),
        ),
        table("Kept", "Estimates that were not refused.", HEADINGS, measures(rows, allowed(rows))),
        table("All", "All estimates.", HEADINGS, measures(rows, None)),
        table(
            "Snapshots", "Returns of the published snapshots, theirs and ours, and of the behaviour.",
            ("environment", "DOPE's table (± deviation)", "our rollouts (± error)", "behaviour"), snapshots(folder),
        ),
        table("Cost", "Seconds for all policies of a problem.", ("problem", "policies", "seconds"), costs(rows)),
    ]  # fmt: skip
