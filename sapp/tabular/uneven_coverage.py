"""Worlds in which pessimism has to know the state.

A behaviour penalty protects against noise where the data are few and costs where they are many: the best weight of it
falls with the number of visits n(s). One weight for all states is a compromise whenever visits differ between states
that matter alike. Visits that are few *for what the policy does there* are a large ratio d^π(s)/d^D(s). So the ratio
must help if (1) the data's visits and the policy's differ, (2) the states of both kinds matter, and (3) the behaviour
knows something, so that staying near it is worth anything. The setting has all three, and a switch for each.

Every episode begins in one of ``doors`` entrance states and goes on through the hall, ``length`` − 1 more steps, each
in one of ``halls`` states at random, whatever was done. With γ = ½ the first decision counts as much as all later ones
together, but only one row in ``length`` is such a decision: there the ratio is length/2, in the hall about ½. Rewards
are r(s,a) and noise. The behaviour prefers good actions, β(a|s) ∝ exp(skill·r(s,a) + noise), everywhere alike. What is
lost is Σ_s d^π(s)·(max_a r(s,a) − r(s, chosen a)), exactly.

Since no action changes what follows, d^π is the same for every policy and CQL's minimiser can be computed state by
state. Each way to spread the penalty has its α tuned on half of the worlds; losses are those of the other half.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sapp.data import Dataset

Floats = np.ndarray
FLOOR = 0.02
"""Least weight: of the log-min–max, whose lowest weight would be no penalty at all."""


@dataclass(frozen=True)
class Setting:
    """A family of worlds; see the module."""

    doors: int = 10
    halls: int = 10
    actions: int = 8
    episodes: int = 400
    length: int = 100
    noise: float = 3.0
    """Standard deviation of a reward."""
    spread: float = 0.5
    """Standard deviation of r(s,a) over actions."""
    skill: float = 1.5
    discount: float = 0.5


CASES = {
    "uneven coverage": Setting(),
    "even coverage": Setting(length=2),
    "ignorant behaviour": Setting(skill=0.0),
}
"""The setting, and what is left when the first or the third of its conditions is taken away."""


@dataclass(frozen=True)
class World:
    """One draw: true rewards r [S, A], logs, their visits [S, A] and mean rewards [S, A], and d^π [S]."""

    reward: Floats
    data: Dataset
    visits: Floats
    mean: Floats
    occupancy: Floats

    @property
    def share(self) -> Floats:
        """d^D [S]."""
        return self.visits.sum(1) / self.visits.sum()

    @property
    def ratio(self) -> Floats:
        """d^π/d^D [S]."""
        return self.occupancy / self.share

    @property
    def at_random(self) -> float:
        """Reward per step that uniformly random actions lose."""
        return float((self.occupancy * (self.reward.max(1) - self.reward.mean(1))).sum())

    def lost(self, values: Floats) -> float:
        """Reward per step that greedy actions by values [S, A] lose."""
        chosen = np.take_along_axis(self.reward, values.argmax(1)[:, None], 1)[:, 0]
        return float((self.occupancy * (self.reward.max(1) - chosen)).sum())


def make_world(setting: Setting, seed: int) -> World:
    """Draw a world and its logs; every state is visited at least once."""
    rng = np.random.default_rng([seed, 7])
    states, steps = setting.doors + setting.halls, (setting.episodes, setting.length + 1)
    reward = setting.spread * rng.normal(size=(states, setting.actions))
    preference = setting.skill * reward + 0.3 * rng.normal(size=reward.shape)
    behaviour = np.exp(preference) / np.exp(preference).sum(1, keepdims=True)
    state = setting.doors + rng.integers(setting.halls, size=steps)
    state[:, 0] = rng.integers(setting.doors, size=setting.episodes)
    state[: setting.doors, 0] = np.arange(setting.doors)
    here, there = state[:, :-1].ravel(), state[:, 1:].ravel()
    action = (behaviour[here].cumsum(1) < rng.uniform(size=(len(here), 1))).sum(1).clip(0, setting.actions - 1)
    paid = reward[here, action] + setting.noise * rng.normal(size=len(here))
    visits, total = np.zeros_like(reward), np.zeros_like(reward)
    np.add.at(visits, (here, action), 1.0)
    np.add.at(total, (here, action), paid)
    ends = np.arange(len(here)) % setting.length == setting.length - 1
    one_hot = np.eye(states, dtype=np.float32)
    data = Dataset(
        one_hot[here], action.astype(np.int32), paid, one_hot[there], np.zeros(len(here), bool), ends,
        name=f"uneven-{setting.length}-{seed}", num_actions=setting.actions,
    )  # fmt: skip
    first, later = (1.0 - setting.discount) / setting.doors, setting.discount / setting.halls
    occupancy = np.repeat([first, later], [setting.doors, setting.halls])
    return World(reward, data, visits, total / np.maximum(visits, 1.0), occupancy)
