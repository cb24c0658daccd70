"""Algorithms by name: presets, names of the paper, and those that packages bring."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import pytest

from sapp import (
    CQL,
    SappError,
    StateWeights,
    Uniform,
    preset,
)
from sapp.algorithms.config import register
from sapp.algorithms.registry import ALGORITHMS


def same(a: object, b: object) -> bool:
    return jax.tree.structure(a) == jax.tree.structure(b) and jax.tree.leaves(a) == jax.tree.leaves(b)


def test_presets_have_the_papers_table_of_hyper_parameters() -> None:
    algorithm = preset("sa-cql", "hopper-medium-v2")
    assert (algorithm.critic_lr, algorithm.actor_lr, algorithm.alpha, algorithm.batch_size) == (3e-4, 1e-4, 5.0, 256)
    assert (algorithm.action_samples, algorithm.discount, algorithm.tau) == (10, 0.99, 0.005)
    assert algorithm.hidden == (256, 256, 256)
    dice = algorithm.weights
    assert (dice.zeta_lr, dice.nu_lr, dice.next_actions, dice.hidden) == (1e-4, 1e-4, 1, (256, 256))
    assert type(preset("cql").weights) is Uniform


def test_an_unknown_preset_gets_a_suggestion() -> None:
    with pytest.raises(SappError, match="did you mean 'sa-cql'"):
        preset("sacql")


def test_a_name_of_the_paper_has_its_weights() -> None:
    assert same(preset("sa-cql", "hopper-expert"), preset("cql", "hopper-expert", "dualdice"))
    with pytest.raises(SappError, match="sa-cql is cql with weights 'dualdice': for other weights name cql"):
        preset("sa-cql", "hopper-expert", "occupancy")
    with pytest.raises(SappError, match="IQL takes no state weights"):
        preset("iql", weights="dualdice")


def test_a_name_of_sapp_cannot_be_taken() -> None:
    with pytest.raises(SappError, match="Uniform is a class of sapp"):
        register(type("Uniform", (StateWeights,), {}))
    with pytest.raises(SappError, match="'iql' is taken"):
        register(type("Iql", (CQL,), {}))


def test_an_installed_package_offers_algorithms_and_weights(tmp_path: Path) -> None:
    """In a process of its own: a package on the path, as an installer leaves it."""
    (tmp_path / "their_rules.py").write_text(
        "import sapp\n\n\nclass TheirRule(sapp.CQL):\n    alpha: float = 7.0\n\n\n"
        "class TheirWeights(sapp.ConstantWeights):\n    value: float = 0.125\n"
    )
    about = tmp_path / "their_rules-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: their-rules\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[sapp.algorithms]\ntheir-rule = their_rules:TheirRule\n\n"
        "[sapp.weights]\ntheir-weights = their_rules:TheirWeights\n"
    )
    code = (
        "import json, sapp\nfrom sapp.algorithms.config import build, describe\n"
        "made = sapp.preset('their-rule', weights='shuffled:their-weights')\n"
        "text = json.dumps(describe(made))\nprint(made.alpha, made.weights.of.value, build(json.loads(text)) == made)\n"
        "from sapp.cli.main import main\nmain(['algorithms'])"
    )
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": path}
    )
    first, *page = done.stdout.splitlines()
    assert first == "7.0 0.125 True"
    assert any("their-rule " in line for line in page)
    listed = subprocess.run(
        [sys.executable, "-m", "sapp", "algorithms", "--json"], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert "their_rules:TheirRule" in json.loads(listed.stdout)["algorithms"]["their-rule"]["about"]
    assert any(line.startswith("their-weights ") for line in page)


STUDIES = Path(__file__).resolve().parents[2] / "studies"
SHORTER = {"behaviour_steps", "warm_steps"}
"""What runs of fewer steps than the published ones had less of."""


def recorded() -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """By algorithm: the datasets that studies trained it on, and the settings that were written down then."""
    found: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for file in sorted(STUDIES.glob("*/rows/settings.json")):
        for run, one in json.loads(file.read_text(encoding="utf-8")).items():
            for method, rows in one.get("methods", {}).items():
                for row in rows:
                    name = method if method in ALGORITHMS else row["class"].lower()
                    if name in ALGORITHMS and "in-values" not in run:  # where the preset was changed on purpose
                        found.setdefault(name, []).extend((dataset, row) for dataset in row["datasets"])
    return found


@pytest.mark.parametrize(("name", "rows"), recorded().items())
def test_presets_are_what_the_studies_results_were_trained_with(
    name: str, rows: list[tuple[str, dict[str, Any]]]
) -> None:
    for dataset, row in rows:
        chosen = preset(name, dataset)
        own = {field: getattr(chosen, field) for field in row if field not in ("class", "datasets")}
        found = {field: list(value) if isinstance(value, tuple) else value for field, value in own.items()}
        changed = {field for field, value in found.items() if row[field] != value}
        assert type(chosen).__name__ == row["class"]
        assert changed <= SHORTER | {"weights", "precision"}, (dataset, changed)
        assert all(row[field] < own[field] for field in changed & SHORTER)
        assert len(own) > 6


def test_the_studies_have_trained_every_algorithm_for_vectors() -> None:
    assert {name for name in ALGORITHMS if not getattr(preset(name), "discrete_actions", False)} == set(recorded())
