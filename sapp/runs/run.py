"""A run: a folder that holds everything a report, an evaluation or a resume needs, and nothing pickled."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from sapp.algorithms import Algorithm
from sapp.algorithms import config as configuration
from sapp.algorithms.values import critic_values
from sapp.core.errors import SappError
from sapp.core.files import write_text
from sapp.core.spec import Spec
from sapp.core.version import __version__
from sapp.data.action_units import from_unit, to_unit
from sapp.data.frames import FrameDataset
from sapp.data.normalised_scores import base_name, normalized_score, recorded_references
from sapp.networks import Policy
from sapp.runs import checkpoint
from sapp.runs import metric_tables as tables
from sapp.runs.phases import Phase
from sapp.training.device_frames import blank_frame_spec
from sapp.training.program import Data, Learner, Member, Population, Sums
from sapp.training.streaming import HostFrames

if TYPE_CHECKING:
    from sapp.data import Dataset

CONFIG, CHECKPOINTS, METRICS, EVALUATIONS, EVENTS, DATA = (
    "config.json", "checkpoints", "metrics.csv", "evaluations.csv", "events.csv", "data",
)  # fmt: skip


@dataclass(frozen=True)
class Problem:
    """What a run remembers of a dataset: enough to build and evaluate its policies without the data."""

    name: str
    source: Any
    fingerprint: str
    environment: str | None
    physics: str | None
    observation_size: int
    action_size: int
    action_low: list[float]
    action_high: list[float]
    transitions: int
    episodes: int
    num_actions: int | None = None
    action_labels: list[str] | None = None
    observation_offset: list[float] | None = None
    observation_scale: list[float] | None = None
    frame: list[int] | None = None
    """Frames of an observation, their height and width, where observations are stacks of frames."""
    observation_mean: list[float] | None = None
    observation_std: list[float] | None = None
    ledger: dict[str, Any] | None = None
    """What became of the columns and rows of the logs, see ``sapp.data.ledger.Ledger``."""
    reference_scores: list[float] | None = None
    """Returns that count as 0 and as 100, where the data say so (Minari's metadata do)."""

    @classmethod
    def of(cls, dataset: Dataset | FrameDataset, source: Any) -> Problem:
        """Describe a dataset; ``source`` is what ``sapp.load`` takes to find it again."""
        if isinstance(dataset, FrameDataset):
            return cls(
                name=dataset.name,
                source=source,
                fingerprint=dataset.fingerprint,
                environment=dataset.environment,
                physics=None,
                observation_size=int(np.prod(dataset.observation_shape)),
                action_size=dataset.num_actions,
                action_low=[0.0],
                action_high=[dataset.num_actions - 1.0],
                transitions=len(dataset.sampled_rows),
                episodes=dataset.num_episodes,
                num_actions=dataset.num_actions,
                action_labels=None if dataset.action_labels is None else list(dataset.action_labels),
                frame=list(dataset.observation_shape),
            )
        return cls(
            name=dataset.name,
            source=source,
            fingerprint=dataset.fingerprint,
            environment=dataset.environment,
            physics=dataset.physics,
            observation_size=dataset.observation.shape[1],
            action_size=dataset.action_size,
            action_low=[float(x) for x in dataset.action_low],
            action_high=[float(x) for x in dataset.action_high],
            transitions=len(dataset),
            episodes=dataset.num_episodes,
            num_actions=dataset.num_actions,
            action_labels=None if dataset.action_labels is None else list(dataset.action_labels),
            observation_offset=_floats(dataset.observation_offset),
            observation_scale=_floats(dataset.observation_scale),
            observation_mean=_floats(dataset.raw(dataset.observation_mean)),
            observation_std=_floats(dataset.observation_std * dataset.raw_scale),
            ledger=dataset.provenance.get("ledger"),
            reference_scores=recorded_references(dataset.provenance),
        )

    @property
    def discrete(self) -> bool:
        """Whether actions are choices rather than vectors."""
        return self.num_actions is not None

    def empty_spec(self) -> Spec:
        """A spec of the right shape; the true statistics are part of the checkpoint."""
        if self.frame is not None:
            return blank_frame_spec(self.frame, self.action_size)
        zeros = jnp.zeros(self.observation_size)
        return Spec(self.observation_size, self.action_size, zeros, jnp.ones_like(zeros), self.discrete)

    def scores(self, returns: np.ndarray) -> np.ndarray | None:
        """Returns on the scale of 0 to 100, where reference returns are known."""
        known = base_name(self.environment or "")
        if known is not None:
            return normalized_score(known, returns)
        if self.reference_scores is None:
            return None
        low, high = self.reference_scores
        return np.asarray(100.0 * (np.asarray(returns, np.float64) - low) / (high - low))

    def to_network(self, observation: np.ndarray) -> np.ndarray:
        """Observations as they are logged, scaled as the data was when it was loaded."""
        if self.observation_offset is None or self.observation_scale is None:
            return observation
        offset = np.asarray(self.observation_offset, np.float32)
        return np.asarray((observation - offset) / np.asarray(self.observation_scale, np.float32), np.float32)

    def batch(self, observation: np.ndarray) -> np.ndarray:
        """One observation or many as a batch, refused where they are not this problem's."""
        if self.frame is not None:
            stacks = np.asarray(observation)
            if stacks.dtype != np.uint8 or stacks.ndim not in (3, 4) or list(stacks.shape[-3:]) != self.frame:
                raise SappError(
                    f"observation is {stacks.dtype} {stacks.shape}; {self.name} has stacks of frames, uint8 "
                    f"{tuple(self.frame)}"
                )
            return stacks.reshape(-1, *self.frame)
        batch = np.atleast_2d(np.asarray(observation, np.float32))
        if batch.ndim != 2 or batch.shape[1] != self.observation_size:
            raise SappError(
                f"observation has shape {np.shape(observation)}; {self.name} has {self.observation_size} values"
            )
        return batch

    def from_units(self, action: np.ndarray, count: int) -> np.ndarray:
        """``count`` actions in the data's units as networks take them; see ``to_units``."""
        given = np.asarray(action)
        shape = (count,) if self.discrete else (count, self.action_size)
        if given.size != np.prod(shape) or (self.discrete and given.dtype.kind not in "iu"):
            kind = f"whole numbers below {self.num_actions}" if self.discrete else f"{self.action_size} values"
            raise SappError(f"action has shape {given.shape}; {self.name} has {kind} for each of {count} observations")
        if self.discrete:
            numbers = given.reshape(shape).astype(np.int32)
            if numbers.min() < 0 or numbers.max() >= self.action_size:
                raise SappError(f"actions of {self.name} are 0 to {self.action_size - 1}; one is outside")
            return numbers
        return to_unit(given.reshape(shape), self.action_low, self.action_high, clip=False)

    def to_units(self, action: np.ndarray) -> np.ndarray:
        """Actions of a policy in the data's own units; discrete ones are numbers of choices and stay as they are."""
        if self.discrete:
            return np.asarray(action)
        low, high = np.asarray(self.action_low, np.float32), np.asarray(self.action_high, np.float32)
        return np.asarray(from_unit(np.asarray(action), low, high))


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
        return {**asdict(self), "members": members, "format": checkpoint.FORMAT, "versions": versions()}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Plan:
        """Read config.json's content back."""
        optional = ("eval_max_steps",)  # runs made before it was there go without
        fields = {name: content[name] for name in cls.__dataclass_fields__ if name in content or name not in optional}
        fields["members"] = tuple(
            Member(m["name"], configuration.build(m["algorithm"]), m["dataset"], m["seed"]) for m in content["members"]
        )
        fields["problems"] = tuple(Problem(**p) for p in content["problems"])
        fields["phases"] = tuple(Phase(**p) for p in content["phases"])
        return cls(**fields)

    def groups(self) -> list[list[int]]:
        """Members that share a compiled program: same structure, same sizes."""
        found: dict[Any, list[int]] = {}
        for index, member in enumerate(self.members):
            problem = self.problems[member.dataset]
            frame = None if problem.frame is None else tuple(problem.frame)
            shape = jax.tree.structure(member.algorithm), problem.observation_size, problem.action_size, frame
            found.setdefault(shape, []).append(index)
        return list(found.values())


def _floats(values: np.ndarray | None) -> list[float] | None:
    return None if values is None else [float(x) for x in values]


def populations(
    plan: Plan, data: Sequence[Data | HostFrames] | None = None, specs: Sequence[Sequence[Spec]] | None = None
) -> list[Population]:
    """One population a group; without data they can hold and apply policies but not train."""
    empty = [problem.empty_spec() for problem in plan.problems]
    out = []
    for number, indices in enumerate(plan.groups()):
        members = [plan.members[index] for index in indices]
        group_data = data[number] if data is not None else None
        out.append(Population(members, group_data, specs[number] if specs is not None else empty))
    return out


def save_checkpoint(folder: Path, step: int, learners: list[Learner], sums: Sequence[Sums] | None = None) -> None:
    """Write the checkpoint of a step into a run folder; ``sums`` are metrics that are not yet in a row."""
    information: dict[str, Any] = {"step": step}
    if sums is not None:  # a float32 is written exactly
        information["sums"] = [jax.tree.map(lambda x: np.asarray(x).tolist(), vars(each)) for each in sums]
    checkpoint.save(folder / CHECKPOINTS / f"{step:010d}.safetensors", learners, information)


def versions() -> dict[str, str]:
    """Stamps of what made a run."""
    from importlib.metadata import version

    names = ("jax", "jaxlib", "equinox", "optax", "numpy", "mujoco", "gymnasium")
    stamps = {name: _version(version, name) for name in names} | {"sapp": __version__}
    return stamps | {"python": platform.python_version(), "device": jax.devices()[0].device_kind}


def _version(version: Any, name: str) -> str:
    from importlib.metadata import PackageNotFoundError

    try:
        return str(version(name))
    except PackageNotFoundError:
        return "not installed"


class Run:
    """A run folder, finished or not."""

    def __init__(self, path: str | Path) -> None:
        """Open a folder that ``sapp.train`` made."""
        self.path = Path(path)
        file = self.path / CONFIG
        if not file.is_file():
            raise SappError(f"{self.path}: not a run folder (it has no {CONFIG}){_cut_off(self.path)}")
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
            if content.get("kind") == "online":
                raise SappError(f"{self.path}: an online run; continue it with 'sapp collect --resume {self.path}'")
            if content["format"] != checkpoint.FORMAT:
                made = content.get("versions", {}).get("sapp", "unknown")
                raise SappError(
                    f"{file}: run format {content['format']}, this version reads {checkpoint.FORMAT}; use sapp {made}"
                )
            self.plan = Plan.from_json(content)
        except SappError as error:
            raise SappError(str(error) if str(file) in str(error) else f"{self.path}: {error}") from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise SappError(f"{file}: damaged ({type(error).__name__}: {error}); restore it or train again") from None

    @staticmethod
    def make_folder(path: Path) -> None:
        """An empty folder for a new run; an existing run is never overwritten."""
        if (path / CONFIG).exists():
            if any((path / CHECKPOINTS).glob("[0-9]*.safetensors")):
                mend = f"; continue it with 'sapp resume {path}'"
            else:
                mend = f" that has no checkpoint yet; start it again from step 0 with 'sapp resume {path}'"
            raise SappError(f"{path}: already holds a run{mend} or choose another --out")
        try:
            (path / CHECKPOINTS).mkdir(parents=True, exist_ok=True)
            # all that a run killed while it was made can have left
            (path / CHECKPOINTS / f"{0:010d}.safetensors").unlink(missing_ok=True)
        except OSError as error:
            raise SappError(f"{path}: cannot make the run folder ({error.strerror}); choose another --out") from None
        if any((path / CHECKPOINTS).glob("[0-9]*.safetensors")):
            raise SappError(f"{path}: holds checkpoints but no {CONFIG}; restore it or choose another --out")

    @classmethod
    def create(cls, path: Path, plan: Plan) -> Run:
        """Write config.json: from here on the folder is a run, so all else that it starts with is there already."""
        write_text(path / CONFIG, json.dumps(plan.to_json(), indent=2, ensure_ascii=False) + "\n")
        return cls(path)

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r}, {len(self.plan.members)} members, step {self.step} of {self.total_steps})"

    @property
    def total_steps(self) -> int:
        """Steps of all phases."""
        return sum(phase.steps for phase in self.plan.phases)

    @property
    def checkpoints(self) -> dict[int, Path]:
        """Checkpoint files by step, oldest first."""
        return {int(file.stem): file for file in sorted((self.path / CHECKPOINTS).glob("[0-9]*.safetensors"))}

    @property
    def step(self) -> int:
        """Step of the newest checkpoint; 0 if there is none."""
        return max(self.checkpoints, default=0)

    @property
    def members(self) -> list[str]:
        """Names of the members."""
        return [member.name for member in self.plan.members]

    def save(self, step: int, learners: list[Learner], sums: Sequence[Sums] | None = None) -> None:
        """Write a checkpoint and drop the oldest beyond ``keep``."""
        save_checkpoint(self.path, step, learners, sums)
        for file in list(self.checkpoints.values())[: -self.plan.keep]:
            file.unlink(missing_ok=True)

    def restore(self, step: int | None = None) -> tuple[int, list[Learner]]:
        """The newest (or named) checkpoint; no members if there is none yet."""
        like = [jax.eval_shape(population.init) for population in populations(self.plan)]
        found = self.checkpoints
        if step is not None:
            if step not in found:
                raise checkpoint.NoCheckpoint(
                    f"{self.path}: no checkpoint at step {step}; it has {', '.join(map(str, found)) or 'none'}"
                )
            return step, checkpoint.load(found[step], like)
        while found:
            newest = max(found)
            try:
                return newest, checkpoint.load(found[newest], like)
            except checkpoint.NoCheckpoint:  # whoever trains the run has just put a newer one in its place
                found = self.checkpoints
                if newest in found:  # it was not dropped: a link to nothing, say
                    raise
        return 0, []

    def unlogged(self, step: int) -> list[Sums] | None:
        """Metrics that a checkpoint inside a log interval keeps for the row to come; None where there are none."""
        found = self.checkpoints
        kept = checkpoint.read_information(found[step]).get("sums") if step in found else None
        if kept is None:
            return None
        return [
            Sums(
                {name: jnp.asarray(value, jnp.float32) for name, value in each["values"].items()},
                jnp.asarray(each["steps"], jnp.float32),
            )
            for each in kept
        ]

    @cached_property
    def actors(self) -> list[Policy]:
        """The policies of the newest checkpoint, one a member, in the order of ``members``."""
        return self.actors_at()[1]

    def actors_at(self, step: int | None = None) -> tuple[int, list[Policy]]:
        """The newest (or named) checkpoint's step and policies, one a member, in the order of ``members``."""
        step, learners = self.restore(step)
        if not learners:
            raise SappError(f"{self.path}: no checkpoint yet; train or resume the run first")
        out: list[Any] = [None] * len(self.plan.members)
        for population, learner, indices in zip(populations(self.plan), learners, self.plan.groups(), strict=True):
            stacked = population.actors(learner)
            for position, index in enumerate(indices):
                out[index] = jax.tree.map(lambda leaf, i=position: leaf[i], stacked)
        return step, out

    def member_index(self, member: int | str) -> int:
        """Index of a member given by index or name."""
        if isinstance(member, str):
            if member not in self.members:
                raise SappError(f"{self.path}: no member {member!r}; it has {', '.join(self.members)}")
            return self.members.index(member)
        if not -len(self.members) <= member < len(self.members):
            raise SappError(f"{self.path}: no member {member}; it has {len(self.members)}")
        return member % len(self.members)

    def predict(self, observation: np.ndarray, member: int | str = 0) -> np.ndarray:
        """Deterministic action(s) as they were logged, for one observation [O] or many [B, O] as they were logged.

        A dataset's ``observation`` may be standardised (``sapp.load`` with a column mapping); ``data.raw`` undoes it.

        Where observations are stacks of frames: uint8 [stack, H, W], or [B, stack, H, W].
        """
        index = self.member_index(member)
        problem = self.plan.problems[self.plan.members[index].dataset]
        batch = problem.batch(observation)
        actions = problem.to_units(np.asarray(_mode(self.actors[index], problem.to_network(batch))))
        return actions if np.ndim(observation) == batch.ndim else actions[0]

    def predict_value(self, observation: np.ndarray, action: np.ndarray, member: int | str = 0) -> np.ndarray:
        """What the newest critics think action(s) are worth: Q(s,a), the least of the ensemble.

        Pessimistic algorithms value unlogged actions low on purpose: this is what they learned, not an estimate of what
        a policy earns (``sapp evaluate --offline`` is).

        Args:
            observation: one or many, as ``predict`` takes them.
            action: one for each observation, in the data's units: [A] or [B, A]; numbers of discrete actions.
            member: name or index.
        """
        index = self.member_index(member)
        problem = self.plan.problems[self.plan.members[index].dataset]
        batch = problem.batch(observation)
        actions = problem.from_units(action, len(batch))
        seen = jnp.asarray(problem.to_network(batch))
        values = np.asarray(critic_values(*self._learned[index], seen, jnp.asarray(actions)))
        return values if np.ndim(observation) == batch.ndim else values[0]

    @cached_property
    def _learned(self) -> list[tuple[Algorithm, Any]]:
        """Algorithm and state of every member at the newest checkpoint."""
        _, learners = self.restore()
        if not learners:
            raise SappError(f"{self.path}: no checkpoint yet; train or resume the run first")
        out: list[Any] = [None] * len(self.plan.members)
        for learner, indices in zip(learners, self.plan.groups(), strict=True):
            for position, index in enumerate(indices):
                state = jax.tree.map(lambda leaf, i=position: leaf[i], learner.base)
                out[index] = self.plan.members[index].algorithm, state
        return out

    def metrics(self) -> list[dict[str, str]]:
        """Rows of metrics.csv."""
        return tables.read(self.path / METRICS)

    def final_and_best(self) -> list[dict[str, Any]]:
        """A row a member that was played: mean return at its last and at its best evaluation, and their steps.

        The best is chosen by the very episodes that it reports, so it flatters; the final one does not.
        """
        by_member: dict[str, list[tuple[int, float]]] = {}
        for row in self.evaluations():
            by_member.setdefault(row["member"], []).append((int(row["step"]), float(row["return_mean"])))
        found = []
        for member in self.members:
            if member in by_member:
                final, best = by_member[member][-1], max(by_member[member], key=lambda pair: pair[1])
                found.append(
                    {"member": member, "final": final[1], "final_step": final[0], "best": best[1], "best_step": best[0]}
                )
        return found

    def evaluations(self) -> list[dict[str, str]]:
        """Rows of evaluations.csv."""
        return tables.read(self.path / EVALUATIONS)


def _cut_off(path: Path) -> str:
    """What to add for a folder that is no run yet: how to start one that was killed while it was made."""
    steps = [int(file.stem) for file in (path / CHECKPOINTS).glob("[0-9]*.safetensors")]
    if any(steps) or not (path / CHECKPOINTS).is_dir():
        return ""
    return f": it was stopped before anything was trained; give its 'sapp train ... --out {path}' again"


@jax.jit
def _mode(actor: Policy, observation: jax.Array) -> jax.Array:
    return actor(observation).mode()
