"""Members written by hand: what each seed scored in each episode, and nothing trained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sapp.report.records import Experiment, Member


def member(
    variant: str = "CQL", dataset: str = "hopper-medium", seed: int = 0, scores: Any = (1.0,), **other: Any
) -> Member:
    """A member; scores are those of its last evaluation, at step 100, or by step."""
    by_step = scores if isinstance(scores, Mapping) else {100: scores}
    played = {step: each if isinstance(each, Mapping) else dict(enumerate(each)) for step, each in by_step.items()}
    given: dict[str, Any] = {
        "run": f"{variant}/{dataset}/{seed}", "unit": "score", "starts": 0, "metrics": {}, "events": (),
        "algorithm": {"class": "CQL"}, "facts": {"fingerprint": "f"},
    }  # fmt: skip
    return Member(variant, dataset, seed, evaluations=played, **(given | other))


def experiment(*members: Member, focus: str = "SA-CQL", name: str = "table1", scale: str = "small") -> Experiment:
    """An experiment of these members."""
    variants = tuple(dict.fromkeys(each.variant for each in members))
    datasets = tuple(dict.fromkeys(each.dataset for each in members))
    return Experiment(name, scale, "Title", "Question?", focus, variants, datasets, members, "by hand")
