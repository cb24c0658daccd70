"""CartPole solved offline from short logs of a mediocre policy: double DQN's family on vectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sapp
from sapp.algorithms import DiscreteCQL, MLPScores
from sapp.data import Dataset

gymnasium = pytest.importorskip("gymnasium")
COPIES = 20


def play(act, seed: int, steps: int) -> tuple[list[list[tuple]], np.ndarray]:
    """Steps of many copies side by side until each has ended once, and how long each lasted."""
    places = [gymnasium.make("CartPole-v1") for _ in range(COPIES)]
    seen = np.stack([place.reset(seed=seed + i)[0] for i, place in enumerate(places)])
    rows: list[list[tuple]] = [[] for _ in places]
    going = np.ones(COPIES, bool)
    for _ in range(steps):
        actions = act(seen)
        for i in np.flatnonzero(going):
            following, reward, terminal, cut, _ = places[i].step(int(actions[i]))
            rows[i].append((seen[i].copy(), int(actions[i]), float(reward), following, terminal, cut))
            seen[i], going[i] = following, not (terminal or cut)
        if not going.any():
            break
    return rows, np.array([len(row) for row in rows])


def logs(rounds: int) -> tuple[Dataset, float]:
    rng = np.random.default_rng(0)

    def mediocre(seen: np.ndarray) -> np.ndarray:
        """Pushes towards where the pole leans, four times in ten, else anywhere."""
        lean = (seen[:, 2] + 0.5 * seen[:, 3] > 0).astype(int)
        return np.where(rng.random(len(seen)) < 0.4, lean, rng.integers(2, size=len(seen)))

    rows, lengths = [], []
    for number in range(rounds):
        found, length = play(mediocre, 1000 * number, 500)
        rows += [step for episode in found for step in episode]
        lengths.append(length)
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    return Dataset(*columns, num_actions=2, name="cartpole"), float(np.mean(lengths))


@pytest.mark.usefixtures("long_training")
def test_cartpole_is_solved_from_mediocre_logs(tmp_path: Path) -> None:
    data, before = logs(8)
    assert before < 100
    algorithm = DiscreteCQL(alpha=2.0, lr=1e-3, target_every=40, network=MLPScores((64, 64)))
    run = sapp.train(
        algorithm, data, seeds=2, steps=4000, out=tmp_path / "run", eval_every=0, log_every=4000, progress=False,
        copy_data=False,
    )  # fmt: skip
    lengths = [play(lambda seen, i=i: run.predict(seen, i), 10**6, 500)[1].mean() for i in range(2)]
    assert np.mean(lengths) > 400
