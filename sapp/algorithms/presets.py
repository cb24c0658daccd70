"""Published settings by name: which algorithm, and its numbers for which dataset."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable

from sapp.algorithms.base import Algorithm
from sapp.algorithms.bc import BC
from sapp.algorithms.bcq import BCQ
from sapp.algorithms.bear import BEAR
from sapp.algorithms.brac import BRAC
from sapp.algorithms.cql import CQL
from sapp.algorithms.discrete_bc import DiscreteBC
from sapp.algorithms.discrete_cql import DiscreteCQL
from sapp.algorithms.dqn import DQN
from sapp.algorithms.edac import EDAC
from sapp.algorithms.fisher_brc import FisherBRC
from sapp.algorithms.iql import IQL
from sapp.algorithms.rebrac import ReBRAC
from sapp.algorithms.rem import REM
from sapp.algorithms.td3bc import TD3BC
from sapp.algorithms.uwac import UWAC
from sapp.core.errors import SappError
from sapp.weights import (
    DualDICE,
    LogMinMax,
    MatchedWeights,
    OccupancyInfoNCE,
    OccupancyModel,
    RandomWeights,
    ShuffledWeights,
    StateWeights,
    Uniform,
)

_NARROW = ("expert", "medium-expert")


def task(dataset: str) -> tuple[str, str] | None:
    """Environment and quality in a D4RL-style name, such as ("hopper", "medium-replay"); None for other names."""
    match = re.match(r"(halfcheetah|hopper|walker2d)[-_]([a-z_-]+?)([-_]v\d+)?$", dataset.lower())
    return (match.group(1), match.group(2).replace("_", "-")) if match else None


GAMES = ("pong", "qbert", "seaquest", "breakout")
"""The paper's Atari games."""
ATARI_ZETA_LR = 1e-3
"""The paper's for ζ on Atari; elsewhere it is DualDICE's default."""


def atari(dataset: str) -> bool:
    """Whether a name is that of an Atari game's data: it begins with ``ALE/`` or with one of the paper's games."""
    name = dataset.lower()
    return name.startswith("ale/") or bool(re.match(rf"({'|'.join(GAMES)})(?![a-z])", name))


def weight_range(dataset: str) -> tuple[float, float]:
    """(b0, b1) of the paper's tables for a D4RL-style or Atari name; (0, 1) for data the paper does not know.

    halfcheetah and hopper have b0 = 0, walker2d 0.5; expert and medium-expert have b1 = 5, all others 1. Atari games
    have (0.5, 2).
    """
    if atari(dataset):
        return 0.5, 2.0
    known = task(dataset)
    if known is None:
        return 0.0, 1.0
    environment, quality = known
    return (0.5 if environment == "walker2d" else 0.0), (5.0 if quality in _NARROW else 1.0)


def _sa(dataset: str) -> DualDICE:
    f = LogMinMax(*weight_range(dataset))
    return DualDICE(f=f, zeta_lr=ATARI_ZETA_LR) if atari(dataset) else DualDICE(f=f)


def _random(dataset: str) -> RandomWeights:
    b0, b1 = weight_range(dataset)
    return RandomWeights(LogMinMax(b0, b1))


REBRAC_PENALTIES = {
    ("halfcheetah", "random"): (0.001, 0.1),
    ("halfcheetah", "medium"): (0.001, 0.01),
    ("halfcheetah", "expert"): (0.01, 0.01),
    ("halfcheetah", "medium-expert"): (0.01, 0.1),
    ("halfcheetah", "medium-replay"): (0.01, 0.001),
    ("halfcheetah", "full-replay"): (0.001, 0.1),
    ("hopper", "random"): (0.001, 0.01),
    ("hopper", "medium"): (0.01, 0.01),
    ("hopper", "expert"): (0.1, 0.1),
    ("hopper", "medium-expert"): (0.1, 0.01),
    ("hopper", "medium-replay"): (0.05, 0.5),
    ("hopper", "full-replay"): (0.01, 0.01),
    ("walker2d", "random"): (0.01, 0.0),
    ("walker2d", "medium"): (0.05, 0.1),
    ("walker2d", "expert"): (0.01, 0.5),
    ("walker2d", "medium-expert"): (0.01, 0.01),
    ("walker2d", "medium-replay"): (0.05, 0.01),
    ("walker2d", "full-replay"): (0.01, 0.01),
}
"""(β₁, β₂) of the authors' configurations; other data take halfcheetah-medium's."""


def _brac_mmd(_: str, weights: StateWeights) -> BRAC:
    """Ours, not published: the authors tune α by task.

    The squared MMD of four draws of one law with four others of it is (2/4)·(1 − E k), some 0.02 to 0.04 of clones of
    D4RL's medium policies. At an α that holds the actor that is 10 to 20 a step, more than the reward: values would be
    negative, and an end of the episode a gain. So it is in the policy only.
    """
    return BRAC(divergence="mmd", alpha=500.0, value_penalty=False, weights=weights)


def _rebrac(dataset: str, weights: StateWeights) -> ReBRAC:
    actor, critic = REBRAC_PENALTIES.get(task(dataset) or ("", ""), REBRAC_PENALTIES["halfcheetah", "medium"])
    return ReBRAC(actor_penalty=actor, critic_penalty=critic, weights=weights)


def _bear(dataset: str, weights: StateWeights) -> BEAR:
    """d3rlpy's script: a Gaussian kernel on halfcheetah, a Laplacian one elsewhere."""
    environment, _ = task(dataset) or ("", "")
    return BEAR(kernel="gaussian" if environment == "halfcheetah" else "laplacian", weights=weights)


def _edac(dataset: str) -> EDAC:
    """N = 50 on hopper, 10 elsewhere; η = 5 on the mixed halfcheetah and walker2d sets and walker2d-expert, 0 on
    random data of halfcheetah and hopper, else 1."""
    environment, quality = task(dataset) or ("", "")
    strong = quality == "medium-expert" and environment in ("halfcheetah", "walker2d")
    strong |= (environment, quality) == ("walker2d", "expert")
    none = quality == "random" and environment in ("halfcheetah", "hopper")
    return EDAC(critics=50 if environment == "hopper" else 10, eta=5.0 if strong else 0.0 if none else 1.0)


def _sac_n(dataset: str) -> EDAC:
    """N = 10 on halfcheetah, 20 on walker2d, 500 on hopper-medium, 200 on hopper's other sets."""
    environment, quality = task(dataset) or ("", "")
    counts = {"walker2d": 20, "hopper": 500 if quality == "medium" else 200}
    return EDAC(critics=counts.get(environment, 10), diversify=False)


DOPAMINE_EPS = 0.01 / 32
"""Adam's epsilon in Dopamine's quantile agents and in REM."""


def _qr_dqn(_: str) -> DQN:
    """batch_rl's; greedy at s' by Q̄ itself, not double."""
    return DQN(quantiles=200, lr=5e-5, adam_eps=DOPAMINE_EPS, target_every=2_000, double=False)


Make = Callable[[str, StateWeights], Algorithm]
BASES: dict[str, tuple[str, Make]] = {
    "cql": ("CQL(H) on d3rlpy v1's scale, weight 5", lambda _, w: CQL(weights=w)),
    "discrete-cql": ("CQL(H) on double DQN, for discrete actions", lambda _, w: DiscreteCQL(weights=w)),
    "td3bc": ("TD3+BC, α 2.5", lambda _, w: TD3BC(weights=w)),
    "rebrac": ("ReBRAC, its penalties by dataset", _rebrac),
    "bear": ("BEAR, its kernel by dataset", _bear),
    "brac": ("BRAC-v: KL divergence, in the values too", lambda _, w: BRAC(weights=w)),
    "brac-p": ("BRAC-p: KL divergence, in the policy only", lambda _, w: BRAC(value_penalty=False, weights=w)),
    "brac-mmd": ("BRAC-p with the squared MMD", _brac_mmd),
    "fisher-brc": ("Fisher-BRC, λ 0.1, after cloning the behaviour", lambda _, w: FisherBRC(weights=w)),
    "uwac": ("UWAC: BEAR with dropout critics that are trusted by their variance", lambda _, w: UWAC(weights=w)),
}
"""Algorithms with a penalty a state; each has a state-aware variant and controls, by the prefixes below."""

OTHERS: dict[str, tuple[str, Callable[[str], Algorithm]]] = {
    "bc": ("behaviour cloning by least squares", lambda _: BC()),
    "bcq": ("BCQ, as its authors' code", lambda _: BCQ()),
    "edac": ("EDAC, its number of critics and η by dataset", _edac),
    "sac-n": ("SAC-N, its number of critics by dataset", _sac_n),
    "iql": ("implicit Q-learning, expectile 0.7, β 3", lambda _: IQL()),
    "discrete-bc": ("cloning of discrete actions by maximum likelihood", lambda _: DiscreteBC()),
    "dqn": ("double DQN on logs, without pessimism", lambda _: DQN()),
    "qr-dqn": ("QR-DQN, 200 quantiles", _qr_dqn),
    "rem": ("REM, 200 heads, a random mixture of them every step", lambda _: REM()),
}
"""Algorithms whose pessimism is no penalty a state."""

PREFIXES: dict[str, tuple[str, Callable[[str], StateWeights]]] = {
    "": ("", lambda _: Uniform()),
    "sa-": ("with DualDICE state weights", _sa),
    "s-sa-": ("control: random weights in the same range", _random),
    "shuffled-sa-": ("control: the state-aware weights permuted over the batch", lambda d: ShuffledWeights(_sa(d))),
    "matched-sa-": ("control: every weight is the state-aware batch mean", lambda d: MatchedWeights(_sa(d))),
}


def _variant(make: Make, weights: Callable[[str], StateWeights]) -> Callable[[str], Algorithm]:
    return lambda dataset: make(dataset, weights(dataset))


PRESETS: dict[str, tuple[str, Callable[[str], Algorithm]]] = {
    f"{prefix}{name}": (f"{name} {manner}" if manner else what, _variant(make, weights))
    for name, (what, make) in BASES.items()
    for prefix, (manner, weights) in PREFIXES.items()
} | OTHERS
"""What ``sapp train NAME`` takes."""

EXPERIMENTAL: dict[str, tuple[str, Callable[[str], Algorithm]]] = {
    "sa-cql-occupancy": (
        "cql with state weights from a one-step model and a classifier",
        lambda d: CQL(weights=OccupancyModel(f=LogMinMax(*weight_range(d)))),
    ),
    "sa-cql-infonce": (
        "cql with state weights from a TD-InfoNCE critic",
        lambda d: CQL(weights=OccupancyInfoNCE(f=LogMinMax(*weight_range(d)))),
    ),
}
"""Ours, not published; taken by name as well (docs/state-ratios.md)."""


def preset(name: str, dataset: str = "") -> Algorithm:
    """The named algorithm with its published hyper-parameters for a dataset's name."""
    if name in EXPERIMENTAL:
        return EXPERIMENTAL[name][1](dataset)
    if name not in PRESETS:
        close = difflib.get_close_matches(name, PRESETS, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"use one of {', '.join(PRESETS)}"
        raise SappError(f"algorithm {name!r} is unknown; {hint}")
    return PRESETS[name][1](dataset)
