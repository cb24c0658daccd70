"""The policies that come with the package: one safetensors file an environment, and a card that says how they came."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from sapp.collect.benchmark.recipes import Training
from sapp.core.errors import SappError
from sapp.envs.policies import TanhGaussianPolicy
from sapp.envs.policy_files import load_policies

FOLDER = Path(__file__).parent / "policies"
CARD = "card.json"


class Shipped(NamedTuple):
    """The policies of one environment.

    Attributes:
        policies: by name, "step-0000250112" and so on.
        training: of which run they are snapshots, and which are medium and expert.
        card: all that the card says of this environment.
    """

    policies: dict[str, TanhGaussianPolicy]
    training: Training
    card: dict[str, Any]


def available(folder: Path | None = None) -> tuple[str, ...]:
    """Environments for which policies are shipped."""
    path = (folder or FOLDER) / CARD
    return tuple(_card(path)["environments"]) if path.is_file() else ()


def shipped(environment: str, folder: Path | None = None) -> Shipped:
    """The policies of an environment, with what the card says."""
    place = folder or FOLDER
    if environment not in available(place):
        raise SappError(f"{environment}: no policies are shipped for it; give one with --policy-from")
    card = _card(place / CARD)["environments"][environment]
    policies, _ = load_policies(place / f"{environment}.safetensors")
    if missing := [one["name"] for one in card["snapshots"] if one["name"] not in policies]:
        raise SappError(
            f"{place / environment}.safetensors: no policy {missing[0]}, which the card names; reinstall sapp"
        )
    steps = {one["name"]: int(one["step"]) for one in card["snapshots"]}
    return Shipped(policies, Training(steps, card["medium"], card["expert"], card.get("shares", {})), card)


def _card(path: Path) -> dict[str, Any]:
    try:
        card = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(card["environments"], dict):
            raise TypeError("environments")
        return card
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SappError(f"{path}: the card of the shipped policies is damaged ({error}); reinstall sapp") from None
