from __future__ import annotations

import csv
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sapp.envs.policies import TanhGaussianPolicy
from sapp.evaluation.policy_file import actor_of
from sapp.ope.calibration import EXACT, NETWORKS
from sapp.ope.diagnostics import Verdict
from studies.ope.__main__ import main
from studies.ope.coverage import KINDS, holds, problem_of, quoted, smallest_factor, split
from studies.ope.policies import FAMILY, family
from studies.ope.rows import COLUMNS, read
from studies.ope.tables import covered, measures, pooled


def policy(seed: int) -> TanhGaussianPolicy:
    rng = np.random.default_rng(seed)

    def pair(out: int, width: int) -> tuple[np.ndarray, np.ndarray]:
        return rng.normal(size=(out, width)).astype(np.float32), rng.normal(size=out).astype(np.float32)

    return TanhGaussianPolicy((pair(8, 3),), pair(2, 8), pair(2, 8))


def test_the_family_lies_between_its_ends() -> None:
    first, second = actor_of(policy(0)), actor_of(policy(1))
    blends = family(first, second)
    assert list(blends) == list(FAMILY)
    x = jax.random.normal(jax.random.PRNGKey(0), (4, 3))
    np.testing.assert_allclose(blends["behaviour"](x).mean, first(x).mean, atol=1e-6)
    np.testing.assert_allclose(blends["DOPE"](x).mean, second(x).mean, atol=1e-5)
    np.testing.assert_allclose(blends["blend 0.5"](x).mean, 0.5 * (first(x).mean + second(x).mean), atol=1e-5)
    np.testing.assert_allclose(
        blends["shift 1"](x).mean - first(x).mean, jnp.exp(first(x).log_std), rtol=1e-4, atol=1e-5
    )
    np.testing.assert_allclose(blends["noise 0.3"](x).log_std - first(x).log_std, np.log(0.3), rtol=1e-4)


def test_sepsis_and_its_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("icu_sepsis")
    out = tmp_path / "out"
    main(["sepsis", "--out", str(out), "--episodes", "150", "--draws", "2", "--bags", "3"])
    rows = read(out)
    assert len(rows) == 2 * 8 * 5
    assert tuple(csv.DictReader((out / "sepsis.csv").open()).fieldnames or ()) == COLUMNS
    best = {row["policy"]: row["truth"] for row in rows}
    assert best["better 0.01"] > best["behaviour"] > best["worse 0.03"]
    assert all(row["low"] <= row["estimate"] <= row["high"] for row in rows if row["estimator"] == "fqe")
    line = next(line for line in measures(rows, None) if line[1] == "doubly robust")
    share = np.mean([covered(row) for row in rows if row["estimator"] == "dr"])
    assert line[6] == f"{share:.0%}"
    main(["tables", "--out", str(out)])
    assert "| sepsis 150 | doubly robust | 16 |" in capsys.readouterr().out


def test_draws_of_the_logs_share_the_truth_of_a_family_but_not_of_checkpoints() -> None:
    def row(problem: str, draw: int, truth: float, error: float) -> dict[str, object]:
        return {"problem": problem, "policy": "p", "draw": draw, "truth": truth, "truth_error": error}

    rows = pooled(
        [row("hopper family", 0, 1.0, 0.3), row("hopper family", 1, 3.0, 0.4), row("x checkpoints", 0, 7.0, 1.0)]
    )
    assert [r["truth"] for r in rows] == [2.0, 2.0, 7.0]
    np.testing.assert_allclose([r["truth_error"] for r in rows], [0.25, 0.25, 1.0])  # ½·√(0.3² + 0.4²)


def test_the_factors_in_use_are_those_that_other_problems_ask_for() -> None:
    rows = read(Path(__file__).parents[2] / "studies" / "ope" / "rows" / "control")
    networks, solved = split(rows)
    assert smallest_factor(networks) <= NETWORKS
    assert smallest_factor(solved) == EXACT
    assert not {problem_of(row) for row in (*networks, *solved)} & {name for names in KINDS.values() for name in names}


def test_trusted_intervals_of_problems_for_testing_hold_the_truth_without_slack() -> None:
    rows = read(Path(__file__).parents[2] / "studies" / "ope" / "rows" / "control")
    for kind, names in KINDS.items():
        found = quoted([row for row in rows if problem_of(row) in names])
        trusted = [holds(row, interval) for row, interval, verdict in found if verdict is Verdict.TRUSTED]
        assert trusted, kind
        assert np.mean(trusted) >= 0.9, kind
    cartpole = quoted([row for row in rows if problem_of(row) == "CartPole"])
    assert all(verdict is not Verdict.REFUSED for *_, verdict in cartpole)


@pytest.mark.parametrize("how", [["--exact"], ["--steps", "60", "--hidden", "8"]])
def test_a_verdict_of_rows_is_that_of_the_report(tmp_path: Path, how: list[str]) -> None:
    """What the page recomputes from stored measures is what the command said."""
    main(["ward", *how, "--out", str(tmp_path), "--episodes", "40", "--draws", "2", "--bags", "3"])
    rows = read(tmp_path)
    said = {(row["policy"], row["draw"]): row["verdict"] for row in rows if row["verdict"]}
    for row, interval, verdict in quoted(rows):
        assert said[row["policy"], row["draw"]] == verdict
        assert interval.low <= row["estimate"] <= interval.high
    assert len(said) == 16
