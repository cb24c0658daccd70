"""The solver and the experiment on a small ward, and the shape of ICU-Sepsis where it is installed."""

from __future__ import annotations

import importlib.util
import itertools

import numpy as np
import pytest

from sapp.core.errors import SappError
from sapp.tabular.evaluation import Pessimism, evaluate
from sapp.tabular.mdp import one_hot
from sapp.tabular.occupancy import unnormalised_occupancy
from sapp.tabular.optimisation import Objective, optimise
from sapp.tabular.tasks import Task, icu_sepsis, ward
from sapp.tabular.weights import Fixed, Ratio
from studies.sepsis import __main__ as command
from studies.sepsis import experiment as experiment_module
from studies.sepsis.experiment import experiment, summarise, tuned
from studies.sepsis.figures import plot, tables
from studies.sepsis.methods import METHODS, learn
from studies.sepsis.rows import Row, Rows, read_rows
from studies.sepsis.solver import Point, Solution, Solver
from studies.sepsis.spread import HELD, MOVING, Spread

installed = pytest.mark.skipif(importlib.util.find_spec("icu_sepsis") is None, reason="icu-sepsis is not installed")


@pytest.fixture(scope="module")
def task() -> Task:
    return ward(np.random.default_rng(3))


@pytest.fixture(scope="module")
def solver(task: Task) -> Solver:
    return Solver(task.model(task.draw(np.random.default_rng(4), 300)))


def core_alpha(solver: Solver, alpha: float, found: Solution) -> float:
    """The α at which the core's normalised w charges what ``found`` was charged."""
    occupancy = unnormalised_occupancy(solver.model, found.policy)[solver.index]
    factor = found.weight[solver.index] / found.ratio[solver.index]
    np.testing.assert_allclose(factor, factor[0])
    return float(alpha * factor[0] / ((1 - solver.model.discount) * occupancy.sum()))


def test_objective_is_the_core_s(solver: Solver) -> None:
    found = solver.solve(0.05)
    value = evaluate(solver.model, found.policy, Pessimism(0.05, "kl"))
    assert found.value == pytest.approx(float(solver.model.expected(value)), abs=1e-12)
    moving = solver.solve(0.05, "w")
    same = Pessimism(core_alpha(solver, 0.05, moving), "kl", Ratio())
    value = evaluate(solver.model, moving.policy, same)
    assert moving.value == pytest.approx(float(solver.model.expected(value)), abs=1e-12)


@pytest.mark.parametrize("divergence", ["kl", "cql"])
@pytest.mark.parametrize("kind", [*MOVING, "log-min-max"])
def test_residual_is_the_derivative_through_w(task: Task, divergence: str, kind: str) -> None:
    solver = Solver(task.model(task.draw(np.random.default_rng(5), 400)), divergence)
    rng = np.random.default_rng(0)
    policy = solver.behaviour * rng.uniform(0.2, 1, solver.behaviour.shape)
    policy /= policy.sum(-1, keepdims=True)
    spread = solver._fitted(Spread(kind), solver.behaviour)  # not at ``policy``: its own quantiles are kinks
    here = Point(solver, policy, 0.1, spread)
    target, residual = here.towards()
    step = 1e-6
    ahead, behind = (Point(solver, policy + t * (target - policy), 0.1, spread).value for t in (step, -step))
    assert residual > 0
    assert (ahead - behind) / (2 * step) == pytest.approx(residual, rel=1e-4)


@pytest.mark.parametrize("divergence", ["kl", "cql"])
def test_best_response_beats_random_policies(task: Task, divergence: str) -> None:
    solver = Solver(task.model(task.draw(np.random.default_rng(6), 400)), divergence)
    rng = np.random.default_rng(1)
    q, tau = rng.normal(size=solver.behaviour.shape), rng.uniform(0.01, 2, solver.states)
    best = solver.best_response(q, tau)
    np.testing.assert_allclose(best.sum(-1), 1)
    assert np.all(best[~solver.support] == 0)

    def score(policy: np.ndarray) -> np.ndarray:
        return np.sum(policy * q, -1) - tau * solver.distance(policy)[0]

    for _ in range(200):
        other = rng.dirichlet(np.full(4, 0.4), solver.states) * solver.support + 1e-9 * solver.behaviour
        mixed = best + rng.uniform() ** 4 * (other / other.sum(-1, keepdims=True) - best)
        assert np.all(score(mixed) <= score(best) + 1e-9)


@pytest.mark.parametrize("divergence", ["kl", "cql"])
def test_pp_is_the_certified_optimum(task: Task, divergence: str) -> None:
    solver = Solver(task.model(task.draw(np.random.default_rng(7), 300)), divergence)
    found = solver.solve(0.03, tolerance=1e-10)
    pessimism = Pessimism(0.03, divergence)
    assert Objective(solver.model, pessimism).gap(found.policy) < 1e-7
    assert found.residual <= 1e-10


def test_w_reaches_what_gradient_ascent_reaches(solver: Solver) -> None:
    found = solver.solve(0.1, "w", tolerance=1e-9)
    peer = optimise(solver.model, Pessimism(core_alpha(solver, 0.1, found), "kl", Ratio()), restarts=2)
    assert found.value >= peer.value - 1e-5
    assert abs(found.mean_weight - 1) < 0.02


def test_held_weights_are_those_of_their_policy(solver: Solver) -> None:
    for name, kind in HELD.items():
        found = solver.solve(0.1, name)
        ratio = found.ratio[solver.index]
        wanted = Spread(kind).fitted(ratio, solver.visits).parts(ratio)[0]
        assert np.sum(solver.visits * np.abs(wanted - found.weight[solver.index])) < 0.02
        # The best for these weights, were they fixed.
        weights = np.zeros(solver.model.states)
        weights[solver.index] = found.weight[solver.index]
        assert Objective(solver.model, Pessimism(0.1, "kl", Fixed(weights))).gap(found.policy) < 1e-4


def test_counts_and_no_pessimism_by_enumeration() -> None:
    task = ward(np.random.default_rng(0), states=4, actions=3)
    solver = Solver(task.model(task.draw(np.random.default_rng(1), 60)))
    best = {0.0: -np.inf, 0.3: -np.inf}
    for choice in itertools.product(*(np.flatnonzero(row) for row in solver.support)):
        policy = solver.embed(one_hot(np.array(choice), 3))
        for scale in best:
            charge = np.zeros(solver.model.states)
            charge[solver.index] = scale / np.sqrt(solver.pairs[np.arange(solver.states), choice])
            gain = (policy * solver.model.reward).sum(-1) - charge
            value = np.linalg.solve(solver.model.resolvent_inverse(policy), gain)
            best[scale] = max(best[scale], float(solver.model.start @ value))
    assert learn("none", solver, 0.0).value == pytest.approx(best[0.0], abs=1e-12)
    assert learn("count", solver, 0.3).value == pytest.approx(best[0.3], abs=1e-12)


def test_controls(solver: Solver) -> None:
    ratio = learn("w", solver, 0.1).ratio[solver.index]
    shuffled = learn("shuffled", solver, 0.1, (1, 2)).weight[solver.index]
    np.testing.assert_allclose(np.sort(shuffled / shuffled.sum()), np.sort(ratio / ratio.sum()))
    for name in ("random", "shuffled"):
        assert learn(name, solver, 0.1).mean_weight == pytest.approx(1)
        np.testing.assert_array_equal(learn(name, solver, 0.1, (5,)).policy, learn(name, solver, 0.1, (5,)).policy)


def test_pessimism_runs_from_greedy_to_imitation(solver: Solver) -> None:
    near = solver.solve(1e3)
    np.testing.assert_allclose(near.policy, solver.model.behaviour, atol=1e-2)
    assert learn("pp", solver, 1e-7).value == pytest.approx(learn("none", solver, 0).value, abs=1e-5)


@pytest.fixture(scope="module")
def results(task: Task, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Row], object]:
    path = tmp_path_factory.mktemp("sepsis") / "rows.csv"
    rows = experiment(path, sizes=(100, 1000), draws=3, tuning=2, alphas=(0.01, 0.1), task=task)
    return rows, path


def test_experiment_tunes_on_other_draws(results) -> None:
    rows, path = results
    for size in (100, 1000):
        own = [row for row in rows if row.size == size]
        assert len([row for row in own if row.role == "tuning"]) == 2 * (1 + 2 * (len(METHODS) - 1))
        chosen = tuned(own)
        for row in own:
            if row.role == "evaluation" and row.method in chosen:
                assert row.alpha == chosen[row.method]
    assert all(row.suboptimality >= -1e-12 for row in rows)
    read = read_rows(path)
    assert [row.key for row in read] == [row.key for row in rows]


def test_experiment_resumes(task: Task, results, tmp_path, monkeypatch) -> None:
    rows, path = results
    copy = tmp_path / "rows.csv"
    text = path.read_text().splitlines(keepends=True)
    copy.write_text("".join(text[:-3]) + text[-3][:20])
    calls = []
    honest = experiment_module.measure
    monkeypatch.setattr(experiment_module, "measure", lambda *given: calls.append(given[2]) or honest(*given))
    again = experiment(copy, sizes=(100, 1000), draws=3, tuning=2, alphas=(0.01, 0.1), task=task)
    assert len(calls) == 3
    assert [row.suboptimality for row in again] == [row.suboptimality for row in rows]
    assert len(read_rows(copy)) == len(rows)
    assert not list(tmp_path.glob("*.partial"))


def test_summary_table_and_figure(results, tmp_path) -> None:
    rows, _ = results
    lines = summarise(rows)
    assert {line.method for line in lines} == {*METHODS, "imitation", "clinicians"}
    line = next(line for line in lines if line.method == "w" and line.size == 1000)
    by = {(row.method, row.draw): row.suboptimality for row in rows if row.role == "evaluation" and row.size == 1000}
    assert line.against_pp is not None
    assert line.against_pp.value == pytest.approx(np.mean([by["w", i] - by["pp", i] for i in range(3)]))
    text = [table.markdown() for table in tables(lines)]
    assert sum(part.count("\n| ") for part in text) == len(lines) + 2 * 2  # and a head and a rule per size
    assert "| SA-PP, √w |" in text[0]
    plot(tmp_path / "sepsis.png", rows)
    assert (tmp_path / "sepsis.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"methods": ("magic",)}, "magic"), ({"sizes": ()}, "sizes"), ({"alphas": (0.0,)}, "alpha"),
        ({"divergence": "tv"}, "divergence"), ({"draws": 0}, "draws"),
    ],
)
def test_bad_arguments(task: Task, change: dict, word: str) -> None:
    with pytest.raises(SappError, match=word) as caught:
        experiment(task=task, **change)
    assert "\n" not in str(caught.value)


def test_bad_files_and_missing_package(tmp_path, monkeypatch) -> None:
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("a,b\n1,2\n")
    with pytest.raises(SappError, match="not a results file"):
        Rows(wrong)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SappError, match="pip install icu-sepsis"):
        icu_sepsis()


@installed
def test_icu_sepsis_optimisation_takes_few_steps_and_states_its_gap() -> None:
    task = icu_sepsis()
    solver = Solver(task.model(task.draw(np.random.default_rng(0), 10_000)))
    found = solver.solve(0.03)
    assert found.iterations < 10
    assert Objective(solver.model, Pessimism(0.03, "kl")).gap(found.policy) < 1e-4
    aware = solver.solve(0.03, "sqrt-w")
    assert aware.iterations < 50
    assert aware.residual < 1e-5
    assert aware.mean_weight == pytest.approx(1, abs=0.02)


def test_the_command_continues_and_prints_its_tables(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(experiment_module, "icu_sepsis", lambda: ward(np.random.default_rng(3)))
    words = ["--out", str(tmp_path / "rows.csv"), "--sizes", "100", "--draws", "1", "--tuning", "1",
             "--alphas", "0.01", "--methods", "none,pp"]  # fmt: skip
    command.main(words)
    first = capsys.readouterr().out
    assert "**100 transitions.** 1 logs." in first
    assert "| PP | 0.01 |" in first
    monkeypatch.setattr(experiment_module, "measure", None)  # would be called, were anything done again
    command.main(words)
    assert capsys.readouterr().out == first
