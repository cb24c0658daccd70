"""Fragments of docs/algorithms/: settings are those of classes and presets, results those of committed rows."""

from __future__ import annotations

import csv
import inspect
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from types import SimpleNamespace
from typing import Any, get_args, get_type_hints

import jax
import jax.numpy as jnp
import numpy as np
import optax
from fragments import ROOT, fragments_of, word

import sapp
from sapp.algorithms import (
    BC,
    BCQ,
    BEAR,
    BRAC,
    CQL,
    DQN,
    EDAC,
    IQL,
    REM,
    SAC,
    TD3BC,
    UWAC,
    DiscreteCQL,
    FisherBRC,
    ReBRAC,
    bear,
    brac,
    edac,
    fisher_brc,
    iql,
)
from sapp.algorithms.actor_critic import branch
from sapp.algorithms.cql import ALPHA_SCALES
from sapp.algorithms.divergences import mean_kernel
from sapp.algorithms.dqn import RMSPROP
from sapp.algorithms.rebrac import PENALTIES
from sapp.algorithms.registry import preset
from sapp.collect import online_dqn, online_training
from sapp.core.spec import Spec
from sapp.data.benchmark_names import ENVIRONMENTS, NAMES, QUALITIES
from sapp.evaluation.online_evaluation import EPSILON
from sapp.kernels import dropout_samples
from sapp.networks import DefaultScores, NarrowGaussianActor, conv, deterministic, gaussian, orthogonal, vae
from sapp.networks.policy import NORMALISATION_OFFSET
from sapp.runs.phases import sa_protocol
from sapp.training.upload import FRAME_SHARE
from sapp.weights import DualDICE, LogMinMax, Uniform
from sapp.weights.paper import weight_range
from sapp.weights.registry import state_weights
from studies.baselines import tables as baselines

FRACTIONS = {0.5: "½", 1.0: "1", 2.0: "2"}
ACTIONS = 2
"""Dimensions of an action of the problem that networks are looked at on."""


def rate(value: float) -> str:
    """A learning rate as it is typed: 3e-4."""
    digits, exponent = f"{value:e}".split("e")
    return f"{float(digits):g}e{int(exponent)}"


def minus(value: float) -> str:
    """A number with the minus sign of pages."""
    return f"{value:g}".replace("-", "−")


def layers(hidden: Sequence[int]) -> str:
    """Layer sizes: 750-750."""
    return "-".join(map(str, hidden))


def alike(hidden: Sequence[int]) -> str:
    """Layers of one size: two layers of 256."""
    (size,) = set(hidden)
    return f"{word(len(hidden))} layers of {size}"


def one(*values: float) -> float:
    """What several settings share."""
    (value,) = set(values)
    return value


def default(function: Any, name: str) -> Any:
    """Of an argument."""
    return inspect.signature(function).parameters[name].default


def steps() -> str:
    """Of training, by default."""
    assert default(sapp.train, "steps") == 1_000_000
    return "one million"


def fresh(algorithm: Any) -> Any:
    """The structure of an algorithm's networks; nothing is computed."""
    spec = Spec(3, ACTIONS, jnp.zeros(3), jnp.ones(3))
    return jax.eval_shape(lambda: algorithm.init(jax.random.PRNGKey(0), spec))


def critics(algorithm: Any) -> str:
    """How many an algorithm has."""
    return word(jax.tree.leaves(fresh(algorithm).critics)[0].shape[0])


@fragments_of("docs/algorithms/bc.md")
def bc_page() -> Iterator[str]:
    """TD3+BC's actor."""
    own, other = BC(), TD3BC()
    for name in ("hidden", "actor_lr", "batch_size", "normalise"):
        assert getattr(own, name) == getattr(other, name), name
    yield f"{alike(own.hidden)}, tanh, observations normalised"
    yield f"(mean, std + {rate(NORMALISATION_OFFSET)}), Adam {rate(own.actor_lr)}, batch {own.batch_size}."


@fragments_of("docs/algorithms/bcq.md")
def bcq_page() -> Iterator[str]:
    """Its settings, and those of the VAE."""
    own = BCQ()
    yield f"moves each by at most Φ = {own.limit:g}"
    yield f"(a − â)² + {FRACTIONS[vae.KL_WEIGHT]}·mean KL"
    yield f"log σ within [{minus(vae.LOG_STD_MIN)}, {vae.LOG_STD_MAX:g}]"
    yield f"{fresh(own).vae.network.latent_size // ACTIONS}|A| latents"
    yield f"max_k [{own.share:g}·min_i + {1 - own.share:g}·max_i] Q̄_i"
    yield f"k ≤ {own.next_actions} perturbation"
    yield f"clipped to ±{FRACTIONS[vae.LATENT_CLIP]}"
    yield f"VAE {layers(own.vae_hidden)}, the others {layers(own.hidden)}"
    yield f"Adam {rate(one(own.actor_lr, own.critic_lr, own.vae_lr))}, batch {own.batch_size}, γ {own.discount:g}"
    yield f"target rate {own.tau:g}, {steps()} steps"
    yield f"next actions instead of {own.next_actions}"
    yield f"the candidate with the highest Q₁ among {own.candidates}"


@fragments_of("docs/algorithms/bear.md")
def bear_page() -> Iterator[str]:
    """Its settings, its kernels, and what is added under the MMD's root."""
    own = BEAR()
    yield f"max_k [{own.share:g}·min_i + {1 - own.share:g}·max_i] Q̄_i"
    yield f"k ≤ {own.next_actions} actor"
    yield f"the second term from step {own.warm_steps:,.0f} on"
    yield f"log α within [{minus(bear.LOG_ALPHA_MIN)}, {bear.LOG_ALPHA_MAX:g}]"
    zero, unit = jnp.zeros((1, 1, 1)), jnp.ones((1, 1, 1))
    added = rate(float(f"{float(bear.mmd(zero, zero, 1.0, 'gaussian')[0]) ** 2:.1e}"))
    draws = word(own.mmd_samples)
    yield f"k̄(x,y) + {added}), x {draws} draws of π, y {draws} of the VAE"
    for kernel, norm in (("gaussian", "‖²"), ("laplacian", "‖₁")):
        width = -1 / (own.sigma * math.log(float(mean_kernel(zero, unit, own.sigma, kernel)[0])))
        yield f"y{norm}/({width:.4g}σ)) ({kernel})"
    yield f"actor and critics {layers(own.hidden)}, VAE {layers(own.vae_hidden)}"
    yield f"learning rates {rate(own.actor_lr)} (actor), {rate(one(own.critic_lr, own.vae_lr))} (critics, VAE)"
    yield f"{rate(own.alpha_lr)} (α), σ = {own.sigma:g}, ε = {own.threshold:g}, gaussian kernel on halfcheetah"
    yield f"the best of {own.candidates} draws of π by Q₁"
    yield f"with the published ε and {draws} draws is usual"


@fragments_of("docs/algorithms/brac.md")
def brac_page() -> Iterator[str]:
    """Its settings, and the range of its policy's log σ."""
    own, mmd = BRAC(), preset("brac-mmd")
    yield f"(first {own.behaviour_steps / 1000:g}k updates)"
    yield f"the second term only after {own.warm_steps / 1000:g}k steps"
    assert own.kernel == mmd.kernel == "laplacian"
    yield f"laplacian, no root), {word(one(own.samples, mmd.samples))} draws each"
    yield f"max over {critics(own)} critics, share = {own.share:g}"
    heads = SimpleNamespace(actor=SimpleNamespace(heads=lambda raw: (raw, raw)))
    low, high = (float(NarrowGaussianActor.__call__(heads, jnp.float32(raw)).log_std) for raw in (-50, 50))
    yield f"π and β: {layers(own.hidden)}, tanh-Gaussian"
    yield f"log σ = {minus(low)} + {(high - low) / 2:g}·(tanh x + 1)"
    yield f"critics {layers(own.critic_hidden)}; learning rates {rate(own.actor_lr)} (π)"
    yield f"{rate(own.critic_lr)} (Q), {rate(own.behaviour_lr)} (β); α = {own.alpha:g} (below)"
    yield f"batch {own.batch_size}, target rate {own.tau:g}."
    yield f"With `--alpha-lr` above {own.alpha_lr:g} α follows"
    yield f"target_divergence)], up to {brac.ALPHA_MAX:g}."
    yield f"ours is {own.alpha:g} ([results]"
    assert not mmd.value_penalty
    yield f"`brac-mmd` uses {mmd.alpha:g} and leaves D out"
    yield f"off their bounds ({rate(1 - gaussian.ACTION_LIMIT)} here)"


@fragments_of("docs/algorithms/cql.md")
def cql_loss() -> Iterator[str]:
    """The penalty's actions and scales, and the protocol."""
    own = CQL()
    each = own.action_samples
    (uniform,) = {float(bound) for bound in Uniform().bounds()}
    assert own.weights == Uniform()
    yield f"adds a penalty to the {critics(own)} critics of"
    yield f"state weights w(s) ({uniform:g} for CQL)"
    yield f"log Σ exp over {3 * each} actions of"
    yield f"{word(each).capitalize()} actions come from π(·|s), {word(each)} from π(·|s')"
    yield f"and {word(each)} are uniform over the action box"
    yield f"by a factor of up to {word(max(ALPHA_SCALES.values()) / min(ALPHA_SCALES.values()))}; `alpha_scale` says"
    for name, scale in ALPHA_SCALES.items():
        yield f"| `{name}`{' (default)' if name == own.alpha_scale else ''} | {FRACTIONS[scale]} |"
    yield f"with {FRACTIONS[1 / ALPHA_SCALES['half-td']]} before the TD error"
    first, ratio, joint = (phase.steps for phase in sa_protocol())
    yield f"{first // 1000}k steps of CQL, {ratio // 1000}k of the ratio alone, {joint // 10**6}M of both"


@fragments_of("docs/algorithms/cql.md")
def cql_weights() -> Iterator[str]:
    """Defaults of SA-CQL's weights, and the limits of their health checks."""
    own = DualDICE()
    f = own.f
    assert preset("sa-cql").weights == own
    yield f"by one of {word(len(get_args(get_type_hints(DualDICE)['route'])))} routes"
    low, high = f.bounds()
    yield f"With b0 = {f.b0:g} and b1 = {f.b1:g} weights lie between {low:g} and {high:g}:"
    yield f"| `ratio_lr={rate(own.ratio_lr)}` |"
    yield f"| `adam_b1={own.adam_b1:g}`, `adam_b2={own.adam_b2:g}` |"
    yield f"Adam's usual {default(optax.scale_by_adam, 'b1'):g}, {default(optax.scale_by_adam, 'b2'):g})"
    yield f"β₁ = {own.adam_b1:g} keeps the saddle from oscillating"
    yield f"| `f.quantile={f.quantile:g}` |"
    yield f"| `components={own.components}`, `behaviour_lr={rate(own.behaviour_lr)}` |"
    ends = {b0: {float(LogMinMax(b0, 5.0, span=span).bounds()[1]) for span in ("added", "upper")} for b0 in (0.0, 0.5)}
    assert [len(each) for each in ends.values()] == [1, 2], "the two spans differ if b0 is positive"
    yield f"identical if b0 = {min(ends):g} |"
    yield f"They differ if b0 > {min(ends):g} and `span=added`"
    yield f"values above {own.max_zeta:g} or below {own.min_zeta:g}: unreliable"
    yield f"below {100 * own.min_ess:g} %: unreliable"
    ratios = jnp.exp(jnp.linspace(-1.0, 1.0, 1_001))
    clamped, not_at_0 = (float(each(ratios)[1]) for each in (f, replace(f, quantile=0.0)))
    assert not_at_0 == 0.0
    yield "no clamp (`0`)"
    yield f"about {100 * clamped:.0f} % by construction"


@fragments_of("docs/algorithms/discrete-cql.md")
def discrete_cql_settings() -> Iterator[str]:
    """Its defaults, those of CQL's own runs, and those that the guide takes."""
    own = DiscreteCQL()
    yield f"| `alpha` | {own.alpha:g} |"
    yield f"| `lr` | {rate(own.lr)}, Adam |"
    yield f"| `adam_eps` | {rate(own.adam_eps)} |"
    yield f"| `target_every` | {own.target_every:,} |"
    yield f"| `batch_size` | {own.batch_size} |"
    assert (own.quantiles, own.heads) == (0, 1)
    yield f"| `quantiles` | {own.quantiles}: one value per action |"
    yield f"an MLP of {own.network.hidden} on standardised vectors"
    quantile = preset("qr-dqn")
    yield f"`--quantiles {quantile.quantiles} --lr {rate(quantile.lr)} --adam-eps {rate(quantile.adam_eps)}"
    yield f"--target-every {quantile.target_every} --batch-size {quantile.batch_size}`"
    guide = (ROOT / "docs/guides/own-logs.md").read_text(encoding="utf-8")
    ((rate_there, every),) = re.findall(r"--lr (\S+) \\\n +--target-every (\d+)", guide)
    yield f"something like `--lr {rate_there} --target-every {every}`"


@fragments_of("docs/algorithms/discrete-cql.md")
def discrete_cql_frames() -> Iterator[str]:
    """The network for frames, the memory they may take, the presets, and the evaluation."""
    own = DefaultScores()
    (first, *others) = zip(own.channels, own.kernels, own.strides, strict=True)
    yield "{0} channels of {1}×{1} at stride {2}".format(*first)
    yield ", " + ", ".join("{0} of {1}×{1} at {2}".format(*each) for each in others) + ", no"
    yield f"a dense layer of {own.features}, ReLUs"
    plain = SimpleNamespace(method="patches", kernel=1, stride=1, linear=lambda x, precision: x)
    seen = float(conv._scaled(jnp.full((1, 1, 1, 1), 51, jnp.uint8), plain, "float32").reshape(()))
    yield f"bytes are divided by {51 / seen:.4g}."
    yield f"if they need more than {100 * FRAME_SHARE:g} % of its memory"
    yield f"the encoder's {own.features} features"
    before, ratio, _ = (phase.steps for phase in sa_protocol())
    yield f"{before // 1000}k steps of CQL, {ratio // 1000}k of the ratio alone, then both"
    for game in ("ALE/Asterix-v5", "pong-1", "qbert-1", "seaquest-1", "breakout-1"):
        assert weight_range(game) == weight_range("pong")
    yield "the paper's b0 = {:g}, b1 = {:g} and ζ's".format(*weight_range("pong"))
    games, others = (state_weights("dualdice", name).zeta_lr for name in ("pong", "my-logs"))
    b0, b1 = weight_range("my-logs")
    yield f"learning rate {rate(games)}; on other data they are ({b0:g}, {b1:g}) and {rate(others)}"
    yield f"ε-greedy with ε = {EPSILON:g} and adds up"


@fragments_of("docs/algorithms/dqn.md")
def dqn_page() -> Iterator[str]:
    """Its presets, and the optimiser that it has from Dopamine."""
    own, quantile = DQN(), preset("qr-dqn")
    yield f"`sapp.DQN(quantiles={quantile.quantiles})`"
    both = (own, quantile)
    yield f"| `lr`, `adam_eps` | {' | '.join(f'{rate(each.lr)}, {rate(each.adam_eps)}' for each in both)} |"
    yield f"| `target_every` | {' | '.join(f'{each.target_every:,}' for each in both)} |"
    yield f"| `double` | {' | '.join('yes' if each.double else 'no' for each in both)} |"
    yield f"| `batch_size` | {' | '.join(str(each.batch_size) for each in both)} |"
    yield f"| `optimiser` | {' | '.join(each.optimiser for each in both)} |"
    kept = inspect.getclosurevars(RMSPROP.update).nonlocals
    yield f"centred RMSProp (decay {kept['decay']:g}, ε {rate(kept['eps'])} inside the root)"


@fragments_of("docs/algorithms/dqn.md")
def dqn_online() -> Iterator[str]:
    """How it plays and learns."""
    plan, own = online_dqn.Exploration(), online_dqn.dopamine_dqn()
    period, rows = (default(online_dqn.train, name) for name in ("update_period", "rows"))
    yield f"ε is {plan.epsilon(0):g} for {plan.warm_up:,} steps, then falls to {plan.last:g} over {plan.decay:,};"
    yield f"one update of {own.batch_size} transitions per {word(period)} steps"
    yield f"a new target every {period * own.target_every:,} steps, with Adam {rate(own.lr)}"
    yield f"and ε {rate(own.adam_eps)} (`--optimiser rmsprop"
    yield f"{rows} environments play in parallel (`--rows`)"
    yield f"the acting network is one round of {rows} steps old"


@fragments_of("docs/algorithms/edac.md")
def edac_settings() -> Iterator[str]:
    """Its settings, and how its networks start."""
    own = EDAC()
    small = replace(own, hidden=(64,), precision="float32")
    state = jax.jit(lambda key: small.init(key, Spec(3, ACTIONS, jnp.zeros(3), jnp.ones(3))))(jax.random.PRNGKey(0))
    *inner, last = state.critics.network.mlp.layers
    actor = state.actor.network
    heads = (actor.mean, actor.log_std)
    (bias,) = {f"{float(each):g}" for layer in (*inner, *actor.trunk.layers) for each in np.unique(layer.bias)}
    yield f"{alike(own.hidden).capitalize()}, the critics' last layer"
    yield f"last layer uniform in ±{largest(last):.1g}, the actor's {word(len(heads))}"
    yield f"in ±{max(map(largest, heads)):.1g}, hidden biases {bias};"
    yield f"the actor's log σ within [{minus(actor.log_std_min)}, {gaussian.LOG_STD_MAX:g}]"
    yield f"learning rates {rate(one(own.actor_lr, own.critic_lr, own.temperature_lr))}, batch {own.batch_size}"
    yield f"γ {own.discount:g}, target rate {own.tau:g},"


def largest(layer: Any) -> float:
    """Of a layer's weights, which are uniform in ± a bound."""
    return float(jnp.max(jnp.abs(layer.weight)))


@fragments_of("docs/algorithms/edac.md")
def edac_presets() -> Iterator[str]:
    """Numbers of critics and η by dataset."""
    found, plain = ({name: make(name) for name in NAMES} for make in (edac.edac, edac.sac_n))
    counts = {each.critics for each in found.values()}
    most = max(each.critics for each in plain.values())
    yield f"so that {min(counts)} to {max(counts)} critics achieve what SAC-N needs up to {most} for"
    for environment in ENVIRONMENTS:
        ensemble = one(*(found[f"{environment}-{quality}"].critics for quality in QUALITIES))
        etas = {quality: found[f"{environment}-{quality}"].eta for quality in QUALITIES}
        (usual, _), *_ = Counter(etas.values()).most_common()
        cell = [f"{usual:g}"]
        for eta in sorted(set(etas.values()) - {usual}, reverse=True):
            cell.append(f"{eta:g} on {' and '.join(quality for quality in QUALITIES[::-1] if etas[quality] == eta)}")
        medium, *rest = (plain[f"{environment}-{quality}"].critics for quality in ("medium", *QUALITIES))
        others = {each for quality, each in zip(QUALITIES, rest, strict=True) if quality != "medium"}
        last = f"{medium}" if others == {medium} else f"{medium} on medium, else {one(*others)}"
        yield f"| {environment} | {ensemble} | {'; '.join(cell)} | {last} |"


@fragments_of("docs/algorithms/edac.md")
def edac_scores() -> Iterator[str]:
    """How long the published runs are, and how far ours were on halfcheetah-medium."""
    source, published, *_ = baselines.PUBLISHED["EDAC"]
    (millions,) = map(int, re.findall(r", (\d+)M$", source))
    yield f"{word(millions)} million steps (`--steps {millions * 10**6}`;"
    seeds = baselines.of(baselines.scores(), *baselines.METHODS["EDAC"], "halfcheetah-medium-v2")
    means = {step: float(np.mean(list(found.values()))) for step, found in seeds.items()}
    little = max(step for step, mean in means.items() if mean < 0.1 * float(published))
    yield f"on halfcheetah-medium the first {little:,} show little"
    assert max(means) == 1_000_000
    assert abs(means[max(means)] - float(published)) < 1
    yield "and a million reach the published score"


@fragments_of("docs/algorithms/fisher-brc.md")
def fisher_page() -> Iterator[str]:
    """Its settings, its mixture, and the cloning's schedule."""
    own = FisherBRC()
    behaviour = fresh(own).behaviour.network
    yield f"(first {own.behaviour_steps / 10**6:g}M updates)"
    yield f"y = r + {own.reward_bonus:g} + γ"
    yield f"a mixture of {word(behaviour.components)} tanh-Gaussians"
    yield f"(log σ within [{minus(behaviour.log_std_min)}, {gaussian.LOG_STD_MAX:g}], {alike(own.behaviour_hidden)})"
    yield f"Offsets and actor have {alike(own.hidden)} with orthogonal"
    yield f"all last layers have a gain of {fisher_brc.LAST_GAIN:g}."
    learning = one(own.actor_lr, own.critic_lr, own.temperature_lr)
    yield f"All learning rates are {rate(learning)}; for cloning {rate(own.behaviour_lr)}"
    rates = [cloning_rate(step) / own.behaviour_lr for step in range(100)]
    first, second = (next(step for step, share in enumerate(rates) if share < below) for below in (0.99, 0.099))
    assert np.allclose([rates[first], rates[second]], [0.1, 0.01]), "a tenth, a hundredth"
    yield f"a tenth of that after {first} % and a hundredth after {second} % of the cloning steps"
    yield f"λ = {own.penalty:g} (the authors' training flag"
    yield f"batch {own.batch_size}, γ {own.discount:g}, target rate {own.tau:g}."
    _, metrics = branch(True, lambda: ((), {}), lambda: ((), {"loss": jnp.float32(1.0)}))
    yield f"metrics of the parts that are not learning are {float(metrics['loss']):g}."
    yield f"including the bonus of {own.reward_bonus:g} per step"


class Seen(Exception):
    """A learning rate that a network was about to learn with."""


def cloning_rate(step: int) -> float:
    """At a step of a hundred."""

    def descend(_: Any, rate: Any, *__: Any) -> None:
        raise Seen(float(rate))

    state = SimpleNamespace(
        behaviour=SimpleNamespace(descend=descend), log_multiplier=SimpleNamespace(network=jnp.float32(0.0))
    )
    try:
        FisherBRC(behaviour_steps=100).clone(state, None, None, step)
    except Seen as seen:
        return float(seen.args[0])
    raise AssertionError("it did not learn")


@fragments_of("docs/algorithms/iql.md")
def iql_page() -> Iterator[str]:
    """Its settings, and the scale of rewards."""
    own = IQL()
    most = f"{iql.MAX_ADVANTAGE_WEIGHT:g}"
    yield f"(q − V(s))), {most})·log π(a|s)]"
    yield f"a mean weight near {most}: β is too large"
    yield f"log σ within [{minus(deterministic.IQL_LOG_STD_MIN)}, {deterministic.IQL_LOG_STD_MAX:g}]"
    assert own.decay_steps == default(sapp.train, "steps")
    last = float(iql.cosine_decay(own.decay_steps, own.decay_steps))
    yield f"learning rate falls to {last:g} along a cosine over `decay_steps` ({steps()})"
    assert own.reward_scaling == "returns"
    yield f"Rewards are scaled by {iql.RETURN_SCALE:g}/(largest − smallest return"
    gain = one(*(default(orthogonal, name) for name in ("gain", "last")))
    yield f"| {alike(own.hidden)}, orthogonal (√{gain**2:g}) |"
    learning = one(own.actor_lr, own.critic_lr, own.value_lr)
    yield f"| τ (`expectile`), β, learning rates | {own.expectile:g}, {own.beta:g}, {rate(learning)} |"
    yield f"| {own.batch_size}, {own.discount:g}, {own.tau:g}, {steps()} |"


@fragments_of("docs/algorithms/rebrac.md")
def rebrac_page() -> Iterator[str]:
    """Its settings and penalties."""
    own = ReBRAC()
    penalties = [each.name for each in fields(own) if each.name.endswith("_penalty")]
    yield f"layer norm in the critics and {word(len(penalties))} separate penalties"
    yield f"{alike(own.hidden).capitalize()} (dense, ReLU, layer norm in the critics)"
    yield f"all learning rates {rate(one(own.actor_lr, own.critic_lr))}, batch {own.batch_size}"
    assert not own.normalise
    yield f"no normalisation of observations, {steps()} steps"
    assert {f"{environment}-{quality}" for environment, quality in PENALTIES} == set(NAMES)
    yield f"each of the {len(PENALTIES)} locomotion datasets"
    other, medium = preset("rebrac", "my-logs"), preset("rebrac", "halfcheetah-medium")
    assert other == medium
    yield f"those of halfcheetah-medium, ({other.actor_penalty:g}, {other.critic_penalty:g})"
    row = SimpleNamespace(next_action=jnp.ones((1, ACTIONS)), next_logged=jnp.zeros(1))
    (none,) = own.target_penalty(row, jnp.zeros((1, ACTIONS)), jnp.ones(1)).tolist()
    yield f"so the penalty is {none:g} there"


@fragments_of("docs/algorithms/rem.md")
def rem_page() -> Iterator[str]:
    """Its defaults."""
    own, period = REM(), default(online_dqn.train, "update_period")
    yield f"| `ensemble` | {own.ensemble} heads on one encoder |"
    yield f"u ~ U(0,1)^{own.ensemble}, drawn once per mini-batch"
    yield f"| `lr`, `adam_eps` | {rate(own.lr)}, {rate(own.adam_eps)} |"
    yield f"| {own.target_every:,} updates ({period * own.target_every:,} of their agent steps"
    yield f"of their agent steps at one update in {word(period)})"
    yield f"| `batch_size` | {own.batch_size} |"


@fragments_of("docs/algorithms/sac.md")
def sac_page() -> Iterator[str]:
    """Its settings, and how it is trained online."""
    own = SAC()
    window, rows, chunk, snapshots = (
        default(online_training.train, name) for name in ("window", "rows", "chunk", "snapshots")
    )
    yield f"Soft actor-critic with {critics(own)} critics"
    yield f"{alike(own.hidden)}, batches of {own.batch_size}"
    yield f"learning rates {rate(one(own.actor_lr, own.critic_lr, own.temperature_lr))}, γ = {own.discount:g}"
    assert window == 1_000_000
    yield f"targets moved by {own.tau:g}, a buffer of one million"
    yield f"at about {word(snapshots)} steps, more often early on"
    yield f"makes {chunk} updates of every member"
    yield f"the CPU cores take {chunk} steps for every member, in {rows} parallel environments"


@fragments_of("docs/algorithms/td3bc.md")
def td3bc_page() -> Iterator[str]:
    """Its settings."""
    own = TD3BC()
    noise = f"clip(N(0, {own.noise:g}²), ±{own.noise_clip:g}), ±1)"
    yield f"clip(μ̄(s') + {noise}"
    yield f"clip(μ(s) + {noise}."
    yield f"N(a; μ(s), {own.noise:g}²), without clipping"
    yield f"λ = {own.alpha:g} / E_B|Q₁(s,μ(s))|"
    yield f"are updated at every {({2: 'second'})[own.period]} step"
    yield f"with the data's mean and std + {rate(NORMALISATION_OFFSET)};"
    yield f"| networks | {alike(own.hidden)}, ReLU"
    learning = rate(one(own.actor_lr, own.critic_lr))
    yield f"| {learning}, {own.batch_size}, {own.discount:g}, {own.tau:g} |"
    yield f"| steps | {steps()} |"
    f = preset("td3bc", weights="dualdice").weights.f
    yield f"With b0 = {f.b0:g} and b1 = {f.b1:g} the mean weight is below {f.bounds()[1]:g}:"


@fragments_of("docs/algorithms/uwac.md")
def uwac_page() -> Iterator[str]:
    """Its settings, what its kernel takes, and how far its trust falls."""
    own = UWAC()
    yield f"mean and variance over {own.passes} dropout samples"
    yield f"The {own.passes} samples of an evaluation come from {own.passes} networks"
    yield f"the policy acts (best of {own.candidates} by Q₁)"
    yield f"Dropout of {own.dropout:g} follows each hidden layer"
    yield f"β = {own.beta:g}, {own.kernel} kernel, σ = {own.sigma:g}, ε = {own.threshold:g}"
    yield f"log standard deviation within [{minus(own.log_std_min)}, {gaussian.LOG_STD_MAX:g}]"
    *some, most = dropout_samples.WIDTHS
    (depth,) = (count for count in range(1, 5) if dropout_samples.misfit((most,) * count) is None)
    yield f"{word(depth)} hidden layers of {', '.join(map(str, some))} or {most} units"
    with open(ROOT / "studies/baselines/rows/metrics/uwac.csv", encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["critic/trust"]]
    assert {row["dataset"] for row in rows} == set(baselines.DATASETS)
    end = max(int(row["step"]) for row in rows)
    trust = max(float(row["critic/trust"]) for row in rows if int(row["step"]) == end)
    assert trust < 1e-3
    yield "it falls towards 0 on the medium datasets"
