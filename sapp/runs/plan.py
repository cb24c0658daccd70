"""A run's plan: everything that determines its results, as config.json holds it."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax

from sapp.algorithms import Algorithm
from sapp.algorithms import config as configuration
from sapp.core.decode import check_fits, check_least, decode, refuse_unknown
from sapp.core.errors import SappError
from sapp.core.spec import Spec
from sapp.core.version import __version__
from sapp.runs.learners import Group
from sapp.runs.members import Member, MemberId
from sapp.runs.phases import Phase
from sapp.runs.problem import Problem, problem

FORMAT = 2
"""Raised when the layout of run folders changes: older ones are then refused by name."""

COUNTS = {"log_every": 1, "checkpoint_every": 0, "eval_every": 0, "eval_episodes": 1, "eval_seed": 0, "keep": 1,
          "eval_max_steps": 1}  # fmt: skip
"""Numbers of a plan, and what they are at least."""
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
        known = set(cls.__dataclass_fields__)
        refuse_unknown(content, known | {"format", "versions"}, "the run")
        for name in sorted(known):
            if name not in content and name != "eval_max_steps":
                raise SappError(f"the run lacks {name!r}")
        parts: dict[str, list[Any]] = {}
        for name in ("members", "problems", "phases"):
            check_fits(content[name], list[dict[str, Any]], repr(name))
            parts[name] = content.get(name, [])
        members = [_member(each, f"member {number}") for number, each in enumerate(parts["members"])]
        problems = [problem(each, f"dataset {number}") for number, each in enumerate(parts["problems"])]
        phases = [decode(Phase, each, f"phase {number}") for number, each in enumerate(parts["phases"])]
        counts = {name: content.get(name) for name in COUNTS}
        for name, value in counts.items():
            check_fits(value, int | None if name == "eval_max_steps" else int, repr(name))
        plan = cls(tuple(members), tuple(problems), tuple(phases), **counts)  # type: ignore[arg-type]
        plan.check()
        return plan

    def check(self) -> None:
        """Refuse what no run has."""
        check_least(self, COUNTS, "the run")
        for name in ("members", "problems", "phases"):
            if not getattr(self, name):
                raise SappError(f"the run has no {name}")
        if any(not 0 <= member.dataset < len(self.problems) for member in self.members):
            raise SappError(f"a member's dataset is none of the {len(self.problems)} that the run has")
        if len(set(self.ids)) < len(self.ids):
            raise SappError("two members have the same name, dataset and seed")
        if not 0 < sum(phase.steps for phase in self.phases) <= 2**31 - 1:
            raise SappError("the steps of all phases must be 1 to 2,147,483,647")

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


def _member(content: Any, where: str) -> Member:
    """A member of config.json."""
    check_fits(content, dict[str, Any], where)
    refuse_unknown(content, ("name", "algorithm", "dataset", "seed"), where)
    for name, kind in {"name": str, "algorithm": dict[str, Any], "dataset": int, "seed": int}.items():
        if name not in content:
            raise SappError(f"{where} lacks {name!r}")
        check_fits(content[name], kind, f"{where}: {name!r}")
    if not 0 <= content["seed"] < 2**32 or not content["name"].isprintable():
        raise SappError(f"{where}: 'seed' must be 0 to 4,294,967,295, 'name' without control characters")
    algorithm = configuration.build(content["algorithm"])
    if not isinstance(algorithm, Algorithm):
        raise SappError(f"{where}: {type(algorithm).__name__} is not an algorithm")
    return Member(content["name"], algorithm, content["dataset"], content["seed"])


def check_format(file: Path, content: Mapping[str, Any]) -> None:
    """Refuse what another version's config.json holds."""
    if content["format"] != FORMAT:
        made = stamps_of(content).get("sapp", "unknown")
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
    if not isinstance(stamps, dict) or not all(
        isinstance(each, str) and each.isprintable() for each in stamps.values()
    ):
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
