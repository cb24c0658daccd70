"""An online run: a folder with its plan, checkpoints, policy snapshots, tables and the true replay buffers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sapp.algorithms import config as configuration
from sapp.algorithms.sac import SAC
from sapp.collect.replay_buffer import Log, buffer_dataset
from sapp.core.errors import SappError
from sapp.core.files import write_text
from sapp.envs import make
from sapp.envs.base import BatchEnvironment
from sapp.envs.policies import ScaledPolicy, StochasticPolicy, TanhGaussianPolicy
from sapp.envs.policy_files import load_policies, save_policies
from sapp.runs import checkpoint
from sapp.runs import metric_tables as tables
from sapp.runs.plan import stamps_of, versions

if TYPE_CHECKING:
    from sapp.data.dataset import Dataset

CONFIG, CHECKPOINTS, SNAPSHOTS, BUFFERS, DATASETS, METRICS, EVALUATIONS = (
    "config.json", "checkpoints", "snapshots", "buffers", "datasets", "metrics.csv", "evaluations.csv",
)  # fmt: skip
ENTRIES = (CONFIG, CHECKPOINTS, SNAPSHOTS, BUFFERS, DATASETS, METRICS, EVALUATIONS)
"""What training puts into its folder."""
KIND = "online"

configuration.know(SAC)


@dataclass(frozen=True)
class OnlinePlan:
    """Everything that determines an online run's results.

    Attributes:
        environments: names for ``sapp.envs.make``.
        seeds: of each environment.
        algorithm: SAC's settings.
        steps: environment steps of each member, rounded up to whole chunks.
        random_steps: of them at the start with uniform actions, without learning.
        rows: environments of a member, stepped together.
        chunk: environment steps of a member between two changes of its acting policy, and updates in that time.
        window: rows of the buffer that learning draws from, the latest.
        snapshots: steps at which policies are kept.
        checkpoint_every: steps.
        log_every: steps.
        max_episode_steps: for Gymnasium ids without a time limit.
    """

    environments: tuple[str, ...]
    seeds: tuple[int, ...]
    algorithm: SAC
    steps: int
    random_steps: int
    rows: int
    chunk: int
    window: int
    snapshots: tuple[int, ...]
    checkpoint_every: int
    log_every: int
    max_episode_steps: int | None = None

    @property
    def members(self) -> list[tuple[str, int]]:
        """(environment, seed) of every member, environment by environment."""
        return [(environment, seed) for environment in self.environments for seed in self.seeds]

    @property
    def names(self) -> list[str]:
        """Such as "hopper/0"."""
        return [f"{environment}/{seed}" for environment, seed in self.members]

    def to_json(self) -> dict[str, Any]:
        """As config.json holds it."""
        values = {key: getattr(self, key) for key in self.__dataclass_fields__ if key != "algorithm"}
        fields = {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}
        return {
            "kind": KIND, **fields, "algorithm": configuration.describe(self.algorithm),
            "format": checkpoint.FORMAT, "versions": versions(),
        }  # fmt: skip

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> OnlinePlan:
        """Read config.json's content back."""
        fields = {key: content[key] for key in cls.__dataclass_fields__}
        for key in ("environments", "seeds", "snapshots"):
            fields[key] = tuple(fields[key])
        return cls(**fields | {"algorithm": configuration.build(content["algorithm"])})


class OnlineRun:
    """A folder that ``sapp.collect.train`` made, finished or not."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        file = self.path / CONFIG
        if not file.is_file():
            cut = f": its start was cut off; give its 'sapp collect ... --out {self.path}' again"
            begun = (self.path / BUFFERS).is_dir()
            raise SappError(f"{self.path}: not a run folder (it has no {CONFIG}){cut if begun else ''}")
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
            if content.get("kind") != KIND:
                raise SappError(f"{self.path}: not a run of sapp collect; see: sapp collect --help")
            if content["format"] != checkpoint.FORMAT:
                raise SappError(f"{file}: run format {content['format']}, this version reads {checkpoint.FORMAT}")
            self.plan = OnlinePlan.from_json(content)
            self.versions = stamps_of(content)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise SappError(f"{file}: damaged ({type(error).__name__}: {error}); restore it or start again") from None
        self._environments: dict[str, BatchEnvironment] = {}

    @classmethod
    def create(cls, path: Path, plan: OnlinePlan) -> OnlineRun:
        """A new folder: buffers first, config.json last, as only then it is a run."""
        if (path / CONFIG).exists():
            raise SappError(
                f"{path}: already holds a run; continue it with 'sapp collect --resume {path}' or choose another --out"
            )
        made: list[Path] = []
        try:
            environments = {
                name: make(name, max_episode_steps=plan.max_episode_steps, recorded=True) for name in plan.environments
            }
            for environment, seed in plan.members:
                env = environments[environment]
                made.append(path / BUFFERS / _buffer_name(environment, seed))
                Log.make(made[-1], plan.steps, env.observation_size, env.action_size)
            for name in (CHECKPOINTS, SNAPSHOTS):
                (path / name).mkdir(parents=True, exist_ok=True)
            write_text(path / CONFIG, json.dumps(plan.to_json(), indent=2, ensure_ascii=False) + "\n")
        except (SappError, OSError) as error:
            for file in made:
                file.unlink(missing_ok=True)
            if isinstance(error, OSError):
                raise SappError(
                    f"{path}: cannot make the run folder ({error.strerror}); choose another --out"
                ) from None
            raise
        return cls(path)

    def __repr__(self) -> str:
        return f"OnlineRun({str(self.path)!r}, {len(self.plan.members)} members, step {self.step} of {self.plan.steps})"

    def environment(self, name: str) -> BatchEnvironment:
        """One of the run's environments, made on first use."""
        if name not in self._environments:
            self._environments[name] = make(name, max_episode_steps=self.plan.max_episode_steps, recorded=True)
        return self._environments[name]

    def log(self, environment: str, seed: int) -> Log:
        """The true replay buffer of a member."""
        env = self.environment(environment)
        path = self.path / BUFFERS / _buffer_name(environment, seed)
        return Log(path, env.observation_size, env.action_size)

    @property
    def checkpoints(self) -> dict[int, Path]:
        """Checkpoint files by step, oldest first."""
        return {int(file.stem): file for file in sorted((self.path / CHECKPOINTS).glob("[0-9]*.safetensors"))}

    @property
    def step(self) -> int:
        """Environment steps of each member at the newest checkpoint; 0 if there is none."""
        return max(self.checkpoints, default=0)

    @property
    def snapshots(self) -> dict[int, Path]:
        """Snapshot files by step, oldest first."""
        return {int(file.stem): file for file in sorted((self.path / SNAPSHOTS).glob("[0-9]*.safetensors"))}

    def save_snapshot(self, step: int, policies: Sequence[TanhGaussianPolicy]) -> None:
        """Keep all members' policies as they are at a step."""
        path = self.path / SNAPSHOTS / f"{step:010d}.safetensors"
        save_policies(path, dict(zip(self.plan.names, policies, strict=True)), {"step": step})

    def snapshot(self, step: int) -> dict[str, TanhGaussianPolicy]:
        """Policies of a step by member name."""
        if step not in self.snapshots:
            have = ", ".join(map(str, self.snapshots)) or "none"
            raise SappError(f"{self.path}: no snapshot at step {step}; it has {have}")
        return load_policies(self.snapshots[step])[0]

    def buffer(self, environment: str, seed: int, steps: int | None = None) -> Dataset:
        """The first ``steps`` rows (default: all so far) of a member's true replay buffer, as a dataset."""
        self._check_member(environment, seed)
        stop = self.step if steps is None else min(steps, self.step)
        if stop < 1:
            raise SappError(f"{self.path}: nothing recorded yet; resume the run first")
        provenance = {
            "loader": "sapp.collect",
            "environment": environment,
            "seed": seed,
            "algorithm": configuration.describe(self.plan.algorithm),
            "steps": stop,
            "rows": self.plan.rows,
            "random_steps": self.plan.random_steps,
            "versions": self.versions,
        }
        rows = self.log(environment, seed).read(0, stop)
        return buffer_dataset(rows, self.environment(environment), f"{environment}-replay-{seed}", provenance)

    def record(self, environment: str, seed: int, step: int, transitions: int) -> Dataset:
        """A dataset of one snapshot, frozen and stochastic, in the environment's own units."""
        from sapp.envs.collect import collect

        self._check_member(environment, seed)
        env = self.environment(environment)
        policy: StochasticPolicy = self.snapshot(step)[f"{environment}/{seed}"]
        if not (np.all(env.action_low == -1) and np.all(env.action_high == 1)):
            policy = ScaledPolicy(policy, env.action_low, env.action_high)
        return collect(policy, env, transitions, seed, name=f"{environment.replace('/', '-')}-{seed}-step-{step}")

    def save_datasets(self, transitions: int | None = None) -> list[Path]:
        """Write each member's replay buffer into datasets/, and so many transitions of its best snapshot, if asked.

        The best is the one with the highest stochastic return in evaluations.csv, or the last where there is none.
        """
        from sapp.data.loaders.arrays import save_npz

        files = []
        for environment, seed in self.plan.members:
            stem = f"{environment.replace('/', '-')}-{seed}"
            files.append(save_npz(self.buffer(environment, seed), self.path / DATASETS / f"{stem}-replay.npz"))
            if transitions is not None:
                rows = [row for row in self.evaluations() if row["member"] == f"{environment}/{seed}"]
                scores = {int(row["step"]): float(row["stochastic_mean"]) for row in rows}
                best = max(scores, key=lambda step: scores[step]) if scores else max(self.snapshots)
                data = self.record(environment, seed, best, transitions)
                files.append(save_npz(data, self.path / DATASETS / f"{stem}-best.npz"))
        return files

    def _check_member(self, environment: str, seed: int) -> None:
        if (environment, seed) not in self.plan.members:
            raise SappError(f"{self.path}: no member {environment}/{seed}; it has {', '.join(self.plan.names)}")

    def evaluations(self) -> list[dict[str, str]]:
        """Rows of evaluations.csv."""
        return tables.read(self.path / EVALUATIONS) if (self.path / EVALUATIONS).exists() else []

    def metrics(self) -> list[dict[str, str]]:
        """Rows of metrics.csv."""
        return tables.read(self.path / METRICS)


def _buffer_name(environment: str, seed: int) -> str:
    return f"{environment.replace('/', '-')}-{seed}.npy"


def snapshot_steps(steps: int, count: int, chunk: int, first: int) -> tuple[int, ...]:
    """``count`` whole chunks spread over training as (i/count)^1.5: denser early, where policies change fastest.

    The first is the untrained policy at ``first``, the last is the end.
    """
    wanted = (first + (steps - first) * (i / max(1, count - 1)) ** 1.5 for i in range(count))
    return tuple(sorted({min(steps, max(chunk, round(each / chunk) * chunk)) for each in wanted}))
