"""Fragments of the studies' pages, from rows and code: what is solved exactly, estimated, replayed or computed."""

from __future__ import annotations

import csv
import inspect
import json
import re
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest
from fragments import ROOT, csv_rows, fragments_of, word

from sapp.algorithms import CQL
from sapp.core.statistics import Estimate
from sapp.ope.diagnostics import Verdict
from sapp.ope.offline import SHARE
from sapp.tabular.divergence import DIVERGENCES
from sapp.tabular.tasks import icu_sepsis, ward
from sapp.tabular.uneven_coverage import CASES, make_world
from sapp.theory.audit import ALPHAS, DISCOUNTS, audit, says_where
from sapp.theory.chain import Setting, choice
from sapp.theory.chain_tuned import GRID, METHODS, SHARES
from sapp.theory.chain_tuned import weights as spread_over_chain
from sapp.theory.families import FAMILIES, REDRAWN
from sapp.theory.statements import Case
from sapp.training.guard import LOST
from sapp.weights import OccupancyModel
from sapp.weights.classifier import LOG_RATIO_LIMIT
from sapp.weights.successor import FINE
from studies.arithmetic.arithmetic import agreement, read_rows
from studies.ope import coverage
from studies.ope.control import BEYOND, PROBLEMS
from studies.ope.policies import FAMILY
from studies.ope.rows import read as read_estimates
from studies.ope.tables import covered, regret_at_1
from studies.physics.tables import rows as replayed
from studies.sepsis.experiment import summarise
from studies.sepsis.methods import learn
from studies.sepsis.rows import read_rows as read_sepsis
from studies.sepsis.spread import CEILING, Spread
from studies.state_ratios.judging import WEIGHT_BATCH
from studies.state_ratios.page import LABELS, SHIFTS
from studies.state_ratios.page import cell as of_seeds
from studies.state_ratios.page import rows as ratios
from studies.state_ratios.problems import Problem, make_problem
from studies.state_ratios.truth import NOISES, REFERENCE, Scale
from studies.theory.__main__ import tuned_case
from studies.theory.comparison import compare
from studies.theory.rows import read_chain
from studies.uneven_coverage.learned import KINDS, learner

STUDIES = ROOT / "studies"
PARTS = {2: "half", 3: "third", 4: "quarter", 5: "fifth"}
"""What one in so many is called."""


def default(of: Callable[..., Any], name: str) -> Any:
    """What a function takes an argument to be if it is not given."""
    return inspect.signature(of).parameters[name].default


LEVEL = f"{100 * default(Estimate.interval, 'confidence'):g} %"
"""Of all intervals."""


def found_in(file: str, pattern: str) -> str:
    """What a pattern finds in a file, everywhere the same: for numbers that stand in the middle of a program."""
    (found,) = set(re.findall(pattern, (ROOT / file).read_text(encoding="utf-8")))
    return str(found)


def listed(values: Sequence[object], last: str = "and") -> str:
    """Several, with commas and a word before the last."""
    *some, end = map(str, values)
    return f"{', '.join(some)} {last} {end}"


def power(number: float) -> str:
    """A power of ten."""
    exponent = round(np.log10(number))
    assert number == pytest.approx(10.0**exponent)
    return "10" + str(exponent).translate(str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻"))


@fragments_of("studies/physics/README.md")
def physics() -> Iterator[str]:
    """How much was replayed, and what the same rows are off by without the restored physics."""
    made = replayed()
    files = {row["file"] for row in made}
    (rows,) = {int(row["rows"]) for row in made if row["file"].startswith("halfcheetah")}
    yield f"the first {word(rows // 1000)} episodes of {word(len(files))} genuine D4RL files"
    yield f"D4RL's files of the {word(len({name.split('_')[0] for name in files}))} environments"
    plain = [float(row["median"]) for row in made if row["physics"] == "v4"]
    yield f"off by {min(plain):.2f} to {max(plain):.2f} in the median"
    assert all(row["terminals"] == "0" for row in made if row["physics"] == "d4rl"), "no end of an episode differs"


@fragments_of("studies/arithmetic/README.md")
def arithmetic() -> Iterator[str]:
    """What was trained, what became of the float16 kernel, and when a member has lost its targets."""
    rows = read_rows(STUDIES / "arithmetic" / "rows.csv")
    end = max(row.step for row in rows)
    yield f"to score the {word(3 * CQL().action_samples)} sampled actions of CQL's penalty"
    widths = found_in("studies/arithmetic/arithmetic.py", r'"--hidden", default="([\d,]+)"').split(",")
    (width,) = set(widths)
    seeds = listed(sorted({row.seed for row in rows}))
    yield f"CQL with {word(len(widths))} hidden layers of {width}, batches of {CQL().batch_size}, {end:,} steps"
    yield f"{end:,} steps and seeds {seeds} on one H200"
    found = agreement(rows, "tf32", "float16")
    for each in found:
        own = [row for row in rows if row.dataset == each.dataset]
        late = [row.td for row in own if row.precision == "float16" and row.step > end * 2 / 3]
        assert each.td[1] == pytest.approx(np.mean(late)), "tables compare the last third"
        early = [
            np.mean([row.td for row in own if row.precision == name and row.step <= end / 3])
            for name in ("tf32", "float16")
        ]
        assert abs(early[1] / early[0] - 1) < 0.2, "for the first third they agree"
    yield "kernel matched TF32 for the first third of training"
    ratio = [each.td[1] / each.td[0] for each in found]
    yield f"over the last its TD errors were {min(ratio):.0f} to {max(ratio):.0f} times TF32's"
    yield "means over both seeds and the last third of training"
    least = float(np.finfo(np.float16).smallest_subnormal)
    yield f"float16 cannot represent numbers below {least / 1e-8:.0f}·{power(1e-8)}"
    yield f"whose TD error exceeds {word(LOST)} times what one step can add"


@fragments_of("studies/uneven_coverage/README.md")
def uneven_coverage() -> Iterator[str]:
    """The worlds, their ratios, and what the networks were trained with."""
    text = (STUDIES / "uneven_coverage" / "README.md").read_text(encoding="utf-8")
    count = word(len(re.findall(r"(?m)^\d\. ", text)))
    yield f"Where {count} conditions hold"
    yield f"{count} conditions follow, which"
    setting = CASES["uneven coverage"]
    world = make_world(setting, 0)
    doors = slice(0, setting.doors)
    halls = slice(setting.doors, None)
    there, later = (float(world.occupancy[part].sum() / world.share[part].sum()) for part in (doors, halls))
    yield f"Every episode of a {word(setting.length)} steps begins with one decision"
    assert setting.discount == 1 - setting.discount == 0.5, "the first decision counts as much as all others"
    yield "γ = ½ makes that decision count as much as all later ones together"
    yield f"(the ratio is {there:.0f} there and {later:.1f} in the hall)"
    alphas: dict[str, set[float]] = {}
    worlds = set()
    for row in csv_rows("uneven_coverage/rows/learned.csv"):
        alphas.setdefault(row["column"], set()).add(float(row["alpha"]))
        worlds.add(row["world"])
    plain, shuffled = (
        [f"{each:.2g}" if each < 100 else f"{each:.0f}" for each in sorted(alphas[name])]
        for name in ("CQL", "shuffled")
    )
    assert alphas["CQL"] == alphas["SA-CQL, true ratio"]
    own = learner(setting, world, "known", "real", 1.0)
    steps = int(found_in("studies/uneven_coverage/__main__.py", r'"--steps", type=int, default=([\d_]+)'))
    sizes = "-".join(map(str, own.network.hidden))
    yield f"networks ({sizes}, {steps:,} steps, batch size {own.batch_size}) on {len(worlds)} worlds"
    yield f"(α of {listed(plain)} for CQL and SA-CQL; {listed(shuffled)} for shuffled"
    every = " ".join(f"{each:g}" for each in sorted(set.union(*alphas.values())))
    yield f'`--learned --worlds {len(worlds)} --cases "uneven coverage" --estimators known --alphas {every}` repeats'
    controls = set(KINDS["known"]) - {"uniform", "real"} - set(alphas)
    yield f"repeats this with {word(len(controls))} more controls"


@fragments_of("studies/state_ratios/README.md")
def state_ratios() -> Iterator[str]:
    """Rank correlations of the one-step model and of DualDICE's regression; problems, truths, and what was trained."""
    made, full = ratios(), Scale()

    def near(estimator: str) -> tuple[list[str], str]:
        named = ("corridors", "pendulum", "halfcheetah")
        problems = [
            name for name in named if any((row["problem"], row["estimator"]) == (name, estimator) for row in made)
        ]
        means = [np.mean(of_seeds(made, p, estimator, shift, "spearman")) for p in problems for shift in SHIFTS]
        return problems, f"{min(means):.2f} to {max(means):.2f}".replace("-", "−")

    problems, ends = near("now")
    yield f"ranks logged states on {word(len(problems))} problems"
    yield f"up to {word(max(SHIFTS))} standard deviations away (mean rank correlations of {ends})"
    few, ends = near("dualdice regression")
    yield f"DualDICE, on {word(len(few))}, has {ends}, and its values explode"
    close, far = (np.mean(of_seeds(made, "corridors", "dualdice ζ", shift, "largest")) for shift in (0.0, 4.0))
    assert far > 1000 * close, "its values explode"
    corridors, cheetah = make_problem("corridors"), make_problem("halfcheetah")
    size = corridors.env.observe(corridors.env.start(jax.random.PRNGKey(0), 1)).shape[-1]  # type: ignore[union-attr]
    yield f"corridors ({size}-D state, {len(corridors.direction)}-D action, a terminal goal)"
    yield f"The behaviour policy generates {full.copies * full.record / 1000:.0f}k transitions"
    yield f"k = {', '.join(f'{each:g}' for each in SHIFTS[:-1])} or {SHIFTS[-1]:g} of the behaviour's"
    spread = PARTS[round(1 / default(Problem.policy, "spread"))]
    yield f"on HalfCheetah all {word(len(cheetah.direction))} together), with {spread} its spread"
    first = PARTS[int(found_in("studies/state_ratios/estimates.py", r"ramp=max\(1\.0, scale\.steps / (\d)\)"))]
    yield f"({full.steps // 1000}k steps), k grows from {min(SHIFTS):g} to its value over the first {first}"
    seeds = {len(of_seeds(made, name, "now", shift, "spearman")) for name in problems for shift in SHIFTS}
    assert seeds == {full.seeds}
    yield f"γ = {full.discount:g}, {word(full.seeds)} seeds."
    assert corridors.cells is not None
    cells = int(corridors.cells(np.array([[1.0, 1.0]]))[0]) + 1
    side = round(cells**0.5)
    assert side**2 == cells
    yield f"both distributions are counted in {side} × {side} cells"
    halves = int(found_in("studies/state_ratios/truth.py", r"reshape\((\d), -1, each"))
    own = REFERENCE * full.truth_copies * full.truth_steps / 1e6
    theirs = 2 * min(full.truth_copies, 2 * full.copies) * full.record / 1e6  # fewer copies where they run on the host
    assert round(own, 1) == 1, "a million"
    yield f"the mean of {word(halves)} classifiers, each trained on its own {PARTS[halves]} of a million true samples"
    yield f"{theirs:.1f} million of the behaviour (batches of {full.reference_batch:,}, {full.reference_steps:,} steps"
    yield f"true log-ratios over {full.rows:,} logged states"
    yield f"weights made of them in batches of {WEIGHT_BATCH}"
    yield f"seen, averaged over {full.chunk:,} steps"
    ways = {row["estimator"] for row in made} & {name for name in LABELS if name.startswith("dualdice")}
    yield f"read out in {word(len(ways))} ways"
    assert {row["problem"] for row in made if row["estimator"].startswith("dualdice")} == set(few)
    yield f"One H200, {'-'.join(map(str, full.hidden))}, {full.steps:,} steps, {word(full.seeds)} seeds"
    yield f"(bounded at {LOG_RATIO_LIMIT:g})"
    assert NOISES[0.5].endswith("half noise")
    yield "*Half noise* and *mean model* refer to"
    yield f"relative to their change, at least {FINE:g}"
    assert round(1 / (1 - full.discount)) == round(1 / OccupancyModel().model_average) == 100, "hundred"
    yield f"At k = {min(SHIFTS):g} on HalfCheetah, {spread} the action noise makes the gait a little tighter"
    yield "reproduces such a small difference over a hundred steps"
    yield "the model's parameters over about a hundred steps"


@fragments_of("studies/sepsis/README.md")
def sepsis() -> Iterator[str]:
    """The task, its logs, how weights are spread, and the grids of either divergence."""
    task = icu_sepsis()
    states, doses, _ = task.mdp.transition.shape
    inside = ~task.ends
    paid = task.mdp.transition[inside][:, :, task.paying]
    assert task.mdp.reward[inside] == pytest.approx(paid), "1 on survival, nothing else"
    yield f"{states} states, {doses} doses, reward 1 on survival"
    found = {name: read_sepsis(STUDIES / "sepsis" / "rows" / f"{name}.csv") for name in ("kl", "cql")}
    sizes = {name: sorted({row.size for row in rows}) for name, rows in found.items()}
    (discount,) = {row.discount for rows in found.values() for row in rows}
    yield f"about {listed([power(size) for size in sizes['kl']], 'or')} transitions; γ = {discount:g}"
    yield f"an episode lasts {word(round(task.length))} steps"
    yield f"every method is uniform over all {doses}."
    weights = [row.mean_weight for rows in found.values() for row in rows if row.role == "evaluation"]
    assert all(abs(each - 1) < 0.021 for each in weights if each > 0), "but for references and counts"
    yield "w and f(w) are scaled to mean 1 under d^D"
    step = task.mdp.step(task.behaviour)[np.ix_(inside, inside)]
    stays = (1 - discount) * np.linalg.solve(np.eye(len(step)) - discount * step.T, task.mdp.start[inside]).sum()
    yield f"would have a mean of about {stays:.1f}."
    yield f"w, √w and min(w, {CEILING:g}) are differentiated through"
    log = np.linspace(0.0, 1.0, 10_001)
    even = np.full(len(log), 1 / len(log))
    stretched = Spread("log-min-max").fitted(np.exp(log), even)
    values = stretched.parts(np.exp(log))[0] / stretched.scale
    assert (values.min(), values.max()) == (0.0, 1.0)
    low, high = (float(np.mean(values <= 0)), float(np.mean(values < 1)))
    yield f"(b₀ = 0, b₁ = 1, ends at the {100 * low:.0f} % and {100 * high:.0f} % quantiles over the log)"
    yield "it stretches any spread of w to [0, 1]"
    drawn = np.sort(learn("random", SimpleNamespace(states=4_000, solve=lambda alpha, given: given), 0.1))  # type: ignore[arg-type]
    assert np.abs(drawn - np.linspace(0.0, 1.0, len(drawn))).max() < 0.05
    yield "*Random* weights are uniform in (0, 1)"
    grids, logs = {}, {}
    for name, rows in found.items():
        tuning = [row for row in rows if row.role == "tuning"]
        grids[name] = sorted({row.alpha for row in tuning if row.method == "pp"})
        counts = sorted({row.alpha for row in tuning if row.method == "count"})
        assert counts == pytest.approx([10 * alpha for alpha in grids[name]]), "ten times as large"
        logs[name] = [len({row.draw for row in rows if row.role == role}) for role in ("tuning", "evaluation")]
    yield f"over {logs['kl'][0]} tuning logs of each size"
    yield f"The table covers {logs['kl'][1]} other logs, with {LEVEL} intervals"
    ends = f"{power(grids['kl'][0])} to {grids['kl'][-1]:g}"
    yield f"The grid has {len(grids['kl'])} values from {ends} (for counts, ten times as large)"
    least = [line for line in summarise(found["kl"]) if line.size == sizes["kl"][0] and line.alpha > 0]
    assert {line.method for line in least if line.alpha != grids["kl"][0]} == {"count"}
    assert sizes["kl"][0] == 1000, "thousand"
    pairs = int(np.sum(task.behaviour[inside] > 0))
    yield f"At {power(1000)} all methods except counts choose the smallest α: a thousand transitions"
    yield f"a thousand transitions say little about {pairs} pairs"
    yield f"Σπ²/β̂ − 1 at {word(len(sizes['cql']))} sizes, on other logs"
    yield f"({logs['cql'][0]} to tune, {logs['cql'][1]} to evaluate)"
    ends = f"{power(grids['cql'][0])} to {grids['cql'][-1]:g}"
    yield f"({word(len(grids['cql']))} values of α from {ends})"
    yield f"a matrix of at most {inside.sum()} × {inside.sum()} serves"


@fragments_of("studies/ope/README.md")
def ope() -> Iterator[str]:
    """How often intervals hold the truth and estimates are trusted, and the problems of both runs."""
    rows = read_estimates(STUDIES / "ope" / "rows" / "control")
    tests = [row for row in rows if coverage.problem_of(row) not in coverage.SET_ON]
    kept = {
        (row["problem"], row["policy"], row["draw"])
        for row, _, verdict in coverage.quoted(tests)
        if verdict is not Verdict.REFUSED and row["exact"] != "True"
    }
    plain = [
        coverage.holds(row, interval)
        for row, interval, _ in coverage.quoted(tests, 1.0)
        if (row["problem"], row["policy"], row["draw"]) in kept
    ]
    yield f"in {sum(plain)} of {len(plain)} cases"
    policies = {
        name: {row["policy"] for row in rows if row["problem"] == name} for name in {r["problem"] for r in rows}
    }
    (each,) = {len(found) for found in policies.values()}
    yield f"a family of {word(each)} policies"
    yield from control_problems()
    wanted, least = (100 * default(coverage.smallest_factor, name) for name in ("wanted", "least"))
    yield f"the smallest for which {wanted:g} % of the intervals on the problems"
    yield f"and {least:g} % on each of them, contain the truth"
    slack = float(found_in("studies/ope/coverage.py", r"slack=(\d\.\d)\)"))
    assert coverage.holds({"truth": 1.0, "truth_error": 0.5}, coverage.Interval(0.0, -1.0, 0.0), slack)
    yield f"*Slack* is {word(slack)} standard errors of the truth itself"
    yield f"or a {PARTS[round(1 / SHARE)]} of the spread from all logged states"
    verdicts = [v for row, _, v in coverage.quoted(rows) if coverage.problem_of(row) in coverage.KINDS["locomotion"]]
    yield f"only {sum(v is Verdict.TRUSTED for v in verdicts)} of {len(verdicts)} estimates get this verdict"
    yield f"the shares for locomotion rest on {word(len(verdicts))} estimates"
    yield f"proves right for all {word(len(coverage.KINDS))} kinds of problem"
    named = ("CartPole", "Acrobot", "InvertedPendulum")
    found = [row for row in rows if (row["estimator"], row["policy"]) == ("dice", "behaviour")]
    found = [row for row in found if coverage.problem_of(row) in named]
    shares = [row["estimate"] / row["truth"] for row in found]
    ((steps, discount),) = {(int(row["steps"]), PROBLEMS[row["problem"]].discount) for row in found}
    yield f"At γ = {discount:g} DualDICE has not converged in {steps:,} steps"
    yield f"({min(shares):.2f} to {max(shares):.2f} of the true value on CartPole, Acrobot and InvertedPendulum"
    yield from earlier_run()


def control_problems() -> Iterator[str]:
    """Sizes of the problems around controllers."""
    locomotion = {PROBLEMS[name] for name in ("hopper", "halfcheetah", "walker2d")}
    (moving,) = {each.transitions for each in locomotion}
    (small,) = {PROBLEMS[name].transitions for name in ("CartPole", "Acrobot", "InvertedPendulum", "MountainCar")}
    point, others = PROBLEMS["point"], [each for name, each in PROBLEMS.items() if name != "point"]
    ((discount, steps),) = {(each.discount, each.steps) for each in others}
    (wide,) = {each.hidden for each in locomotion}
    (narrow,) = {each.hidden for each in PROBLEMS.values() if each not in locomotion}
    yield f"snapshots that come with the package, with {moving:,} transitions"
    yield f"CartPole, Acrobot, InvertedPendulum and MountainCar have {small:,}"
    yield f"Pendulum {PROBLEMS['Pendulum'].transitions:,}, point {point.transitions:,}"
    yield f"(with γ = {point.discount:g}; otherwise {discount:g})"
    yield f"Networks have {narrow[0]} and {narrow[1]} units ({wide[0]} and {wide[1]} on locomotion)"
    bags = found_in("studies/ope/control.py", r'"bags": (\d+)')
    yield f"{steps:,} steps (point: {point.steps:,}) and {word(int(bags))} bags"
    truths = sorted(each.truth for each in PROBLEMS.values())
    yield f"from {truths[0]:,} to {truths[-1]:,} episodes per policy, up to {BEYOND} steps"


def earlier_run() -> Iterator[str]:
    """Problems of the run with D4RL's behaviour policies, and what its tables show."""
    rows = read_estimates(STUDIES / "ope" / "rows")
    facts = [json.loads(file.read_text(encoding="utf-8")) for file in sorted((STUDIES / "ope" / "rows").glob("*.json"))]
    yield f"{word(len({row['estimator'] for row in rows})).capitalize()} estimators are fitted to the same logs"
    assert regret_at_1([1.0, 2.0], [1.0, 2.0]) == 0.0
    yield "(0 % is best)"
    row = {"low": 0.0, "high": 1.0, "truth": 3.0}
    slack = max(n for n in range(1, 9) if covered(row | {"truth_error": 2.0 / n}))
    yield f"(give or take {word(slack)} standard errors where the truth"
    yield f"is the share of {LEVEL} intervals that contain the truth"
    ((size, played, discount),) = {(e["transitions"], e["truth_episodes"], e["settings"]["discount"]) for e in facts}
    draws = {
        kind: len({row["draw"] for row in rows if str(row["problem"]).endswith(kind)}) for kind in ("family", "200")
    }
    yield f"{size:,} transitions, γ = {discount:g}. {word(len(FAMILY)).capitalize()} policies"
    assert {row["policy"] for row in rows if str(row["problem"]).endswith("family")} == set(FAMILY)
    yield f"There are {word(draws['family'])} draws of the logs"
    yield f"the truth is from {played * draws['family']} episodes each of our own rollouts"
    early = [str(row["policy"]).split() for row in rows if str(row["problem"]).endswith("checkpoints")]
    weights, steps = ({words[place] for words in early} for place in (1, 3))
    at = listed([f"{each:,}" for each in sorted(map(int, steps))])
    yield f"CQL with {word(len(weights))} penalty weights after {at} steps on each draw"
    yield f"played deterministically ({played} episodes)"
    patients = sorted({int(row["problem"].split()[1]) for row in rows if row["problem"].startswith("sepsis")})
    of = [row for row in rows if row["problem"].startswith("sepsis")]
    task = icu_sepsis()
    states, actions, _ = task.mdp.transition.shape
    yield f"ICU-Sepsis ({states} states, {actions} actions, γ = {task.mdp.discount:g})"
    around = word(len({row["policy"] for row in of}))
    yield f"with {listed([f'{each:,}' for each in patients])} logged patients: {around} policies"
    yield f"with exact true values, {len({row['draw'] for row in of})} draws of the logs"
    (treated,) = {row["problem"].split()[1] for row in rows if row["problem"].startswith("ward")}
    yield f"({default(ward, 'states')} states) with {treated} logged patients"
    yield f"networks instead of exact solutions, {draws['200']} draws of the logs"
    seeds = ", ".join(f"{each:.0f}" for each in sorted({r["draw"] for r in rows if r["problem"] == "hopper family"}))
    yield f"and `--seed` {seeds} (one draw of the logs each)"


@fragments_of("studies/theory/README.md")
def theory() -> Iterator[str]:
    """What the audit varied and where it says something; the chain; random problems."""
    with open(STUDIES / "theory" / "rows" / "audit.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    says = {
        row["family"]
        for row in rows
        if re.fullmatch(r"theorem[1357]-repaired", row["statement"])
        and int(row["informative"]) >= 0.02 * int(row["checked"])
    }
    yield f"except in {word(len(says))} families built to avoid this"
    assert {row["family"] for row in rows} == set(FAMILIES)
    yield f"# every statement over {word(len(FAMILIES))} families"
    yield f"There are {word(len(FAMILIES))} families"
    yield f"{word(len(REDRAWN))} single MDPs, *{REDRAWN[0]}* and *{REDRAWN[1]}*"
    logs = default(audit, "mdps")
    problems = len(DISCOUNTS) * ((len(FAMILIES) - len(REDRAWN)) * logs + len(REDRAWN))
    assert {int(row["problems"]) for row in csv_rows("theory/rows/verdicts.csv")} == {problems}
    yield f"whose logs are redrawn repeatedly), {logs} logs each"
    yield f"{word(len(DIVERGENCES))} divergences, {word(len(ALPHAS))} values of α, {word(len(DISCOUNTS))} of γ"
    of = SimpleNamespace(discount=0.75)
    of.total = Case.total.fget(of)  # type: ignore[attr-defined]
    assert of.total == 1 / (1 - of.discount)
    (times,) = (
        n
        for n in range(9)
        if list(Case.below_any_loss(of, np.array([n * of.total - 1e-9, n * of.total]))) == [True, False]
    )  # type: ignore[arg-type]
    source = "sapp/theory/statements.py"
    assert int(found_in(source, r"bound >= (\d) \* case\.total")) == times
    assert found_in(source, r"\(right >= (case\.total)\)") == found_in(source, r"estimate > -(case\.total)")
    yield f"a bound on SUBOPT of {times}/(1−γ) or more, a bound on V̂ of 1/(1−γ) or more, two bounds that coincide"
    yield f"where two bounds are compared, the lower one is below {times}/(1−γ), the largest possible loss"
    yield "V̂ is above −1/(1−γ), the smallest possible value"
    assert default(says_where, "least") == 0.5 / 100
    yield "in which this holds for more than half a percent of the checks"
    yield from chain()
    half, policies, discount = (default(compare, name) for name in ("mdps", "policies", "discount"))
    yield f"each method picks from the same {policies}, with α chosen on {half // 2} instances"
    yield f"tested on {half // 2} others (γ = {discount:g}, normalised w, CQL's divergence"
    yield f"in brackets, {LEVEL} intervals of the paired difference"
    states, actions, _ = icu_sepsis().mdp.transition.shape
    yield f"with {states} states and {actions} actions"


def chain() -> Iterator[str]:
    """What the chain's policies, weights and grid are, and what removes the loss of the log-min–max."""
    yield f"in {100 * SHARES[0]:g} to {100 * SHARES[1]:g} % of its trajectories"
    made = choice(Setting())
    left, right = (made.occupancy[:, place] for place in (1, -2))
    assert left.min() == right.min() == 0.0, "from never to always"
    yield f"chosen among {word(len(made.truth))} that turn left with probability 0 to 1"
    low, high = power(GRID[1]), f"{GRID[-1]:g}"
    count = default(tuned_case, "count") // 2
    yield f"α is {GRID[0]:g} or one of {len(GRID) - 1} values between {low} and {high}"
    yield f"chosen for each method on {count} chains"
    yield f"tested on {count} others; intervals are {LEVEL} of the paired difference"
    for name, weight in spread_over_chain(choice(Setting(), follow=True)).items():
        mean = np.sum(made.model.visits * weight, -1).mean()
        assert mean == pytest.approx(float(name != "none")), name
    yield "every weight has mean 1 under the data"
    removed = [name for name in METHODS if name.startswith("log-")]
    for case, rows in read_chain(STUDIES / "theory" / "rows" / "chain.csv").items():
        if case[1:] == ("outwards", "knowing"):
            assert all(row.difference.high < 0 for row in rows if row.method in removed)
    yield f"Either of {word(len(removed))} changes, with everything else equal, removes the loss"
