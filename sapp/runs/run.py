"""A run: a folder that holds everything a report, an evaluation or a resume needs, and nothing pickled."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from sapp.algorithms import Algorithm
from sapp.algorithms.values import critic_values
from sapp.core.backend_choice import unusable_backend
from sapp.core.decode import check_fits, parse_json
from sapp.core.errors import SappError, did_you_mean, one_line
from sapp.core.files import write_text
from sapp.networks import Policy
from sapp.runs import checkpoint
from sapp.runs import metric_tables as tables
from sapp.runs.events import Event
from sapp.runs.folders import CHECKPOINTS, CONFIG, EVALUATIONS, EVENTS, METRICS, checkpoint_files
from sapp.runs.learners import Group, Learner, Sums, one_of
from sapp.runs.members import MemberId
from sapp.runs.plan import Plan, check_format, stamps_of


def save_checkpoint(folder: Path, step: int, learners: Sequence[Learner], sums: Sequence[Sums] | None = None) -> None:
    """Write the checkpoint of a step into a run folder; ``sums`` are metrics that are not yet in a row."""
    information: dict[str, Any] = {"step": step}
    if sums is not None:  # a float32 is written exactly
        information["sums"] = [jax.tree.map(lambda x: np.asarray(x).tolist(), vars(each)) for each in sums]
    checkpoint.save(folder / CHECKPOINTS / f"{step:010d}.safetensors", list(learners), information)


_UNMAKEABLE = (TypeError, ValueError, ArithmeticError, IndexError, AssertionError, AttributeError, MemoryError)
"""What networks raise that a damaged configuration describes."""


class Run:
    """A run folder, finished or not."""

    def __init__(self, path: str | Path) -> None:
        """Open a folder that ``sapp.train`` made."""
        self.path = Path(path)
        file = self.path / CONFIG
        if not file.is_file():
            if not self.path.exists():
                names = [each.name for each in self.path.parent.iterdir()] if self.path.parent.is_dir() else []
                raise SappError(f"{self.path}: no such run folder{did_you_mean(self.path.name, names)}")
            raise SappError(f"{self.path}: not a run folder (it has no {CONFIG}){_cut_off(self.path)}")
        try:
            content = parse_json(file.read_text(encoding="utf-8"))
            check_fits(content, dict[str, Any], "its content")
            if content.get("kind") in ("online", "online dqn"):
                raise SappError(f"{self.path}: an online run; continue it with 'sapp collect --resume {self.path}'")
            check_format(file, content)
            self.plan = Plan.from_json(content)
            self.versions = stamps_of(content)
            """What the run was begun with; see ``sapp.runs.plan.versions``."""
        except SappError as error:
            if str(file) in str(error):
                raise
            raise SappError(f"{file}: {str(error).removeprefix(f'{CONFIG}: ')}; restore it or train again") from None
        except OSError as error:
            raise SappError(f"{file}: cannot be read ({error.strerror}); make it readable") from None
        except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError, IndexError) as error:
            what = f"{type(error).__name__}: {one_line(error)}"
            raise SappError(f"{file}: damaged ({what}); restore it or train again") from None

    @staticmethod
    def make_folder(path: Path) -> None:
        """An empty folder for a new run; an existing run is never overwritten."""
        if (path / CONFIG).exists():
            if checkpoint_files(path):
                advice = f"; continue it with 'sapp resume {path}'"
            else:
                advice = f" that has no checkpoint yet; start it again from step 0 with 'sapp resume {path}'"
            raise SappError(f"{path}: already holds a run{advice} or choose another --out")
        try:
            (path / CHECKPOINTS).mkdir(parents=True, exist_ok=True)
            # all that a run killed while it was made can have left
            (path / CHECKPOINTS / f"{0:010d}.safetensors").unlink(missing_ok=True)
        except OSError as error:
            raise SappError(f"{path}: cannot make the run folder ({error.strerror}); choose another --out") from None
        if checkpoint_files(path):
            raise SappError(f"{path}: holds checkpoints but no {CONFIG}; restore it or choose another --out")

    @classmethod
    def create(cls, path: Path, plan: Plan) -> Self:
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
        return checkpoint_files(self.path)

    @property
    def step(self) -> int:
        """Step of the newest checkpoint; 0 if there is none."""
        return max(self.checkpoints, default=0)

    @property
    def members(self) -> list[MemberId]:
        """What the members are called."""
        return self.plan.ids

    @cached_property
    def groups(self) -> list[Group]:
        """The members stacked as checkpoints hold them; data are not needed."""
        return self.plan.stacked()

    def save(self, step: int, learners: Sequence[Learner], sums: Sequence[Sums] | None = None) -> None:
        """Write a checkpoint and drop the oldest beyond ``keep``."""
        for name in (METRICS, EVALUATIONS, EVENTS):
            if (self.path / name).exists():
                tables.sync_table(self.path / name)
        save_checkpoint(self.path, step, learners, sums)
        for file in list(self.checkpoints.values())[: -self.plan.keep]:
            file.unlink(missing_ok=True)

    def restore(self, step: int | None = None) -> tuple[int, list[Learner]]:
        """The newest (or named) checkpoint; no members if there is none yet."""
        like = self._shapes()
        found = self.checkpoints
        if step is not None:
            if step not in found:
                raise checkpoint.NoCheckpoint(
                    f"{self.path}: no checkpoint at step {step}; it has {', '.join(map(str, found)) or 'none'}"
                )
            return step, _load(found[step], step, like)
        while found:
            newest = max(found)
            try:
                return newest, _load(found[newest], newest, like)
            except checkpoint.NoCheckpoint:  # whoever trains the run has just put a newer one in its place
                found = self.checkpoints
                if newest in found:  # it was not dropped: a link to nothing, say
                    raise
        return 0, []

    def _shapes(self) -> list[Any]:
        """What a checkpoint must hold; values that pass one by one may still make no network together."""
        try:
            return [group.shapes() for group in self.groups]
        except _UNMAKEABLE as error:
            if backend := unusable_backend():
                raise SappError(backend) from None
            raise SappError(
                f"{self.path / CONFIG}: what it describes cannot be made ({one_line(error)}); restore it or train again"
            ) from None

    def unlogged(self, step: int) -> list[Sums] | None:
        """Metrics that a checkpoint inside a log interval keeps for the row to come; None where there are none."""
        found = self.checkpoints
        kept = checkpoint.read_information(found[step]).get("sums") if step in found else None
        if kept is None:
            return None
        try:
            return [
                Sums(
                    {name: jnp.asarray(value, jnp.float32) for name, value in each["values"].items()},
                    jnp.asarray(each["steps"], jnp.float32),
                )
                for each in kept
            ]
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise SappError(f"{found[step]}: its sums of metrics are damaged ({one_line(error)}); delete it") from None

    @cached_property
    def actors(self) -> list[Policy]:
        """The policies of the newest checkpoint, one per member, in the order of ``members``."""
        return self.actors_at()[1]

    def actors_at(self, step: int | None = None) -> tuple[int, list[Policy]]:
        """The newest (or named) checkpoint's step and policies, one per member, in the order of ``members``."""
        step, learners = self.restore(step)
        if not learners:
            raise SappError(f"{self.path}: no checkpoint yet; train or resume the run first")
        out: list[Any] = [None] * len(self.plan.members)
        for group, learner, indices in zip(self.groups, learners, self.plan.groups(), strict=True):
            stacked = group.policies(learner)
            for position, index in enumerate(indices):
                out[index] = one_of(stacked, position)
        return step, out

    def member_index(self, member: int | str | MemberId) -> int:
        """Index of a member given by index, by what it is called, or by that as text."""
        if not isinstance(member, int):
            names = [str(each) for each in self.members]
            if str(member) not in names:
                raise SappError(f"{self.path}: no member {str(member)!r}; it has {', '.join(names)}")
            return names.index(str(member))
        if not -len(self.members) <= member < len(self.members):
            raise SappError(f"{self.path}: no member {member}; it has {len(self.members)}")
        return member % len(self.members)

    def predict(
        self, observation: np.ndarray, member: int | str | MemberId = 0, action_mask: np.ndarray | None = None
    ) -> np.ndarray:
        """Deterministic action(s) for one observation [O] or many [B, O], both in the units of the logs.

        A dataset's ``observation`` may be standardised (``sapp.load`` with a column mapping); ``data.raw`` undoes it.

        Where observations are stacks of frames: uint8 [stack, H, W], or [B, stack, H, W].

        Args:
            observation: one or many.
            member: name or index.
            action_mask: which actions are possible, 0 or 1 for each [n] or [B, n], where the data have such masks
                (``Dataset.mask_at``) and the observation is given without.
        """
        index = self.member_index(member)
        problem = self.plan.problems[self.plan.members[index].dataset]
        batch = problem.batch(observation, action_mask)
        actions = problem.to_units(np.asarray(_mode(self.actors[index], problem.to_network(batch))))
        return actions if np.ndim(observation) == batch.ndim else actions[0]

    def predict_value(
        self, observation: np.ndarray, action: np.ndarray, member: int | str | MemberId = 0,
        action_mask: np.ndarray | None = None,
    ) -> np.ndarray:  # fmt: skip
        """What the newest critics think action(s) are worth: Q(s,a), the minimum of the ensemble.

        Pessimistic algorithms value unlogged actions low on purpose: this is what they learned, not an estimate of what
        a policy earns (``sapp evaluate --offline`` is).

        Args:
            observation: one or many, as ``predict`` takes them.
            action: one for each observation, in the data's units: [A] or [B, A]; numbers of discrete actions.
            member: name or index.
            action_mask: as ``predict`` takes it; what it rules out is worth -1e9.
        """
        index = self.member_index(member)
        problem = self.plan.problems[self.plan.members[index].dataset]
        batch = problem.batch(observation, action_mask)
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
                out[index] = self.plan.members[index].algorithm, one_of(learner.base, position)
        return out

    def metrics(self) -> list[dict[str, str]]:
        """Rows of metrics.csv, as text; ``pandas.read_csv(run.path / "metrics.csv")`` has them as numbers."""
        return tables.read(self.path / METRICS)

    def final_and_best(self) -> list[dict[str, Any]]:
        """A row per member that was played: mean return at its last and at its best evaluation, and their steps.

        The best is chosen by the same episodes that it reports, so it is optimistic; the final one is not.
        """
        by_member: dict[MemberId, list[tuple[int, float]]] = {}
        rows = self.evaluations()
        if "" in tables.column(rows, "return_mean", self.path / EVALUATIONS):
            raise SappError(f"{self.path / EVALUATIONS}: a row has no 'return_mean'; restore the file")
        for row in rows:
            by_member.setdefault(MemberId.of(row), []).append((int(row["step"]), float(row["return_mean"])))
        found = []
        for member in self.members:
            if member in by_member:
                final, best = by_member[member][-1], max(by_member[member], key=lambda pair: pair[1])
                found.append(
                    {"member": member, "final": final[1], "final_step": final[0], "best": best[1], "best_step": best[0]}
                )
        return found

    def evaluations(self) -> list[dict[str, str]]:
        """Rows of evaluations.csv, as text; pandas reads the file as numbers."""
        return tables.read(self.path / EVALUATIONS)

    def events(self) -> list[Event]:
        """What happened to members, from events.csv."""
        return [Event.of(row) for row in tables.read(self.path / EVENTS)]


def _load(file: Path, step: int, like: list[Learner]) -> list[Learner]:
    """A checkpoint's learners, if it is of the step that its name says."""
    learners = checkpoint.load(file, like)
    checkpoint.check_step(file, step)
    return learners


def _cut_off(path: Path) -> str:
    """What to add for a folder that is no run yet: how to start one that was killed while it was made."""
    if not (path / CHECKPOINTS).is_dir() or any(checkpoint_files(path)):
        return ""
    return f": it was stopped before anything was trained; give its 'sapp train ... --out {path}' again"


@jax.jit
def _mode(actor: Policy, observation: jax.Array) -> jax.Array:
    return actor(observation).mode()
