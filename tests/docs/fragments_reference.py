"""Fragments of the docstrings that the reference shows: defaults, limits, and what functions give for small inputs."""

from __future__ import annotations

import doctest
import inspect
import math
import pkgutil
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from fragments import fragments_of, word
from page_numbers import PAGES
from test_examples import NAMES as RUN

from sapp.algorithms import (
    BCQ,
    BEAR,
    BRAC,
    CQL,
    DQN,
    REM,
    UWAC,
    Algorithm,
    DiscreteCQL,
    FisherBRC,
    ReBRAC,
)
from sapp.algorithms.actor_critic import bootstrap_target, mixed_minimum
from sapp.algorithms.bear import LOG_ALPHA_MAX, LOG_ALPHA_MIN
from sapp.algorithms.brac import ALPHA_MAX
from sapp.algorithms.cql import ALPHA_SCALES, propose
from sapp.algorithms.dqn import DOPAMINE_EPS, qr_dqn
from sapp.algorithms.iql import MAX_ADVANTAGE_WEIGHT, RETURN_SCALE, cosine_decay
from sapp.core.errors import SappError
from sapp.core.spec import Spec
from sapp.data import Dataset
from sapp.data.action_masks import mask_of
from sapp.data.action_units import to_unit
from sapp.data.array_checks import chosen_actions, column, flags
from sapp.data.dataset import ARRAYS
from sapp.data.frames import gather
from sapp.data.ledger import SHARE
from sapp.networks.policy import NORMALISATION_OFFSET
from sapp.networks.vae import KL_WEIGHT
from sapp.runs.phases import JOINT_STEPS, sa_protocol
from sapp.training.planning import _seeds, a_twentieth
from sapp.training.train import train
from sapp.weights import (
    Control,
    ControlKind,
    DualDICE,
    Identity,
    LogMinMax,
    OccupancyModel,
    Power,
    RatioWeights,
    Transform,
    Uniform,
)
from sapp.weights.dualdice import saddle_value
from sapp.weights.paper import weight_range
from sapp.weights.successor import GaussianSuccessor
from studies.baselines.tables import PUBLISHED

KEY = jax.random.PRNGKey(0)
SPEC = Spec(2, 1, jnp.zeros(2), jnp.ones(2))


def examples(page: str) -> Iterator[str]:
    """What the examples print, as ``test_examples`` finds it when it runs them."""
    own = inspect.cleandoc(pkgutil.resolve_name(page).__doc__)
    printed = [each.want for each in doctest.DocTestParser().get_examples(own) if each.want]
    if printed:
        yield " ".join(("Examples:", *printed))


for each in (page for page in PAGES if page.removeprefix("sapp.") in RUN):
    fragments_of(each)(partial(examples, each))


def targets() -> Iterator[str]:
    """Of one row that goes on and one that ends the task."""
    rows: Any = SimpleNamespace(reward=np.array([3.0, 3.0]), terminal=np.array([0.0, 1.0]))
    assert bootstrap_target(rows, jnp.array([10.0, 10.0]), 0.5).tolist() == [3.0 + 0.5 * (1 - 0) * 10, 3.0]
    yield "y = r + γ(1−terminal)·"


for each in ("CQL", "DiscreteCQL", "IQL", "BRAC", "BEAR", "EDAC", "BCQ", "DQN", "REM"):
    fragments_of(f"sapp.{each}")(targets)


def mixture(formula: str) -> Callable[[], Iterator[str]]:
    """Of the critics' values 1 and 2, with a quarter for the larger."""

    def made() -> Iterator[str]:
        assert float(mixed_minimum(jnp.array([1.0, 2.0]), 0.75)) == 0.75 * 1 + (1 - 0.75) * 2
        yield formula

    return made


for each, formula in {
    "Algorithm": "minimum in share·min + (1 − share)·max.",
    "BRAC": "Q is share·min + (1−share)·max over the critics",
    "BEAR": "[share·min_i + (1−share)·max_i] Q̄_i(s',a_k)",
    "BCQ": "[share·min_i + (1−share)·max_i] Q̄_i(s',ā_k)",
}.items():
    fragments_of(f"sapp.{each}")(mixture(formula))


def half(value: float) -> str:
    """As pages write it."""
    return {0.5: "½"}[value]


def least(made: Callable[[float], Algorithm]) -> str:
    """The least value that an algorithm takes, as it says when it is given less."""
    try:
        made(-1.0)
    except SappError as error:
        (found,) = re.findall(r"it must be (\d+) or more|between (\d+) and", str(error))
        return "".join(found)
    raise AssertionError("taken")


def critics(networks: Any) -> int:
    """How many critics there are: the leading axis of their weights."""
    (count,) = {leaf.shape[0] for leaf in jax.tree.leaves(networks)}
    return int(count)


def million() -> str:
    """Steps of the last phase, where nobody says."""
    assert inspect.signature(train).parameters["steps"].default == JOINT_STEPS
    return f"{word(JOINT_STEPS / 1_000_000)} million steps"


@fragments_of("sapp.CQL")
def cql() -> Iterator[str]:
    """Its proposals, the scales of α, and how far the penalty can lift a value."""
    count, width = 500, 3
    drawn = jnp.zeros((1, count, width)), jnp.zeros((1, count))
    actions, log_probs = map(np.asarray, jax.jit(propose)(drawn, drawn, KEY))
    sources = actions.shape[1] // count
    low, high = (round(float(limit)) for limit in (actions.min(), actions.max()))
    assert actions.shape == (1, sources * count, width)
    yield f"log Σ exp over {sources}·n actions of"
    yield f"drawn per state from each of the {word(sources)} proposals"
    yield f"ã ~ U({low},{high})^|A| with −|A| log {math.exp(-float(log_probs[0, -1]) / width):.3g}"
    assert (ALPHA_SCALES["d3rlpy-v1"], ALPHA_SCALES["per-critic"]) == (1 / 2, 1)
    yield f"d3rlpy-v1 (α/2 per critic, the paper's scale), per-critic (α) or half-td ({ALPHA_SCALES['half-td']:g}α)"
    assert CQL(alpha=1.0, alpha_scale="per-critic").largest_target(0.0, 1, {}) == 1 / 2
    yield "a logged action's value by at most half its weight above"


@fragments_of("sapp.DiscreteCQL")
def discrete_cql() -> Iterator[str]:
    """Its batch, batch_rl's settings of quantiles, and the least α."""
    yield f"which the paper's Atari table equals, with its batch of {DiscreteCQL().batch_size}."
    atari = qr_dqn("")
    assert (atari.lr, atari.adam_eps) == (5e-5, 3.125e-4)
    yield (
        f"are ``quantiles={atari.quantiles}, lr=5e-5, adam_eps=3.125e-4, target_every={atari.target_every}, "
        f"batch_size={atari.batch_size}``"
    )
    yield f"α is {least(lambda alpha: DiscreteCQL(alpha=alpha))} or more"


@fragments_of("sapp.TD3BC")
def td3bc() -> Iterator[str]:
    """The normaliser's offset, and steps."""
    assert NORMALISATION_OFFSET == 1e-3
    yield "the data's mean and std + 1e-3."
    yield f", {million()}."


@fragments_of("sapp.ReBRAC")
def rebrac() -> Iterator[str]:
    """Its target's penalty without a next action, its critics, and steps."""
    row: Any = SimpleNamespace(next_action=jnp.ones((1, 1)), next_logged=jnp.zeros(1))
    (none,) = ReBRAC().target_penalty(row, -jnp.ones((1, 1)), jnp.ones(1)).tolist()
    yield f"no next logged action and that penalty is {none:g} ("
    yield f"{none:g} where no next action was logged"
    _, networks = jax.eval_shape(lambda key: ReBRAC().make_networks(key, SPEC), KEY)
    yield f"{word(critics(networks))} critics with layer norm"
    yield f", {million()}; presets"


@fragments_of("sapp.IQL")
def iql() -> Iterator[str]:
    """Its limit of weights, the end of its schedule, the scale of returns, and steps."""
    yield f"min(exp(β·(q − V(s))), {MAX_ADVANTAGE_WEIGHT:g})·log π(a|s)"
    end = round(float(cosine_decay(7, 7)), 6)
    yield f"its learning rate falls to {end:g} along a cosine"
    yield f"over which the actor's learning rate falls to {end:g}."
    yield f"scaled by {RETURN_SCALE:g}/(largest − smallest return of the data)"
    yield f"returns ({RETURN_SCALE:g} / their range in the data)"
    yield f", {million()}."


@fragments_of("sapp.BRAC")
def brac() -> Iterator[str]:
    """The range of α, its default, when it learns, and the steps of cloning."""
    own = BRAC()
    yield f"With ``alpha_lr`` above {own.alpha_lr:g} α follows"
    yield f"learning rate of α; {own.alpha_lr:g} keeps it fixed."
    yield f"within [{least(lambda alpha: BRAC(alpha=alpha))}, {ALPHA_MAX:g}]."
    yield f"here it is {own.alpha:g} (see the page of results)"
    yield f"{own.behaviour_steps // 1000}k + "


@fragments_of("sapp.BEAR")
def bear() -> Iterator[str]:
    """The VAE's loss, the range of log α, and the critics."""
    yield f"mean (a − â)² + {half(KL_WEIGHT)}·mean KL"
    yield f"log α within [{LOG_ALPHA_MIN:g}, {LOG_ALPHA_MAX:g}]"
    count = critics(jax.eval_shape(lambda key: BEAR().make_critics(key, SPEC), KEY))
    yield f"{word(count)} critics as one batched network"
    yield f"by all critics, [{count}, B] or [{count}, B, K], and how far"


@fragments_of("sapp.FisherBRC")
def fisher_brc() -> Iterator[str]:
    """Where its target adds the bonus, its penalty, and steps."""
    own = FisherBRC()
    assert list(targets()) == ["y = r + γ(1−terminal)·"]
    yield "y = r + bonus + γ(1−terminal)·"
    assert (own.behaviour_steps, JOINT_STEPS) == (1_000_000, 1_000_000)
    yield f"flags (λ = {own.penalty:g}), 1M + 1M steps."


@fragments_of("sapp.UWAC")
def uwac() -> Iterator[str]:
    """Its critics."""
    yield f"{word(critics(jax.eval_shape(lambda key: UWAC().make_critics(key, SPEC), KEY)))} critics with dropout"


@fragments_of("sapp.EDAC")
def edac() -> Iterator[str]:
    """Steps, as CORL's runs of it have them."""
    steps = PUBLISHED["EDAC"][0].removeprefix("CORL, ")
    yield f"for halfcheetah, {word(int(steps.removesuffix('M')))} million steps"


@fragments_of("sapp.BCQ")
def bcq() -> Iterator[str]:
    """The VAE's loss, the box of actions, and steps."""
    yield f"mean (a − â)² + {half(KL_WEIGHT)}·mean KL"
    assert BCQ().limit > 0
    yield "actions lie in [{:g}, {:g}].".format(*unit())
    yield f", {million()}."


@fragments_of("sapp.DQN")
def dqn() -> Iterator[str]:
    """Both epsilons, and without quantiles one head."""
    assert DQN().adam_eps == 1e-8
    assert DOPAMINE_EPS == 0.01 / 32
    yield "is 1e-8 in d3rlpy and 0.01/32 in Dopamine's"
    none = 0
    assert DQN(quantiles=none).heads == 1 != DQN(quantiles=none + 2).heads
    yield f"for QR-DQN; {none} = the mean alone."


@fragments_of("sapp.REM")
def rem() -> Iterator[str]:
    """Its target's copies, in updates and in agent steps."""
    steps, updates = DQN().target_every, REM().target_every
    yield f"they update every {steps // updates}th agent step, so {steps:,} are {updates:,})."


def tiny(**changes: Any) -> Dataset:
    """Two steps of an episode that ends."""
    arrays = dict(observation=[[0.0, 7.0], [2.0, 7.0]], action=[[2.0], [4.0]], reward=[0.0, 0.0], terminal=[0, 1])
    return Dataset.from_arrays(**arrays | dict(action_low=2.0, action_high=4.0) | changes)


def unit() -> tuple[float, float]:
    """The range of scaled actions."""
    low, high = to_unit(np.array([[2.0], [4.0]]), 2.0, 4.0)[:, 0].tolist()
    assert tiny().scaled_action()[:, 0].tolist() == [low, high]
    return low, high


def taken(check: Callable[[Any], Any], values: list[Any]) -> list[Any]:
    """Those of the values that are not refused."""
    found = []
    for value in values:
        try:
            check(value)
        except SappError:
            continue
        found.append(value)
    return found


def numbered(count: int) -> list[int]:
    """The numbers that so many discrete actions have."""
    return taken(lambda value: chosen_actions([value], count, "here"), list(range(-3, count + 3)))


def shorter(count: int = 5) -> tuple[int, int]:
    """The first number of a discrete action, and by how much the last is below their count."""
    return numbered(count)[0], count - numbered(count)[-1]


@fragments_of("sapp.Dataset")
def dataset() -> Iterator[str]:
    """Arrays, the numbers of actions and masks, what is taken, dropped, inferred and rescaled."""
    data = tiny()
    ends = [key for key in ARRAYS if getattr(data, key).dtype == bool]
    yield f"Every episode ends in exactly one of {word(len(ends))} ways."
    yield f"wants all {word(len(ARRAYS))} arrays and checks them"
    first, below = shorter()
    yield f"int32 [N] from {first} to ``num_actions`` − {below}."
    yield f"Whether actions are discrete, numbered from {first}, rather"
    masks = taken(lambda value: mask_of([[value]], "mask", 1, 1, "here"), [-1, 0, 1, 2])
    yield f"values of {' and '.join(map(str, masks))}), None where there is none"
    plain = Dataset.from_arrays([[0.0]], [[0.0]], [0.0], [True])
    yield f"(a scalar is broadcast), {plain.action_low[0]:g} by default."
    yield f"likewise, {plain.action_high[0]:g} by default."
    shapes = taken(lambda shape: column(np.zeros(shape), "reward", "here"), [(4,), (4, 1), (4, 2), (1, 4)])
    yield f"Rewards and flags may be {' or '.join(str(shape).replace('4', 'N') for shape in shapes)};"
    marks = taken(lambda value: flags([float(value)], "terminal", "here"), [-1, 0, 1, 2])
    yield f"bool, integer or float {'/'.join(map(str, marks))}."
    yield f"(relative to max({floor():g}, |value|))"
    yield f"unless more than {100 * SHARE:g} % of the reward or of the episodes would go"
    moved = data.standardised().observation
    assert np.ptp(data.observation[:, 1]) == np.ptp(moved[:, 1]) == 0
    yield f"float32 [O], as it is: {data.observation_std[1]:g} where a dimension is constant."
    mean, std = moved[:, 0].mean(), moved[:, 0].std()
    yield f"of mean {mean:g} and standard deviation {std:g} (a constant stays at {moved[0, 1]:g})."
    yield "from [low, high] to [{:g}, {:g}], float32 [N, A]".format(*unit())


def floor() -> float:
    """The size below which a difference of observations is not taken relative to theirs."""

    def parted(value: float, difference: float) -> bool:
        rows, after = [[value], [value]], [[value + difference], [value]]
        return tiny(observation=rows, next_observation=after, tolerance=1.0).num_episodes > 1

    assert not parted(4.0, 3.9)
    assert parted(4.0, 4.1)
    (found,) = [size for size in (0.5, 1.0, 2.0) if not parted(0.0, 0.99 * size) and parted(0.0, 1.01 * size)]
    return found


@fragments_of("sapp.FrameDataset")
def frame_dataset() -> Iterator[str]:
    """The frames of a stack and of its successor, and the numbers of actions."""
    row, stack = 5, 3
    frames = np.arange(8, dtype=np.uint8)[:, None, None]
    seen = gather(frames, np.arange(8), np.array([row]), stack, 1)[0, :, 0, 0].tolist()
    assert seen[stack - 1] == row
    yield f"the ``stack`` frames t − stack + {seen[0] - row + stack} … t"
    yield f"its successor is the same of row t + {seen[-1] - row}."
    first, below = shorter()
    yield f"int32 [N], from {first} to ``num_actions`` − {below}."
    ends = [key for key in ARRAYS if getattr(tiny(), key).dtype == bool]
    yield f"in exactly one of {word(len(ends))} ways, as in ``Dataset``"


@fragments_of("sapp.save_minari")
def save_minari() -> Iterator[str]:
    """How discrete actions are numbered."""
    yield f"discrete actions as numbers from {shorter()[0]}."


@fragments_of("sapp.train")
def of_train() -> Iterator[str]:
    """Seeds, the paper's phases, and how often is evaluated where nobody says."""
    first, second, *_ = _seeds(5)
    yield f"how many ({first}, {second}, …) or which."
    phases = sa_protocol()
    shown = " + ".join(f"{phase.steps // 1000}k" for phase in phases[:-1])
    yield f"the paper's {word(len(phases))} ({shown} + steps)"
    yield f"(default: {({20: 'a twentieth'})[JOINT_STEPS // a_twentieth(JOINT_STEPS)]} of ``steps``;"


@fragments_of("sapp.sa_protocol")
def protocol() -> Iterator[str]:
    """Its phases."""
    yield f"The paper's {word(len(sa_protocol()))} phases"


class Doubtful(RatioWeights):
    """Ratios that are the batch's rewards, and never to be trusted."""

    f: Transform = Identity()
    fallback: bool = True

    def ratio(self, state: Any, batch: Any, policy: Any) -> Any:
        """The rewards."""
        return batch.reward

    def unreliable(self, state: Any) -> Any:
        """Always."""
        return jnp.bool_(True)


def fallen(fallback: bool, *ratios: float) -> float:
    """The one weight that unreliable ratios give."""
    batch: Any = SimpleNamespace(reward=jnp.array(ratios))
    (weight,) = set(Doubtful(fallback=fallback).weights(None, batch, None, KEY)[0].tolist())
    return float(weight)


@fragments_of("sapp.StateWeights")
def state_weights() -> Iterator[str]:
    """Those of an unreliable estimate."""
    yield f"weights of {fallen(True, 3.0, 5.0):g} while the ratio estimate is unreliable"


@fragments_of("sapp.RatioWeights")
def ratio_weights() -> Iterator[str]:
    """Those of an unreliable estimate, and of one that is not finite."""
    assert fallen(True, 3.0, 5.0) == fallen(False, 3.0, math.nan)
    yield f"f(ω); {fallen(True, 3.0, 5.0):g} for all states of a batch where one is not finite, and with ``fallback``"


@fragments_of("sapp.state_weights")
def named() -> Iterator[str]:
    """The range of weights for data that the paper does not know."""
    yield "without it, ({:g}, {:g}).".format(*weight_range(""))


@fragments_of("sapp.DualDICE")
def dualdice() -> Iterator[str]:
    """Its objective of one row, and its weights while it is unreliable."""
    for terminal in (0.0, 1.0):
        row = (np.array([each]) for each in (5.0, 7.0, 11.0, 2.0, terminal))
        expected = (5 - 0.5 * (1 - terminal) * 7) * 2 - 2**2 / 2 - (1 - 0.5) * 11
        assert float(jax.jit(saddle_value)(*row, 0.0, 0.5)) == expected
    yield "E_D[(ν(s,a) − γ(1−terminal)·ν(s',a'))·ζ(s,a) − ζ(s,a)²/2] − (1−γ)·E_{s₀}[ν(s₀,a₀)],"
    yield f"with ``fallback`` they are {fallen(True, 3.0, 5.0):g} (the plain algorithm)"


@fragments_of("sapp.OccupancyModel")
def occupancy() -> Iterator[str]:
    """Kinds that its classifier tells apart, a model without noise, and its limit of clipping."""
    state = jax.eval_shape(lambda key: OccupancyModel().init(key, SPEC), KEY)
    yield f"All {word(state.readout.layers[-1].bias.shape[0])} distributions are classes of one classifier"
    none, here, action = 0, jnp.zeros((1, 2)), jnp.zeros((1, 1))

    @jax.jit
    def stepped(noise: float) -> tuple[Any, Any]:
        model: Any = GaussianSuccessor(KEY, 2, 1, (4,))
        return model.step(here, action, None, noise, KEY)[0], here + model.heads(here, action)[0]

    off = [float(jnp.max(jnp.abs(moved - mean))) for moved, mean in map(stepped, (none, 1))]
    assert off[0] < 1e-5 < off[1]
    yield f"scales the Gaussian model's noise; {none} makes it a mean model"
    yield f"factor for the Gaussian model's noise; {none} makes it a mean model"
    assert OccupancyModel().max_clipped == 1  # a share is never above it
    yield "below ``max_clipped`` (1: not asked)"
    yield f"with ``fallback`` its weights are then {fallen(True, 3.0, 5.0):g}."


@fragments_of("sapp.Uniform")
def uniform() -> Iterator[str]:
    """Its weight."""
    batch: Any = SimpleNamespace(reward=jnp.array([3.0, 5.0]))
    (weight,) = set(Uniform().weights(None, batch, None, KEY)[0].tolist())
    yield f"w(s) = {weight:g}: the algorithm as published"


@fragments_of("sapp.RescaledWeights")
def rescaled() -> Iterator[str]:
    """The mean of plain weights."""
    (mean,) = {float(bound) for bound in Uniform().bounds()}
    yield f"With a mean of {mean:g} the matched control is the base algorithm."


@fragments_of("sapp.Control")
def controls() -> Iterator[str]:
    """Its kinds, and those that leave their estimator unused."""
    yield f"kind: {', '.join(f'{kind.value} {kind.label}' for kind in ControlKind)}."
    unused = [kind for kind in ControlKind if not Control(DualDICE(), kind).reports_health]
    yield f"but for {word(len(unused))} kinds that only carry their estimator along"


@fragments_of("sapp.LogMinMax")
def log_min_max() -> Iterator[str]:
    """Without its quantile, and for equal ratios."""
    none = 0
    clamped = jax.jit(lambda quantile: LogMinMax(quantile=quantile)(jnp.array([1e-9, 1.0, 2.0, 1e9]))[1])
    assert clamped(none) == 0 < clamped(LogMinMax().quantile)
    yield f"({none} switches this off), and the share clamped is logged"
    yield f"to which they are clamped; {none} = off."
    (equal,) = set(jax.jit(LogMinMax(b0=0.0, b1=1.0))(jnp.ones(4))[0].tolist())
    yield f"A batch of equal ratios has u = {Fraction(equal)}."


@fragments_of("sapp.Power")
def power() -> Iterator[str]:
    """Its default, and the exponents that make all weights equal and leave ratios as they are."""
    ratios = jnp.array([0.5, 3.0])
    plain, whole = 0, 1
    assert set(Power(plain)(ratios)[0].tolist()) == {1.0}
    assert Power(whole)(ratios)[0].tolist() == Identity()(ratios)[0].tolist()
    yield f"k = {half(Power().exponent)} is a common compromise between PP (k = {plain}) and SA-PP (k = {whole})."
