"""Policy optimisation: argmax_π ⟨ρ, v_p(π)⟩ over a finite class, or over softmax policies by exact gradients.

The weights of SA-PP depend on the policy through its occupancy, so improvement state by state is not available. The
objective is J(π) = ⟨d, Aᵖr_D − αp(π, d)⟩ with d = ρ(I − γAᵖP_D)⁻¹, and its gradient follows from one more solve with
the same matrix (the adjoint): with g = ∂J/∂d at fixed π and λ = (I − γAᵖP_D)⁻¹g,

    dJ/dπ(a|s) = d(s)·(r_D(s,a) + γP_D(s,a)·λ) − α·∂⟨d, p⟩/∂π(a|s).

The element-wise derivatives of ⟨d, p⟩ are JAX's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.sparse
import scipy.sparse.linalg
from numpy.typing import NDArray

from sapp.core.errors import SappError
from sapp.tabular.divergence import BOUNDED, kl
from sapp.tabular.evaluation import Pessimism, evaluate
from sapp.tabular.logs import EmpiricalMDP
from sapp.tabular.mdp import Floats, one_hot, softmax_policy
from sapp.tabular.weights import Fixed, Ratio, Uniform

DENSE_UP_TO = 100
"""States up to which systems are solved densely."""
SMOOTHING = (1e-2, 1e-4, 1e-6)
"""Successive roundings of the kinks of TV and MMD during an ascent."""


@dataclass(frozen=True)
class Optimum:
    """A policy [S, A], its objective ⟨ρ, v_p(π)⟩, and how far it may be from the best.

    gap: in the space of pair occupancies x(s,a) = d(s)π(a|s), the Frank–Wolfe gap max_{x'} ⟨∂J/∂x, x' − x⟩ over the
    occupancies x' of all policies in the support. It vanishes exactly at stationary points. Where J is concave in x
    (``certified``) the best objective is at most value + gap; elsewhere it only says that the ascent has settled, and
    the restarts are all there is. values: the objective reached from each restart.
    """

    policy: Floats
    value: float
    gap: float
    certified: bool
    values: Floats
    evaluations: int


def is_concave(pessimism: Pessimism) -> bool:
    """Whether J is concave in the pair occupancies x(s,a) = d(s)π(a|s), so that ``Optimum.gap`` is a certificate.

    Uniform or fixed weights: d·Dis(x/d) is the perspective of a convex function. CQL's divergence with weight w:
    d·w·χ² = (Σ_a x²/β̂ − d²)/d^D is a positive semi-definite quadratic form (Cauchy–Schwarz). Not so for w with the
    others: x ↦ d·|x − dβ̂| (TV) is not convex.
    """
    weights = pessimism.weights
    if pessimism.alpha == 0 or isinstance(weights, (Uniform, Fixed)):
        return True
    plain = isinstance(weights, Ratio) and weights.power == 1 and np.isinf(weights.ceiling)
    return plain and pessimism.divergence == "cql"


def enumerate_class(
    model: EmpiricalMDP, policies: Floats, pessimism: Pessimism
) -> tuple[NDArray[np.integer], Floats]:
    """The best of a finite class: index [...] and objectives ⟨ρ, v_p(π)⟩ [..., K], for policies [..., K, S, A]."""
    wide = model.expand()
    objective = wide.expected(evaluate(wide, policies, pessimism))
    return objective.argmax(-1), objective


class Objective:
    """J(π) of one empirical MDP and its exact gradient; the transition matrix is kept sparse."""

    def __init__(self, model: EmpiricalMDP, pessimism: Pessimism, smooth: float = 0.0) -> None:
        if model.batch:
            raise SappError("the optimiser takes one MDP: index the batch, or use optimise_many")
        self.model, self.pessimism, self.smooth = model, pessimism, smooth
        self.states, self.actions = model.states, model.actions
        self.transition = scipy.sparse.csr_matrix(model.transition.reshape(-1, model.states))
        self._view = model.behaviour, model.visits, model.pairs, model.discount

    def smoothed(self, smooth: float) -> Objective:
        """The same objective with the kinks of TV and MMD rounded."""
        other = object.__new__(Objective)
        other.__dict__.update(self.__dict__, smooth=smooth)
        return other

    def factorise(self, policy: Floats) -> Callable[[Floats, bool], Floats]:
        """(b, transposed) ↦ x with (I − γAᵖP_D)x = b, or with the transpose; sparse where that pays."""
        size, ends = self.states * self.actions, self.actions * np.arange(self.states + 1)
        activity = scipy.sparse.csr_matrix((policy.ravel(), np.arange(size), ends), shape=(self.states, size))
        matrix = scipy.sparse.identity(self.states) - self.model.discount * (activity @ self.transition)
        if self.states > DENSE_UP_TO:
            sparse = scipy.sparse.linalg.splu(matrix.tocsc())
            return lambda right, transposed: np.asarray(sparse.solve(right, "T" if transposed else "N"))
        dense = scipy.linalg.lu_factor(matrix.toarray(), check_finite=False)
        return lambda right, transposed: scipy.linalg.lu_solve(dense, right, int(transposed), check_finite=False)

    def parts(self, policy: Floats) -> Parts:
        """J and its derivatives."""
        model, alpha = self.model, self.pessimism.alpha
        solve = self.factorise(policy)
        occupancy = np.maximum(solve(model.start, True), 0.0)
        with float64():
            gradients = _charge(self.pessimism.at(0.0), self.smooth)(policy, occupancy, *self._view)
        charge, (by_policy, by_occupancy) = float(gradients[0]), (np.asarray(g) for g in gradients[1])
        gain = np.sum(policy * model.reward, -1)
        adjoint = solve(gain - alpha * by_occupancy, False)
        onward = model.reward + model.discount * (self.transition @ adjoint).reshape(self.states, self.actions)
        return Parts(float(occupancy @ gain) - alpha * charge, occupancy, onward, alpha * by_policy, adjoint)

    def value(self, policy: Floats) -> float:
        """J(π) = ⟨ρ, v_p(π)⟩."""
        return self.parts(policy).value

    def gap(self, policy: Floats) -> float:
        """How far J(π) may be from its maximum over the policies in the support (see ``Optimum``).

        For each state the advantage of the best change of π(·|s) in a linearised objective; for KL and TV, whose slopes
        are infinite or jump, the exact maximum of π·q − rate·Dis instead: rate·log Σ_a β̂·e^{q/rate}, and Σ_a β̂·max(q,
        max q − rate). Then the largest expected sum of these over all policies. MMD is measured on its rounded version,
        and the rounding is added.
        """
        objective, rounding = self, 0.0
        if self.pessimism.divergence == "mmd":
            objective = self.smoothed(SMOOTHING[-1])
            rounding = objective.value(policy) - self.value(policy)
        advantage = objective._advantages(policy)
        return max(0.0, self._best(np.where(self.model.support, advantage, -np.inf), policy)) + max(0.0, rounding)

    def _advantages(self, policy: Floats) -> Floats:
        """[S, A]; Σ_a π'(a|s)·advantage bounds what π' gains over π at s, to first order in the occupancy."""
        parts, model = self.parts(policy), self.model
        weights = np.asarray(self.pessimism.state_weights(parts.occupancy, model))
        reached = parts.occupancy[:, None] > 0
        if self.pessimism.divergence in ("kl", "tv"):
            rate = self.pessimism.alpha * np.where(np.isinf(weights), 0.0, weights)
            held = np.sum(policy * parts.onward, -1) - rate * np.asarray(self.pessimism.distance(policy, model))
            top = np.where(model.support, parts.onward, -np.inf).max(-1)
            below = np.where(model.support, parts.onward - top[:, None], -np.inf)
            if self.pessimism.divergence == "kl":
                safe = np.where(rate > 0, rate, 1.0)[:, None]
                gain = rate * np.log(np.sum(model.behaviour * np.exp(below / safe), -1))
            else:
                gain = np.sum(model.behaviour * np.maximum(below, -rate[:, None]), -1)
            best = top + gain
            return np.broadcast_to((best - held)[:, None], policy.shape)
        slope = parts.onward - np.where(reached, parts.by_policy / np.where(reached, parts.occupancy[:, None], 1), 0.0)
        return slope - np.sum(policy * slope, -1, keepdims=True)

    def _best(self, reward: Floats, policy: Floats) -> float:
        """Optimal ⟨ρ, V⟩ of the same dynamics under another reward, by policy iteration."""
        chosen = np.where(self.model.support, policy, -1.0).argmax(-1)
        rows, discount = np.arange(self.states), self.model.discount
        while True:
            held = reward[rows, chosen]
            value = self.factorise(one_hot(chosen, self.actions))(held, False)
            q = reward + discount * (self.transition @ value).reshape(self.states, self.actions)
            better = np.asarray(q.max(-1) > value + 1e-10 * (1 + np.abs(value)))
            if not better.any():
                return float(self.model.start @ value)
            chosen = np.where(better, q.argmax(-1), chosen)


@dataclass(frozen=True)
class Parts:
    """J, d [S], q = r_D + γP_D λ [S, A], α·∂⟨d,p⟩/∂π [S, A] and the adjoint λ [S] at a policy."""

    value: float
    occupancy: Floats
    onward: Floats
    by_policy: Floats
    adjoint: Floats

    @property
    def gradient(self) -> Floats:
        """dJ/dπ [S, A]."""
        return self.occupancy[:, None] * self.onward - self.by_policy


@lru_cache(maxsize=64)
def _charge(pessimism: Pessimism, smooth: float) -> Callable[..., Any]:
    """(π, d, β̂, d^D, n, γ) ↦ ⟨d, p⟩ and its derivatives by π and by d, compiled once for each kind of pessimism."""
    import jax

    def charge(policy: Any, occupancy: Any, behaviour: Any, visits: Any, pairs: Any, discount: Any) -> Any:
        view: Any = _View(behaviour, visits, pairs, discount)
        return (occupancy * pessimism.penalty(policy, occupancy, view, smooth)).sum()

    return jax.jit(jax.value_and_grad(charge, argnums=(0, 1)))


@dataclass(frozen=True)
class _View:
    """What ``Pessimism.penalty`` reads of a model."""

    behaviour: Any
    visits: Any
    pairs: Any
    discount: Any


def float64() -> Any:
    """A context in which JAX computes in float64; the global setting is left alone."""
    import jax

    return jax.enable_x64(True)


def optimise(
    model: EmpiricalMDP, pessimism: Pessimism, restarts: int = 3, seed: int = 0, iterations: int = 500,
    tolerance: float = 1e-9, initial: Floats | None = None, polish: bool = True,
) -> Optimum:
    """argmax ⟨ρ, v_p(π)⟩ over softmax policies (and their limits) in the support of β̂, by exact gradients.

    First sweeps: with q = r_D + γP_D λ from the adjoint, move towards the maximiser of π·q − α·weights·Dis(π, β̂) in
    every state, an ascent direction, as far as a line search allows (with uniform weights this is policy iteration).
    Where that has not settled within ``iterations`` steps, L-BFGS on the logits follows unless ``polish`` is off.

    The first start is β̂ (or ``initial`` [S, A]), the others are random. In states that the log never saw the policy is
    β̂'s default. β̂ itself is a candidate: with much pessimism the optimum sits there, on a kink of TV and MMD.
    """
    if restarts < 1:
        raise SappError(f"restarts is {restarts}: at least one is needed")
    objective = Objective(model, pessimism)
    free = model.support & model.seen[:, None]
    rng = np.random.default_rng(seed)
    first = np.log(np.maximum(model.behaviour if initial is None else initial, 1e-3))
    rounds = SMOOTHING if pessimism.divergence in BOUNDED and pessimism.alpha > 0 else (0.0,)
    policies, values, ends, calls = [], [], [], 0
    for restart in range(restarts):
        logits = first if restart == 0 else rng.normal(0.0, 1.0, first.shape)
        policy, used, done = _sweep(objective, free, _policy(model, free, logits), iterations, tolerance)
        calls += used
        logits, settled = np.log(np.maximum(policy, 1e-9)), done or not polish
        for smooth in () if settled else rounds:
            logits, used = _ascend(objective.smoothed(smooth), free, logits, iterations, tolerance)
            calls += used
        policies += [policy] if settled else [policy, _policy(model, free, logits)]
        reached = [objective.value(policy)] if settled else [objective.value(p) for p in policies[-2:]]
        values += reached
        ends.append(max(reached))
    policies.append(np.where(model.support, model.behaviour, 0.0))
    values.append(objective.value(policies[-1]))
    best = int(np.argmax(values))
    return Optimum(
        policies[best], values[best], objective.gap(policies[best]), is_concave(pessimism), np.array(ends), calls
    )


def _policy(model: EmpiricalMDP, free: NDArray[np.bool_], logits: Floats) -> Floats:
    """Softmax over the free actions; β̂ where there are none."""
    varied = np.asarray(free.any(-1))[:, None]
    return np.where(varied, softmax_policy(logits, free | ~varied), model.behaviour)


def _sweep(
    objective: Objective, free: NDArray[np.bool_], policy: Floats, iterations: int, tolerance: float
) -> tuple[Floats, int, bool]:
    """State-wise improvement with a line search: the policy, the evaluations used, and whether it has settled."""
    model, pessimism = objective.model, objective.pessimism
    varied = np.asarray(free.any(-1))
    parts, used, length = objective.parts(policy), 1, 1.0
    for _ in range(iterations):
        weights = np.asarray(pessimism.state_weights(parts.occupancy, model))
        rate = pessimism.alpha * np.where(np.isfinite(weights), weights, 0.0)
        better = _best_response(pessimism.divergence, policy, parts, model, free | ~varied[:, None], rate)
        better = np.where(varied[:, None], better, policy)
        move = better - policy
        rise = float(np.sum(parts.gradient * move))
        scale = 1 + abs(parts.value)
        if pessimism.divergence == "kl":  # its slope is infinite at the border: compare the exact state-wise values
            rise = float(np.sum(parts.occupancy * _kl_rise(policy, better, parts.onward, model.behaviour, rate)))
        if rise <= tolerance * scale:
            return policy, used, True
        length = min(1.0, 4 * length)
        while True:
            trial = objective.parts(policy + length * move)
            used += 1
            if trial.value >= parts.value + 0.1 * length * rise or length < 1e-9:
                break
            bend = length * rise - (trial.value - parts.value)  # of the parabola through both values and the slope
            length = float(np.clip(length * length * rise / (2 * bend), 0.1 * length, 0.5 * length))
        if trial.value <= parts.value + 1e-13 * scale:
            return policy, used, False
        policy, parts = policy + length * move, trial
    return policy, used, False


def _kl_rise(policy: Floats, better: Floats, onward: Floats, behaviour: Floats, rate: Floats) -> Floats:
    return np.sum((better - policy) * onward, -1) - rate * (kl(better, behaviour) - kl(policy, behaviour))


def _best_response(
    name: str, policy: Floats, parts: Parts, model: EmpiricalMDP, allowed: NDArray[np.bool_], rate: Floats
) -> Floats:
    """argmax over π(·|s) of π·q − rate·Dis(π, β̂) in each state [S, A]; for MMD and counts, of its linearisation."""
    q = np.where(allowed, parts.onward, -np.inf)
    top = q.max(-1, keepdims=True)
    greedy = one_hot(q.argmax(-1), q.shape[-1])
    some = (rate > 0)[:, None]
    safe = np.where(some, rate[:, None], 1.0)
    beta = np.where(allowed, model.behaviour, 0.0)
    if name == "kl":
        powers = beta * np.exp(np.maximum((q - top) / safe, -700.0))
        return np.where(some, powers / powers.sum(-1, keepdims=True), greedy)
    if name == "cql":
        return np.where(some, _quadratic_response(q, beta, 2 * safe), greedy)
    if name == "tv":
        stay = np.where(q >= top - safe, beta, 0.0)
        return np.where(some, stay + (1 - stay.sum(-1, keepdims=True)) * greedy, greedy)
    reached = parts.occupancy[:, None] > 0
    slope = parts.onward - np.where(reached, parts.by_policy / np.where(reached, parts.occupancy[:, None], 1.0), 0.0)
    return one_hot(np.where(allowed, slope, -np.inf).argmax(-1), q.shape[-1])


def _quadratic_response(q: Floats, beta: Floats, curvature: Floats) -> Floats:
    """argmax of π·q − curvature/2·Σπ²/β̂ on the simplex: π = β̂·max(0, q − μ)/curvature, μ found by sorting q."""
    order = np.argsort(-q, -1)
    sorted_q = np.take_along_axis(q, order, -1)
    sorted_beta = np.take_along_axis(beta, order, -1)
    finite = np.where(np.isfinite(sorted_q), sorted_q, 0.0)
    mass = np.cumsum(sorted_beta, -1)
    level = (np.cumsum(sorted_beta * finite, -1) - curvature) / np.where(mass > 0, mass, 1.0)
    last = np.sum((sorted_q > level) & (sorted_beta > 0), -1, keepdims=True) - 1
    last = np.maximum(last, 0)
    mu = np.take_along_axis(level, last, -1)
    raw = beta * np.maximum(np.where(np.isfinite(q), q, -np.inf) - mu, 0.0)
    raw = np.where(beta > 0, raw, 0.0)
    return raw / raw.sum(-1, keepdims=True)


def _ascend(
    objective: Objective, free: NDArray[np.bool_], logits: Floats, iterations: int, tolerance: float
) -> tuple[Floats, int]:
    """L-BFGS over the logits of the free actions: where it ends, and the gradients it took."""

    def table(flat: Floats) -> Floats:
        full = np.zeros(logits.shape)
        full[free] = flat
        return full

    def downhill(flat: Floats) -> tuple[float, Floats]:
        policy = _policy(objective.model, free, table(flat))
        parts = objective.parts(policy)
        slope = parts.gradient
        return -parts.value, -(policy * (slope - np.sum(policy * slope, -1, keepdims=True)))[free]

    found = scipy.optimize.minimize(
        downhill, logits[free], jac=True, method="L-BFGS-B",
        options={"maxiter": iterations, "ftol": 1e-15, "gtol": tolerance, "maxcor": 20, "maxfun": 4 * iterations},
    )
    return table(found.x), int(found.nfev)


def optimise_many(
    model: EmpiricalMDP, pessimism: Pessimism, restarts: int = 4, seed: int = 0, steps: int = 500, rate: float = 0.2
) -> tuple[Floats, Floats]:
    """The same for a batch of small problems at once: the best policies [N, S, A] and their objectives [N].

    Adam on softmax logits, all problems and restarts in one compiled JAX program. β̂ is a candidate.
    """
    import jax
    import jax.numpy as jnp
    import optax

    if len(model.batch) != 1:
        raise SappError(f"optimise_many takes one batch axis, not {len(model.batch)}")
    rng = np.random.default_rng(seed)
    shape = (restarts, *model.reward.shape)
    logits = np.concatenate([np.log(np.maximum(model.behaviour, 1e-3))[None], rng.normal(size=shape)])[:restarts]
    arrays = {name: np.broadcast_to(getattr(model, name), (*model.batch, *getattr(model, name).shape[1:]))
              for name in ("transition", "reward", "start", "behaviour", "visits", "pairs", "support")}

    def policy_of(table: Any, support: Any) -> Any:
        return jax.nn.softmax(jnp.where(support, table, -jnp.inf), axis=-1)

    def objective(table: Any, a: dict[str, Any]) -> Any:
        policy = policy_of(table, a["support"])
        matrix = jnp.eye(model.states) - model.discount * jnp.einsum("sa,sat->st", policy, a["transition"])
        occupancy = jnp.linalg.solve(matrix.T, a["start"])
        view: Any = _View(a["behaviour"], a["visits"], a["pairs"], model.discount)
        charge = pessimism.penalty(policy, occupancy, view)
        return jnp.sum(occupancy * (jnp.sum(policy * a["reward"], -1) - pessimism.alpha * charge))

    adam = optax.adam(rate)

    def ascend(table: Any, a: dict[str, Any]) -> Any:
        def one(carry: Any, _: Any) -> Any:
            table, state = carry
            gradient = jax.grad(objective)(table, a)
            update, state = adam.update(jax.tree.map(jnp.negative, gradient), state)
            return (table + update, state), None

        (table, _), _ = jax.lax.scan(one, (table, adam.init(table)), None, length=steps)
        return table

    with float64():
        over = jax.jit(jax.vmap(jax.vmap(ascend), in_axes=(0, None)))
        found = over(jnp.asarray(logits), {k: jnp.asarray(v) for k, v in arrays.items()})
        policies = np.asarray(policy_of(found, arrays["support"]))
    policies = np.concatenate([policies, np.broadcast_to(model.behaviour, policies.shape[1:])[None]])
    candidates = np.moveaxis(policies, 0, 1)
    index, objectives = enumerate_class(model, candidates, pessimism)
    return np.take_along_axis(candidates, index[:, None, None, None], 1)[:, 0], objectives.max(-1)
