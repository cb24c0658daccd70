"""Behaviour policies in NumPy: uniform, and the tanh-Gaussian networks that D4RL and DOPE publish."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import Any, Protocol
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from sapp.core.errors import SappError
from sapp.data.action_units import from_unit
from sapp.data.loaders.limits import check_npz, open_hdf5
from sapp.envs.base import Actions, Array, BatchEnvironment, mask_place
from sapp.envs.blas import one_blas_thread

Float = npt.NDArray[np.float32]

LOG_STD_RANGE = (-20.0, 2.0)
"""Bounds of the log standard deviation in rlkit's SAC, which made D4RL's and DOPE's policies."""


class StochasticPolicy(Protocol):
    """Something that draws actions, many at a time."""

    def sample(self, observation: Array, rng: np.random.Generator) -> tuple[Actions, Float]:
        """Draws one action for each observation [n, O].

        Returns (actions [n, A], log-densities [n]), or, where actions are discrete, (their numbers [n],
        log-probabilities [n]).
        """
        ...


@dataclass(frozen=True)
class UniformPolicy:
    """Uniform actions within bounds: the behaviour of D4RL's `random` datasets."""

    low: Array
    high: Array

    def sample(self, observation: Array, rng: np.random.Generator) -> tuple[Float, Float]:
        """Draws uniform actions; see `StochasticPolicy.sample`."""
        low, high = np.asarray(self.low, np.float32), np.asarray(self.high, np.float32)
        unit = rng.random((len(observation), len(low)), np.float32)
        density = -np.log(high - low).sum(dtype=np.float32)
        return low + (high - low) * unit, np.full(len(observation), density, np.float32)


@dataclass(frozen=True)
class UniformDiscretePolicy:
    """Every discrete action with the same probability; where observations hold a mask, every possible one.

    Attributes:
        num_actions: how many there are.
        mask_at: where the mask begins, see ``sapp.data.Dataset``.
    """

    num_actions: int
    mask_at: int | None = None

    def sample(self, observation: Array, rng: np.random.Generator) -> tuple[Actions, Float]:
        """Draws uniform actions; see `StochasticPolicy.sample`."""
        if self.mask_at is not None:
            possible = np.asarray(observation)[:, self.mask_at : self.mask_at + self.num_actions] > 0.5
            possible |= ~possible.any(axis=1, keepdims=True)
            keys = np.where(possible, rng.random(possible.shape), -1.0)
            chances = -np.log(possible.sum(axis=1))
            return keys.argmax(axis=1).astype(np.int32), chances.astype(np.float32)
        drawn = rng.integers(self.num_actions, size=len(observation), dtype=np.int32)
        return drawn, np.full(len(drawn), -math.log(self.num_actions), np.float32)


@dataclass(frozen=True)
class ExploringPolicy:
    """A deterministic policy that takes a uniformly random action instead with some probability.

    Attributes:
        act: observations [n, O] → actions [n, A] in the environment's units, or numbers of discrete actions [n].
        random: the uniform policy of the environment.
        epsilon: chance of a random action.
    """

    act: Callable[[Array], npt.ArrayLike]
    random: UniformPolicy | UniformDiscretePolicy
    epsilon: float

    def sample(self, observation: Array, rng: np.random.Generator) -> tuple[Actions, Float]:
        """Draws actions; see `StochasticPolicy.sample`.

        A deterministic policy of vectors has no density: its log-densities are NaN.
        """
        chosen, (drawn, uniform) = np.asarray(self.act(observation)), self.random.sample(observation, rng)
        explores = rng.random(len(chosen)) < self.epsilon
        if chosen.ndim > 1:
            return np.where(explores[:, None], drawn, chosen).astype(np.float32), np.full_like(uniform, np.nan)
        taken = np.where(explores, drawn, chosen).astype(np.int32)
        probability = self.epsilon * np.exp(uniform) + (1 - self.epsilon) * (taken == chosen)
        return taken, np.log(probability).astype(np.float32)


def uniform_policy(environment: BatchEnvironment) -> UniformPolicy | UniformDiscretePolicy:
    """Uniform actions of an environment, whichever kind they are."""
    if environment.num_actions is not None:
        return UniformDiscretePolicy(environment.num_actions, mask_place(environment))
    return UniformPolicy(environment.action_low, environment.action_high)


@dataclass(frozen=True)
class TanhGaussianPolicy:
    """A ReLU network with a Gaussian head squashed by tanh, as rlkit's SAC has it; actions lie in (−1, 1).

    Attributes:
        layers: (weight [out, in], bias [out]) of each hidden layer.
        mean: weight and bias of the mean head.
        log_std: weight and bias of the log standard deviation head.
    """

    layers: tuple[tuple[Float, Float], ...]
    mean: tuple[Float, Float]
    log_std: tuple[Float, Float]

    @property
    def observation_size(self) -> int:
        """Length of the observations it takes."""
        return int(self.layers[0][0].shape[1])

    @property
    def action_size(self) -> int:
        """Length of the actions it gives."""
        return int(self.mean[0].shape[0])

    def _heads(self, observation: Array) -> tuple[Float, Float]:
        hidden = np.asarray(observation, np.float32)
        with one_blas_thread():
            for weight, bias in self.layers:
                hidden = hidden @ weight.T
                hidden += bias
                np.maximum(hidden, 0, out=hidden)
            mean = hidden @ self.mean[0].T + self.mean[1]
            log_std = hidden @ self.log_std[0].T + self.log_std[1]
        return mean, np.clip(log_std, *LOG_STD_RANGE)

    def arrays(self) -> dict[str, Float]:
        """The weights by the names that `policy_from_arrays` reads: w0, b0, …, w_mean, b_mean, w_logstd, b_logstd."""
        pairs = {**{str(i): pair for i, pair in enumerate(self.layers)}, "_mean": self.mean, "_logstd": self.log_std}
        return {f"{kind}{name}": array for name, pair in pairs.items() for kind, array in zip("wb", pair, strict=True)}

    def mode(self, observation: Array) -> Float:
        """The deterministic action tanh(mean) for each observation [..., O]."""
        return np.tanh(self._heads(observation)[0])

    def sample(self, observation: Array, rng: np.random.Generator) -> tuple[Float, Float]:
        """Draws actions; see `StochasticPolicy.sample`."""
        mean, log_std = self._heads(observation)
        noise = rng.standard_normal(mean.shape, np.float32)
        action = np.tanh(mean + np.exp(log_std) * noise)
        return action, _log_density(noise, log_std, action)

    def log_prob(self, observation: Array, action: Array) -> Float:
        """Log-density of given actions [..., A]; an action of exactly ±1 counts as the nearest float inside."""
        mean, log_std = self._heads(observation)
        action = np.asarray(action, np.float32)
        inside = np.clip(action.astype(np.float64), -1 + 2.0**-24, 1 - 2.0**-24)
        noise = (np.arctanh(inside) - mean) / np.exp(log_std.astype(np.float64))
        return _log_density(noise, log_std, action)


def _log_density(noise: Array, log_std: Float, action: Float) -> Float:
    """Log-density of tanh(mean + std·noise); the 1e-6 is rlkit's, so that values compare with stored ones."""
    gaussian = -0.5 * np.square(noise) - log_std - 0.5 * math.log(2 * math.pi)
    return (gaussian - np.log(1 - np.square(action) + np.float32(1e-6))).sum(-1).astype(np.float32)


@dataclass(frozen=True)
class ScaledPolicy:
    """A policy that acts in [−1, 1], in an environment with other bounds.

    Attributes:
        policy: acting in [−1, 1].
        low: lowest action of the environment.
        high: highest.
    """

    policy: StochasticPolicy
    low: Array
    high: Array

    def sample(self, observation: Array, rng: np.random.Generator) -> tuple[Float, Float]:
        """Draws actions in the environment's units, with their density there; see `StochasticPolicy.sample`."""
        action, log_prob = self.policy.sample(observation, rng)
        low, high = np.asarray(self.low, np.float32), np.asarray(self.high, np.float32)
        half = (high - low) / 2
        return from_unit(action, low, high), log_prob - np.log(half).sum(dtype=np.float32)


def load_policy(path: str | Path) -> TanhGaussianPolicy:
    """Loads a policy from an npz file of plain arrays, or from `metadata/policy` of a D4RL HDF5 file.

    The npz holds w0, b0, w1, b1, … for the hidden layers and w_mean, b_mean, w_logstd, b_logstd for the heads, weights
    as (out, in). Nothing in either kind of file is executed.
    """
    path = Path(path)
    if not path.is_file():
        raise SappError(f"{path}: no such policy file; give an npz file or a D4RL HDF5 file")
    if path.suffix in (".hdf5", ".h5"):
        return _from_hdf5(path)
    try:
        check_npz(path)
        with np.load(path, allow_pickle=False) as file:
            return policy_from_arrays(path, {key: file[key] for key in file.files})
    except (ValueError, OSError, EOFError, BadZipFile, TokenError) as error:
        raise SappError(f"{path}: not a readable npz policy ({error}); save it with numpy.savez") from error


def policy_from_arrays(path: str | Path, arrays: Mapping[str, Any]) -> TanhGaussianPolicy:
    """The policy that arrays of these names describe; `path` is what an error calls them. See `load_policy`."""
    path = Path(path)
    activation = str(arrays.get("activation", "relu"))
    if activation != "relu" or not bool(arrays.get("squash", True)) or bool(arrays.get("time_feature", False)):
        raise SappError(f"{path}: only ReLU networks with a tanh-Gaussian head and no time feature can be loaded")
    hidden = sum(1 for key in arrays if key.startswith("w") and key[1:].isdigit())
    names = [*(str(layer) for layer in range(hidden)), "_mean", "_logstd"]
    missing = [key for name in names for key in (f"w{name}", f"b{name}") if key not in arrays]
    if missing or not hidden:
        raise SappError(f"{path}: no array {', '.join(missing) or 'w0'}; see sapp.envs.policies.load_policy")
    needed = [key for name in names for key in (f"w{name}", f"b{name}")]
    if odd := [key for key in needed if np.asarray(arrays[key]).dtype.kind not in "fiu"]:
        raise SappError(f"{path}: array {odd[0]} holds no real numbers; save it as float32")
    if odd := [key for key in needed if np.ndim(arrays[key]) != (2 if key[0] == "w" else 1)]:
        raise SappError(f"{path}: array {odd[0]} has {np.ndim(arrays[odd[0]])} dimensions; weights have 2, biases 1")
    pairs = [(np.asarray(arrays[f"w{n}"], np.float32), np.asarray(arrays[f"b{n}"], np.float32)) for n in names]
    return _checked(path, TanhGaussianPolicy(tuple(pairs[:-2]), pairs[-2], pairs[-1]))


def _from_hdf5(path: Path) -> TanhGaussianPolicy:

    try:
        with open_hdf5(path) as file:
            group = file.get("metadata/policy")
            if group is None:
                raise SappError(f"{path}: no metadata/policy; D4RL stores it in medium and expert files only")
            kind = group["nonlinearity"][()].decode(), group["output_distribution"][()].decode()
            if kind != ("relu", "tanh_gaussian"):
                raise SappError(f"{path}: its policy is {kind[0]}, {kind[1]}; only relu, tanh_gaussian can be loaded")
            names = [*sorted((key for key in group if key.startswith("fc")), key=lambda key: int(key[2:]))]
            pairs = [
                (group[name]["weight"][()].astype(np.float32), group[name]["bias"][()].astype(np.float32))
                for name in (*names, "last_fc", "last_fc_log_std")
            ]
    except (OSError, KeyError) as error:
        raise SappError(f"{path}: not a readable D4RL HDF5 file ({error}); download it again") from error
    return _checked(path, TanhGaussianPolicy(tuple(pairs[:-2]), pairs[-2], pairs[-1]))


def _checked(path: Path, policy: TanhGaussianPolicy) -> TanhGaussianPolicy:
    width = policy.observation_size
    for weight, bias in policy.layers:
        if weight.ndim != 2 or weight.shape[1] != width or bias.shape != weight.shape[:1]:
            raise SappError(f"{path}: layer shapes {weight.shape} and {bias.shape} do not fit; weights are (out, in)")
        width = weight.shape[0]
    for weight, bias in (policy.mean, policy.log_std):
        if weight.ndim != 2 or weight.shape != (policy.action_size, width) or bias.shape != weight.shape[:1]:
            raise SappError(f"{path}: head shapes {weight.shape} and {bias.shape} do not fit; weights are (out, in)")
    if not all(np.isfinite(array).all() for pair in (*policy.layers, policy.mean, policy.log_std) for array in pair):
        raise SappError(f"{path}: a weight is not finite; the file is damaged or its training diverged")
    return policy
