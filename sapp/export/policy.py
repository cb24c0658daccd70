"""``sapp export``: one policy of a run, or of a policy file, as an ONNX file that onnxruntime and NumPy can run."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from sapp.core.errors import SappError
from sapp.core.extras import require
from sapp.core.files import check_replaceable, write_aside, write_text
from sapp.data.action_units import from_unit
from sapp.export.card import card_of, is_card, is_card_data, markdown
from sapp.export.graph import build, is_ours
from sapp.runs.folders import CONFIG
from sapp.runs.members import MemberId
from sapp.runs.problem import Problem
from sapp.runs.run import Run

TOLERANCE = 1e-5
"""Largest difference between the file's actions and ours, relative to max(1, |bound|); discrete ones must be equal."""
TIES = 0.002
"""Share of inputs on which a policy that picks the best of several candidates may pick another: those that tie."""


def export_policy(
    source: str | Path | Run, target: str | Path, *, member: int | str | None = None, step: int | None = None,
    samples: int = 1_000, force: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Write a policy as ONNX, with its card as Markdown and JSON beside it, and return the card.

    Observations enter as they are logged and actions leave in the logs' units: scaling is part of the file. The file is
    run by onnxruntime on random inputs and kept only if it agrees with our policy.

    Args:
        source: a run, its folder, or a policy file (.npz, .hdf5).
        target: the file, ending in .onnx.
        member: which policy, by name or index, where the run has several.
        step: which checkpoint (default: the newest).
        samples: random inputs to compare on.
        force: replace files of these names that are not an exported policy and its card.
    """
    target = Path(target)
    if target.suffix != ".onnx":
        raise SappError(f"{target}: the file name must end in .onnx")
    if samples < 1:
        raise SappError(f"samples is {samples}; compare on at least 1")
    data_file, page_file = target.with_suffix(".json"), target.with_suffix(".md")
    own = source.path if isinstance(source, Run) else Path(source)
    if data_file.resolve() == (own / CONFIG).resolve():
        raise SappError(f"{data_file}: is the run's own; name another file to write")
    check_replaceable(target, is_ours, "a policy that sapp exported", force)
    check_replaceable(data_file, is_card_data, "a policy's card", force)
    check_replaceable(page_file, is_card, "a policy's card", force)
    if not isinstance(source, Run) and Path(source).is_file():
        actor, problem, facts = _of_file(Path(source))
    else:
        actor, problem, facts = _of_run(source if isinstance(source, Run) else Run(source), member, step)
    function = policy_function(in_float32(actor), problem)
    labels = json.dumps(problem.action_labels, ensure_ascii=False) if problem.action_labels else ""
    metadata = {"data": problem.name, "fingerprint": problem.fingerprint, "policy": facts["policy"], "labels": labels}
    shape = problem.observation_size if problem.frame is None else tuple(problem.frame)
    content = build(function, shape, "action", metadata)
    check = compare(content, function, problem, samples)
    card = card_of(problem, facts, check, target.name)
    page = markdown(card)  # before anything is written: the three files belong together
    data = json.dumps(card, indent=2, ensure_ascii=False) + "\n"

    def write(aside: Path) -> None:
        aside.write_bytes(content)

    write_aside(target, write)
    write_text(data_file, data)
    write_text(page_file, page)
    return card


def policy_function(actor: Any, problem: Problem) -> Callable[[Any], Any]:
    """Observations as logged [B, O] → deterministic actions in the logs' units [B, A], or discrete ones [B]."""
    offset = jnp.asarray(problem.observation_offset or 0.0, jnp.float32)
    scale = jnp.asarray(problem.observation_scale or 1.0, jnp.float32)
    low, high = jnp.asarray(problem.action_low, jnp.float32), jnp.asarray(problem.action_high, jnp.float32)
    scaled = problem.observation_offset is not None

    def function(observation: Any) -> Any:
        action = actor((observation - offset) / scale if scaled else observation).mode()
        if problem.discrete:
            return action
        return from_unit(action, low, high)

    return function


def in_float32(module: Any) -> Any:
    """The same policy with every matrix product in float32, whatever precision it was trained with."""
    if isinstance(module, tuple | list):
        return type(module)(in_float32(each) for each in module)
    if not isinstance(module, eqx.Module):
        return module
    new = object.__new__(type(module))
    for field in dataclasses.fields(module):
        value = getattr(module, field.name)
        value = "float32" if field.name == "precision" and isinstance(value, str) else in_float32(value)
        object.__setattr__(new, field.name, value)
    return new


def compare(content: bytes, function: Callable[[Any], Any], problem: Problem, samples: int) -> dict[str, Any]:
    """Run the file by onnxruntime beside our policy on random inputs, and refuse it if they differ."""
    onnxruntime = require("onnxruntime", "exporting to ONNX")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    inputs = _random_inputs(problem, samples)
    ours = np.asarray(jax.jit(function)(jnp.asarray(inputs)))
    (theirs,) = session.run(None, {"observation": inputs})
    (one,) = session.run(None, {"observation": inputs[:1]})
    if theirs.shape != ours.shape or one.shape != ours[:1].shape:
        raise SappError(
            f"the exported file gives actions of shape {theirs.shape}, our policy {ours.shape}; not written"
        )
    size = np.maximum(1.0, np.maximum(np.abs(problem.action_low), np.abs(problem.action_high)))
    difference = np.abs(ours - theirs).astype(np.float64) / (1.0 if problem.discrete else size)
    if b"ArgMax" in content:
        # where two candidates score alike to rounding, either is the policy's: few rows may differ, by any amount
        far = difference.reshape(samples, -1).max(1) > TOLERANCE
        difference = difference[~far] if np.mean(far) <= TIES else difference
    worst = float(np.max(difference, initial=0.0))
    if not worst <= TOLERANCE:
        raise SappError(f"the exported file differs from our policy by {worst:.1e}; it was not written")
    return {"inputs": samples, "largest_difference": worst, "onnxruntime": onnxruntime.__version__}


def _random_inputs(problem: Problem, samples: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    if problem.frame is not None:
        return rng.integers(0, 256, (samples, *problem.frame), dtype=np.uint8)
    standard = rng.normal(scale=2.0, size=(samples, problem.observation_size))
    offset = np.asarray(problem.observation_offset or 0.0)
    return np.asarray(offset + np.asarray(problem.observation_scale or 1.0) * standard, np.float32)


def _of_run(run: Run, member: int | str | None, step: int | None) -> tuple[Any, Problem, dict[str, Any]]:
    from sapp.algorithms.config import describe

    if member is None:
        if len(run.members) > 1:
            names = ", ".join(map(str, run.members))
            raise SappError(f"{run.path}: has {len(run.members)} policies; choose one with --member: {names}")
        member = 0
    if isinstance(member, str) and " @ " in member:  # as sapp select prints it
        name, _, text = member.rpartition(" @ ")
        if text.isdigit():
            member, step = name, int(text)
    index = run.member_index(member)
    step, actors = run.actors_at(step)
    chosen = run.plan.members[index]
    problem = run.plan.problems[chosen.dataset]
    facts = {
        "policy": str(run.members[index]),
        "run": run.path.name,
        "step": step,
        "steps_in_all": run.total_steps,
        "algorithm": describe(chosen.algorithm),
        "seed": chosen.seed,
        "phases": [dataclasses.asdict(phase) for phase in run.plan.phases],
        "versions": json.loads((run.path / "config.json").read_text(encoding="utf-8")).get("versions", {}),
        "offline": _estimates(run, str(run.members[index]), step),
        "online": _played(run, run.members[index]),
    }
    return actors[index], problem, facts


def _estimates(run: Run, name: str, step: int) -> dict[str, Any] | None:
    """The estimate that ``sapp evaluate --offline`` left in the run folder, if it was of this checkpoint."""
    file = run.path / "offline.json"
    if not file.is_file():
        return None
    try:
        for report in json.loads(file.read_text(encoding="utf-8"))["reports"]:
            for row in report["policies"]:
                if row["step"] == step and row["policy"] in (name, f"{name} @ {step}"):
                    return {**row, "discount": report["discount"], "data": report["data"], "units": report["units"]}
    except (ValueError, KeyError, TypeError):
        raise SappError(f"{file}: damaged; run 'sapp evaluate {run.path} --offline' again or remove it") from None
    return None


def _played(run: Run, member: MemberId) -> dict[str, float] | None:
    rows = [row for row in run.evaluations() if MemberId.of(row) == member]
    if not rows:
        return None
    return {"step": int(rows[-1]["step"]), "return_mean": float(rows[-1]["return_mean"])}


def _of_file(path: Path) -> tuple[Any, Problem, dict[str, Any]]:
    from sapp.data.loaders.files import sha256
    from sapp.evaluation.policy_file import load_actor

    actor = load_actor(path)
    width, size = actor.trunk.layers[0].weight.shape[0], actor.mean.weight.shape[1]
    problem = Problem(path.stem, None, "", None, None, width, size, [-1.0] * size, [1.0] * size, 0, 0)
    facts = {"policy": path.stem, "file": path.name, "sha256": sha256(path), "offline": None, "online": None}
    return actor, problem, facts
