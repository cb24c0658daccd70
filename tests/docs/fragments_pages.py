"""Fragments of the notebooks, from their own code and outputs, and of the errata of the paper's theory."""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import json
import re
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fragments import csv_rows, fragments_of, word
from fragments_docs import found_in, text

from sapp import SappError, load
from sapp.ope.doubly_robust import ESTIMATORS
from sapp.runs.phases import sa_protocol
from sapp.tabular import FiniteMDP, Log, LogMinMax, Uniform, c0_printed, c0_repaired, empirical
from sapp.theory.audit import CONVENTIONS, replay
from sapp.theory.families import ARMS, DELTA, Instances, instances
from sapp.theory.statements import STATEMENTS, Case, Outcome
from sapp.weights import OccupancyModel
from studies.theory.uniformity import uniformity

TIMES = {2: "twice", 3: "three times"}


def cells(name: str) -> list[dict[str, Any]]:
    """A tutorial's cells of code."""
    return [cell for cell in json.loads(text(f"docs/tutorials/{name}.ipynb"))["cells"] if cell["cell_type"] == "code"]


@cache
def code(name: str) -> ast.Module:
    """All its code."""
    return ast.parse("\n".join("".join(cell["source"]) for cell in cells(name)))


def setting(name: str, variable: str) -> Any:
    """What it sets a variable to, alone or with others in one line."""
    for node in ast.walk(code(name)):
        for target in node.targets if isinstance(node, ast.Assign) else ():
            names = [ast.unparse(each) for each in getattr(target, "elts", [target])]
            if variable in names:
                value = ast.literal_eval(node.value)
                return value[names.index(variable)] if len(names) > 1 else value
    raise AssertionError(f"{name} sets no {variable}")


def calls(name: str, function: str) -> list[ast.Call]:
    """Its calls of a function."""
    found = [node for node in ast.walk(code(name)) if isinstance(node, ast.Call)]
    return [call for call in found if ast.unparse(call.func) == function]


def given_first(name: str, function: str) -> Any:
    """The first argument of its one call of a function, as it is written there."""
    (call,) = calls(name, function)
    return call.args[0]


def given_to(name: str, function: str, key: str) -> list[Any]:
    """What calls of a function are given by that name, where it is a literal."""
    found = [each.value for call in calls(name, function) for each in call.keywords if each.arg == key]
    return [each.value for each in found if isinstance(each, ast.Constant)]


def empty_outcome() -> float:
    """The reward of a step whose cell is empty."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "log.csv"
        file.write_text("who,day,state,treatment,outcome,left\n1,0,0.5,a,,no\n1,1,0.7,b,1,yes\n", encoding="utf-8")
        columns = {"episode": "who", "time": "day", "observation": ["state"], "action": "treatment",
                   "action_labels": ["a", "b"], "reward": "outcome", "terminal": "left"}  # fmt: skip
        return float(load(file, columns=columns).reward[0])


@fragments_of("docs/tutorials/cartpole.ipynb")
def cartpole() -> Iterator[str]:
    """The player's share of random actions, what is trained, and episodes of play."""
    (share,) = given_to("cartpole", "record", "epsilon")
    yield f"always too late, and {word(round(10 * share, 9))} times in {word(10)} at random"
    yield f"We compare {word(len(given_first('cartpole', 'sapp.train').keys))} methods: discrete CQL"
    yield f"Each method has {word(*given_to('cartpole', 'sapp.train', 'seeds'))} seeds"
    (episodes,) = given_to("cartpole", "run.evaluate", "episodes")
    yield f"We play {({40: 'forty'})[episodes]} new episodes"


@fragments_of("docs/tutorials/decisions.ipynb")
def decisions() -> Iterator[str]:
    """What an empty outcome is, candidates, and estimators."""
    yield f"an empty outcome counts as {empty_outcome():g}, and patients"
    candidates = given_first("decisions", "sapp.train").generators[0].iter.elts
    yield f"We train {word(len(candidates))} strengths of pessimism"
    yield f"{word(len(ESTIMATORS)).capitalize()} estimators use the held-out patients"


@fragments_of("docs/tutorials/extend.ipynb")
def extend() -> Iterator[str]:
    """The values of α that it tries, and seeds."""
    alphas = given_to("extend", "TD3Distance", "alpha")
    yield f"train td3-distance DATA --alpha {','.join(f'{each:g}' for each in alphas)}`"
    yield f"{word(*given_to('extend', 'sapp.train', 'seeds')).capitalize()} seeds decide nothing"


@fragments_of("docs/tutorials/paper.ipynb")
def paper() -> Iterator[str]:
    """The world's sizes, how often its states are logged, the study's, and what was trained."""
    yield f"with w(s) = {Uniform().scale:g} (PP) or w(s) ="
    doors, halls, won, lost = (setting("paper", name) for name in ("DOORS", "HALLS", "WON", "LOST"))
    assert (won, lost) == (doors + halls, doors + halls + 1)
    yield f"There are {word(doors)} *doors*, {word(halls)} *halls* and {word(len({won, lost}))} outcomes"
    (world,) = (cell for cell in cells("paper") if "def make_world" in "".join(cell["source"]))
    names: dict[str, Any] = {"np": np}
    with contextlib.redirect_stdout(io.StringIO()):
        exec("from sapp import tabular\n" + "".join(world["source"]), names)
    yield f"Logged episodes are a {word(*given_to('paper', 'make_world', 'length'))} steps long"
    logged = names["model"].visits
    yield f"a door is seen once for every {logged[doors:won].sum() / logged[:doors].sum():.0f} halls"
    yield f"{word(setting('paper', 'worlds')).capitalize()} worlds are few"
    studied = {row["world"] for row in csv_rows("uneven_coverage/rows/learned.csv")}
    yield f"has {word(len(studied) / 100)} hundred."
    yield f"The paper's protocol has {word(len(sa_protocol()))} phases: CQL alone"
    low, high = (float(bound) for bound in OccupancyModel().bounds())
    printed = "".join("".join(each.get("text", "")) for cell in cells("paper") for each in cell["outputs"])
    mean = np.mean([float(found) for found in re.findall(r"weights/mean ([\d.]+)", printed)])
    assert abs((1 - mean) - 1 / 3) < 0.03
    yield f"With weights in [{low:g}, {high:g}], SA-CQL is less pessimistic than CQL, here by about a third"
    yield f"{word(setting('paper', 'steps') / 1000).capitalize()} thousand joint steps are few"
    seeds = setting("paper", "seeds")
    yield f"the differences lie within the spread of {word(seeds)} seeds"
    yield f"matched:occupancy,random --seeds {seeds}`"


# --- the errata -----------------------------------------------------------------------------------------------------


def item(beginning: str) -> str:
    """The number of the errata's item that begins so."""
    return found_in("studies/theory/errata.md", rf"(?m)^(\d+)\. \*\*{re.escape(beginning)}")


def bandit(discount: float, alpha: float) -> Case:
    """One state, rewards 1 and 0, much data; Π is β̂, which plays both alike, and the greedy policy."""
    draws = 10**12
    mdp = FiniteMDP(np.ones((1, 1, 2, 1)), np.array([[[1.0, 0.0]]]), np.ones((1, 1)), discount)
    log = Log(np.array([[[[draws], [draws]]]]), np.array([[[draws, 0.0]]]))
    model = empirical(log, np.ones((1, 1)), discount)
    policies = np.array([[0.5, 0.5], [1.0, 0.0]])[None, :, None]
    return Case(Instances("bandit", (0,), mdp, model, policies), "cql", False, np.array([alpha]))


def hoeffding(c0: float, events: float, discount: float, delta: float) -> float:
    """What multiplies √(½ln(2·events/δ))/(1−γ) in a constant C₀."""
    return round(c0 * (1 - discount) / float(np.sqrt(0.5 * np.log(2 * events / delta))), 9)


def allowed(reward: float) -> bool:
    """Whether an MDP may have this reward."""
    try:
        FiniteMDP(np.ones((1, 1, 1)), np.array([[reward]]), np.ones(1), 0.9)
    except SappError:
        return False
    return True


@fragments_of("studies/theory/errata.md")
def counterexamples() -> Iterator[str]:
    """Of the errata: those that are told with their numbers; each that has an ID refutes its statement."""
    for identifier in re.findall(r"`((?:lemma|theorem)\d[\w-]*/[\w./-]+)`", text("studies/theory/errata.md")):
        assert replay(identifier, redraws=1).outcome == Outcome.VIOLATED, identifier
    yield f"where δ = {100 * DELTA:g} % is promised"
    known, *draws = instances("arms", (3,), 0.99).model.pairs[0, 0]
    assert known > 1e9
    yield f"{ARMS} lotteries, the best one known well, the others from {min(draws):g} draws each"
    found = uniformity()
    assert found.violated == 1
    successors = inspect.signature(uniformity).parameters["successors"].default
    yield f"{found.states} states, {found.actions} actions, Π the policies that choose +1"
    yield f"that choose +1 in half of {successors} equally likely states"
    discount, alpha = 0.9, 0.1
    example = bandit(discount, alpha)
    plain, aware = (float(example.bound(example.weights(each), False).total[0, 0]) for each in ("pp", "sa"))
    yield (
        f"β̂ = (½, ½), r = (1, 0), γ = {discount:g}, much data, Π = {{β̂, greedy}}, α = {alpha:g}: "
        f"UB(PP) = {plain:.0f}, UB(SA) = {aware:.0f}."
    )
    levels = np.linspace(plain, 2 * aware, 10)
    clipped = [float(example.bound(np.minimum(example.weights("sa"), level), False).total[0, 0]) for level in levels]
    assert clipped == pytest.approx(np.minimum(levels, aware), abs=1e-3)
    yield f"where UB(C) = C for {plain:.0f} < C < {aware:.0f}. *Repair"
    name = "theorem4-printed/feeder/6/cql/0.001/0.9/paper"
    seen = replay(name, redraws=1)
    pairs, successor = seen.instances.model.pairs[0], seen.instances.model.transition[0]
    lottery, won = int(successor[0, 0].argmax()), int(seen.instances.mdp.reward[0, :, 0].argmax())
    often, wins = (TIMES[int(each)] for each in (pairs[lottery].sum(), pairs[lottery] @ successor[lottery, :, won]))
    yield (
        f"`{name}`: a state logged {pairs[0].sum():,.0f} times leads to one whose lottery was seen {often} "
        f"and won {wins}; V = {seen.numbers['V'][0]:g}, and"
    )
    log, usual = LogMinMax(0.5, 2.0), LogMinMax()
    lower, upper = (float(log(np.array([2.0, other]))[0]) for other in (4.0, 1.0))
    assert (lower, upper) == (log.b0, log.b0 + log.b1)
    yield "(ratio 2 gets b₀ next to 4, b₀ + b₁ next to 1)"
    yield f"Theorem 7: with b₀ + b₁ = {usual.b0 + usual.b1:g} clipping at C > {usual.b0 + usual.b1:g} does nothing"


@fragments_of("studies/theory/errata.md")
def repairs() -> Iterator[str]:
    """Of the errata: constants, conditions as the statements have them, and items by their numbers."""
    (most,) = (each for each in (1, 2) if allowed(each) and allowed(-each) and not allowed(each + 0.01))
    printed = hoeffding(c0_printed(7, 3, 1e9, 0.9, 0.05), 7 * 3, 0.9, 0.05)
    repaired = hoeffding(c0_repaired(7, 5, 0.9, 0.05), 7 * 5, 0.9, 0.05)
    single = hoeffding(c0_repaired(7, 1, 0.9, 0.05), 7, 0.9, 0.05)
    yield f"With r ∈ [−{most}, {most}], r + γV^π ranges over an interval of length {repaired:g}/(1−γ)"
    yield f"{repaired:g}/(1−γ), not {printed:g}/(1−γ), so Hoeffding's width doubles"
    constant = f"{repaired:g}/(1−γ)·√(½ln(2|S||Π|/δ))"
    assert constant in STATEMENTS["lemma1-repaired"].claim
    yield f"*Repair and proof.* C₀ = {constant}."
    yield f"Hoeffding gives |e(s)| ≤ ({repaired:g}/(1−γ))·√(½ln(2/δ'))·√(Σ_a π²/n)"
    assert STATEMENTS["theorem2-printed"].hypotheses.endswith(", C_M > 1")
    yield '"without loss of generality C_M > 1"'
    condition = STATEMENTS["theorem2-repaired"].hypotheses.split(" and ")[1]
    condition = condition.replace("w_κ−1)Dis¹", "w_κ − 1)·Dis(π̄₁)").replace("/(1−γ)", "N").replace(")Δ", ")·Δ")
    yield f"{condition}, with w^{{π̄₂}} ≤ 1 + c and Δ"
    served = [row for row in csv_rows("theory/rows/audit.csv") if row["statement"] == "theorem2-repaired"]
    served = [row for row in served if int(row["not_met"]) < int(row["checked"])]
    yield f"it is met only in the {word(len(served))} families that have one"
    product = STATEMENTS["theorem3-printed"].hypotheses.removeprefix("α > ")
    quotient = STATEMENTS["theorem4-threshold-repaired"].hypotheses.replace("1/2}", "1/2}_{D,π}")
    yield f"the threshold on α is a product {product} where a quotient"
    yield f"α·w·Dis ≥ C₀n^{{-1/2}} asks for {quotient}."
    claim = STATEMENTS["theorem4-repaired"].claim.replace("I−γAP_D", "I − γAᵖP_D").replace("1/2}", "1/2}_{D,π}")
    yield f"so {claim}, with probability 1 − δ and C₀ = {single:g}/(1−γ)·√(½ln(2|S|/δ)) for one π."
    for normalised in CONVENTIONS.values():
        case = Case(instances("garnet", (0,), 0.9), "cql", normalised, np.array([0.1]))
        total = np.sum(case.instances.model.visits[:, None] * case.ratio, -1)
        assert total == pytest.approx(1.0 if normalised else 1 / (1 - 0.9))
    yield (
        f"{word(len(CONVENTIONS)).capitalize()} meanings of w. In the theory Σd^D·w = 1/(1−γ); DualDICE's objective, "
        "with its (1−γ) before the initial term, returns (1−γ)w"
    )
    sign, step, wrong = (item(f"Theorem {each}") for each in ("1, a misprint", "2, the step", "2, the statement"))
    sup, threshold = item("Theorem 3, the supremum"), item("Theorems 3 and 4, the threshold")
    yield f"Besides {step}, the proof uses"
    yield f"the bandit of item {sign}, where"
    yield f"(proof of {sign} with f(w))"
    yield f"inherits {step} and {wrong}: `theorem6"
    yield f"The repair of {wrong} goes through with f(w)"
    yield f"inherits {sup} and {threshold}: `theorem7"
    yield f"Repair as in {sup} with f(w)"
