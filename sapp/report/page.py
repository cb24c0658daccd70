"""The page: one HTML text with everything in it."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path

from sapp.core.version import __version__
from sapp.experiments.paper import REMARKS
from sapp.report.assets import SCRIPT, STYLE
from sapp.report.chart import Chart, svg
from sapp.report.content import CONTROL_WORDS, Content, configuration_text

PICTURE_BYTES = 8_000_000
"""What animated pictures may add to a page."""

GLOSSARY = {
    "offline reinforcement learning": "learning how to act from logs of past behaviour alone",
    "pessimism": "valuing what the logs do not cover lower than it looks, so that the policy stays where it knows",
    "state weight": "by how much pessimism is strengthened or weakened in a state; CQL uses 1 everywhere",
    "state ratio": "how much more often the learned policy visits a state than the logs do; estimated by DualDICE",
    "ζ": "DualDICE's estimate of the same ratio for a state and an action; its mean over the logs should be 1",
    "effective sample size": "the share of the logs that still counts once ratios weight them; near 0 the estimate "
    "rests on a handful of rows",
    "normalised score": "0 for random actions, 100 for the reference expert of the task, as D4RL defines it",
    "95 % interval": "from drawing seeds and episodes anew many times (bootstrap); narrow only where both agree",
    "interquartile mean": "the mean of the middle half of all runs, which single lucky runs cannot move much",
    "paired difference": "two methods compared on the same seed and the same start states, so shared luck cancels",
}


def page(contents: Sequence[Content], title: str = "Results") -> str:
    """The whole page."""
    sections = "".join(_section(each, number) for number, each in enumerate(contents))
    links = "".join(
        f'<li><a href="#e{number}">{escape(each.experiment.title)}</a></li>' for number, each in enumerate(contents)
    )
    members = sum(len(each.experiment.members) for each in contents)
    sources = ", ".join(dict.fromkeys(each.experiment.source for each in contents))
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        # no icon is fetched, nothing may be loaded: the page is all there is
        '<link rel="icon" href="data:,"><meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">"
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>"
        '<a class="skip" href="#main">Skip to the results</a>'
        f"<header><h1>{escape(title)}</h1><p>Offline reinforcement learning with state-aware pessimism: "
        f"{members} trained policies, final checkpoints first, every number with its interval and runs.</p></header>"
        f'<nav aria-label="Contents"><ul>{links}<li><a href="#words">Words used here</a></li></ul></nav>'
        f'<main id="main">{sections}{_words(contents)}</main>'
        f'<footer><p class="soft">Made by sapp {escape(__version__)} from {escape(sources)}.</p></footer>'
        f"<script>{SCRIPT}</script></body></html>\n"
    )


def _section(content: Content, number: int) -> str:
    experiment = content.experiment
    identity = f"e{number}"
    tables = {name: table.html(identity) for name, table in content.tables.items()}
    parts = [
        f'<section id="{identity}" data-experiment="{escape(experiment.name)}" aria-labelledby="{identity}-h">',
        f'<h2 id="{identity}-h">{escape(experiment.title)}</h2>',
        f"<p>{escape(experiment.question)}</p>",
        _cards(content),
        f"<h3>In short</h3><ul>{''.join(f'<li>{escape(sentence)}</li>' for sentence in content.sentences)}</ul>",
        _controls(content, identity),
    ]
    parts += ["<h3>Scores</h3>", tables.get("scores", "<p>No evaluations were recorded.</p>")]
    if "differences" in tables:
        parts += [f"<h3>{escape(experiment.focus)} against the others</h3>", tables["differences"]]
    if "aggregates" in tables:
        parts += ["<h3>Over all datasets</h3>", tables["aggregates"]]
    if content.profile is not None:
        told = "Share of all runs, over datasets and seeds, that score above a threshold; higher is better."
        parts.append(f'<div class="plots">{_figure(content.profile, f"{identity}-profile", told)}</div>')
    if content.curves:
        told = "Mean over seeds and episodes; shaded: 95 % interval; dotted: the paper after one million steps."
        figures = (_figure(chart, f"{identity}-c{i}", told, name) for i, (name, chart) in enumerate(content.curves))
        parts += ["<h3>Learning curves</h3>", f'<div class="plots">{"".join(figures)}</div>']
    parts.append("<h3>Weights and ratios over training</h3>")
    if content.diagnostics:
        told = "Mean over seeds; shaded: from the lowest seed to the highest."
        figures = (
            _figure(chart, f"{identity}-d{i}", told, name) for i, (name, chart) in enumerate(content.diagnostics)
        )
        parts.append(f'<div class="plots">{"".join(figures)}</div>')
    else:
        parts.append('<p class="soft">These runs came without their metrics, so their weights cannot be drawn.</p>')
    parts += [tables[name] for name in ("diagnostics", "quality", "events") if name in tables]
    if experiment.videos:
        parts += ["<h3>Policies at work</h3>", f'<div class="plots">{"".join(_pictures(experiment.videos))}</div>']
    if "cost" in tables:
        parts += ["<h3>Cost</h3>", tables["cost"]]
    parts += ["<h3>Configuration and provenance</h3>", tables.get("settings", ""), tables.get("data", "")]
    parts.append(_configurations(content))
    parts.append(f"<details><summary>Runs behind the numbers</summary>{tables.get('runs', '')}</details></section>")
    return "".join(parts)


def _cards(content: Content) -> str:
    experiment = content.experiment
    seeds = sorted({len(cell.seeds) for cell in content.cells})
    steps = sorted({cell.step for cell in content.cells})
    facts = {
        "datasets": str(len(experiment.datasets)),
        "methods": str(len(experiment.columns)),
        "seeds a cell": _range(seeds),
        "gradient steps": _range(steps),
        "trained policies": str(len(experiment.members)),
    }
    items = "".join(f"<li><b>{escape(value)}</b>{escape(name)}</li>" for name, value in facts.items())
    return f'<ul class="cards">{items}</ul>'


def _range(values: Sequence[int]) -> str:
    if not values:
        return "none"
    return f"{values[0]:,}" if values[0] == values[-1] else f"{values[0]:,} to {values[-1]:,}"


def _controls(content: Content, identity: str) -> str:
    columns = content.experiment.columns
    boxes = "".join(
        f'<label title="{escape(CONTROL_WORDS.get(name, name))}"><input type="checkbox" checked '
        f'data-show="{escape(name)}"><span class="swatch" style="background:var(--c{i % 12})"></span>'
        f"{escape(name)}</label>"
        for i, name in enumerate(columns)
    )
    return (
        '<div class="controls" role="group" aria-label="What to show">'
        f'<label>Dataset <input type="search" placeholder="such as hopper" aria-controls="{identity}"></label>'
        f"<fieldset><legend>Methods</legend>{boxes}</fieldset>"
        '<span class="soft" data-count role="status"></span></div>'
    )


def _figure(chart: Chart, identity: str, told: str, dataset: str = "") -> str:
    mark = f' data-dataset="{escape(dataset)}"' if dataset else ""
    legend = "".join(
        f'<li data-method="{escape(curve.column)}"><span class="swatch" '
        f'style="background:var(--c{list(chart.palette).index(curve.column) % 12})"></span> {escape(curve.column)}</li>'
        for curve in chart.curves
    )
    return (
        f'<figure{mark}><h4>{escape(chart.title)}</h4><ul class="legend">{legend}</ul>{svg(chart, identity)}'
        f"<figcaption>{escape(told)}</figcaption></figure>"
    )


def _pictures(files: Sequence[Path]) -> Iterator[str]:
    """Animated pictures, as many as a page can carry, each inside the page itself."""
    left = PICTURE_BYTES
    for file in files:
        content = file.read_bytes()
        if len(content) > left:
            continue
        left -= len(content)
        name = escape(file.stem.replace("_", " / "))
        yield (
            f'<figure><h4>{name}</h4><img class="strip" alt="One episode of {name}, animated" '
            f'src="data:image/gif;base64,{base64.b64encode(content).decode()}">'
            "<figcaption>One episode of the newest checkpoint.</figcaption></figure>"
        )


def _configurations(content: Content) -> str:
    experiment = content.experiment
    shown = [column for column in experiment.columns if any(m.column == column for m in experiment.members)]
    return "".join(
        f"<details><summary>Configuration of {escape(column)}</summary>"
        f'<pre tabindex="0">{escape(configuration_text(experiment, column))}</pre></details>'
        for column in shown
    )


def _words(contents: Iterable[Content]) -> str:
    columns = dict.fromkeys(column for each in contents for column in each.experiment.columns)
    methods = {name: CONTROL_WORDS[name] for name in columns if name in CONTROL_WORDS}
    entries = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(what)}</dd>" for name, what in {**methods, **GLOSSARY}.items()
    )
    remarks = "".join(f"<li>{escape(remark)}</li>" for remark in REMARKS)
    return (
        f'<section id="words" aria-labelledby="words-h"><h2 id="words-h">Words used here</h2><dl>{entries}</dl>'
        f"<h3>About the paper's numbers</h3><ul>{remarks}</ul></section>"
    )
