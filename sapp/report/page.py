"""The page: one HTML text with everything in it, from templates/page.html."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sapp.core.version import __version__
from sapp.experiments.paper import REMARKS
from sapp.report.chart import place, svg
from sapp.report.content import Content, configuration_text
from sapp.report.rendering import render, verbatim

PICTURE_BYTES = 8_000_000
"""What animated pictures may add to a page."""

METHODS = {
    "CQL": "conservative Q-learning: equally pessimistic in every state",
    "SA-CQL": "state-aware CQL: more pessimistic in states that the learned policy visits more often than the logs do",
    "shuffled": "control: SA-CQL's own weights, at the wrong states",
    "matched": "control: SA-CQL's mean weight in every state, that is, CQL with another penalty weight",
    "random": "control: weights drawn at random from SA-CQL's range (the paper's s-SA-CQL)",
    "CQL-half": "CQL with half its penalty everywhere",
}
"""Methods in plain words."""

GLOSSARY = {
    "offline reinforcement learning": "learning how to act from logs of past behaviour alone",
    "pessimism": "valuing actions that the logs do not cover less than they seem worth: the policy stays near the logs",
    "state weight": "the factor that multiplies the penalty of a state; CQL uses 1 everywhere",
    "state ratio": "how much more often the learned policy visits a state than the logs do, estimated in training",
    "ζ": "DualDICE's estimate of the same ratio for a state and an action; its mean over the logs should be 1",
    "effective sample size": "the share of the logs that carries a mean weighted by the ratios; near 0 the estimate "
    "rests on a handful of rows",
    "normalised score": "0 for random actions, 100 for the reference expert of the task, as D4RL defines it",
    "95 % interval": "for the mean over all possible seeds; Student's, which is wide because three seeds say "
    "little. It covers less than 95 % of the time where a few seeds collapse and the others agree",
    "Holm's correction": "of many differences some look real by chance; with this correction the chance that any one "
    "of a family is wrongly called a difference is 5 %",
    "interquartile mean": "the mean of the middle half of all runs, which a single lucky run cannot move much",
    "paired": "two methods compared seed by seed, on the same start states, so that shared luck cancels",
}


@dataclass(frozen=True)
class Picture:
    """An animated picture inside the page."""

    name: str
    data: str


def page(contents: Sequence[Content], title: str = "Results") -> str:
    """The report as one HTML page that needs no network."""
    variants = dict.fromkeys(variant for each in contents for variant in each.experiment.variants)
    words = {name: METHODS[name] for name in variants if name in METHODS} | GLOSSARY
    compared = any(cell.paper is not None for each in contents for cell in each.cells)
    return render(
        "page.html", contents=contents, title=title, version=__version__, words=words, methods=METHODS,
        remarks=REMARKS if compared else (), members=sum(len(each.experiment.members) for each in contents),
        sources=", ".join(dict.fromkeys(each.experiment.source for each in contents)),
        style=verbatim("style.css"), script=verbatim("script.js"),
        svg=svg, place=place, cards=cards, pictures=pictures, configuration=configuration_text,
    )  # fmt: skip


def cards(content: Content) -> dict[str, str]:
    """The size of an experiment, at a glance."""
    experiment = content.experiment
    return {
        "dataset" if len(experiment.datasets) == 1 else "datasets": str(len(experiment.datasets)),
        "method" if len(experiment.variants) == 1 else "methods": str(len(experiment.variants)),
        "seeds per method and dataset": _range([len(cell.seeds) for cell in content.cells]),
        "gradient steps": _range([cell.step for cell in content.cells]),
        "trained policies": str(len(experiment.members)),
    }


def _range(values: Sequence[int]) -> str:
    if not values:
        return "none"
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def pictures(files: Sequence[Path]) -> Iterator[Picture]:
    """Animated pictures, as many as a page can carry."""
    left = PICTURE_BYTES
    for file in files:
        content = file.read_bytes()
        if len(content) <= left:
            left -= len(content)
            yield Picture(file.stem.replace("_", " / "), base64.b64encode(content).decode())
