"""A run's plan: everything that determines its results, as config.json holds it."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax

from sapp.algorithms import config as configuration
from sapp.core.errors import SappError
from sapp.core.spec import Spec
from sapp.core.version import __version__
from sapp.runs.learners import Group
from sapp.runs.members import Member, MemberId
from sapp.runs.phases import Phase
from sapp.runs.problem import Problem

FORMAT = 2
"""Raised when the layout of run folders changes: older ones are then refused by name."""

SETTINGS = ("jax_default_prng_impl", "jax_threefry_partitionable", "jax_enable_x64")


@dataclass(frozen=True)
class Plan:
    """Everything that determines a run's results."""

    members: tuple[Member, ...]
    problems: tuple[Problem, ...]
    phases: tuple[Phase, ...]
    log_every: int
    checkpoint_every: int
    eval_every: int
    eval_episodes: int
    eval_seed: int
    keep: int
    eval_max_steps: int | None = None

    def to_json(self) -> dict[str, Any]:
        """As config.json holds it."""
        members = [
            {"name": m.name, "algorithm": configuration.describe(m.algorithm), "dataset": m.dataset, "seed": m.seed}
            for m in self.members
        ]
        return {**asdict(self), "members": members, "format": FORMAT, "versions": versions()}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Plan:
        """Read config.json's content back."""
        fields = {name: content[name] for name in cls.__dataclass_fields__}
        fields["members"] = tuple(
            Member(m["name"], configuration.build(m["algorithm"]), m["dataset"], m["seed"]) for m in content["members"]
        )
        fields["problems"] = tuple(Problem(**p) for p in content["problems"])
        fields["phases"] = tuple(Phase(**p) for p in content["phases"])
        return cls(**fields)

    @property
    def ids(self) -> list[MemberId]:
        """What the members are called, in their order."""
        return [MemberId(member.name, self.problems[member.dataset].name, member.seed) for member in self.members]

    def groups(self) -> list[list[int]]:
        """Numbers of members that share a compiled program: same structure, same sizes."""
        found: dict[Any, list[int]] = {}
        for index, member in enumerate(self.members):
            problem = self.problems[member.dataset]
            frame = None if problem.frame is None else tuple(problem.frame)
            shape = jax.tree.structure(member.algorithm), problem.observation_size, problem.action_size, frame
            found.setdefault(shape, []).append(index)
        return list(found.values())

    def stacked(self, specs: Sequence[Spec] | None = None) -> list[Group]:
        """The members of each of ``groups``, stacked; without specs of the data they can be restored, not begun."""
        known = [problem.empty_spec() for problem in self.problems] if specs is None else specs
        return [Group([self.members[index] for index in indices], known) for indices in self.groups()]


def check_format(file: Path, content: Mapping[str, Any]) -> None:
    """Refuse what another version's config.json holds."""
    if content["format"] != FORMAT:
        made = content.get("versions", {}).get("sapp", "unknown")
        raise SappError(
            f"{file}: run format {content['format']}, this version reads {FORMAT}; train again, or use the sapp that "
            f"made it (version {made})"
        )


def versions() -> dict[str, str]:
    """Stamps of what made a run."""
    from importlib.metadata import version

    names = ("jax", "jaxlib", "equinox", "optax", "numpy", "mujoco", "gymnasium")
    stamps = {name: _version(version, name) for name in names} | {"sapp": __version__}
    return stamps | settings() | {"python": platform.python_version(), "device": jax.devices()[0].device_kind}


def settings() -> dict[str, str]:
    """JAX's settings that decide which random numbers are drawn and how wide numbers are."""
    return {name: str(getattr(jax.config, name)) for name in SETTINGS}


def stamps_of(content: Mapping[str, Any]) -> dict[str, str]:
    """The stamps in config.json."""
    stamps = content.get("versions", {})
    if not isinstance(stamps, dict) or not all(isinstance(each, str) for each in stamps.values()):
        raise SappError("versions in config.json are not names and texts; restore the file")
    return stamps


def check_settings(where: Path, begun: Mapping[str, str]) -> list[str]:
    """Refuse to go on with other random numbers; returns what else is not as it was when the run began."""
    now = versions()
    for name in SETTINGS:
        if begun.get(name, now[name]) != now[name]:
            raise SappError(
                f"{where}: was begun with {name}={begun[name]}, now it is {now[name]}, which draws other numbers; set "
                f"{name.upper()}={begun[name]}"
            )
    changed = [f"{key} {begun[key]} is now {now[key]}" for key in now if begun.get(key, now[key]) != now[key]]
    return [f"{where}: {'; '.join(changed)}: results may differ in their last bits"] if changed else []


def _version(version: Any, name: str) -> str:
    from importlib.metadata import PackageNotFoundError

    try:
        return str(version(name))
    except PackageNotFoundError:
        return "not installed"
