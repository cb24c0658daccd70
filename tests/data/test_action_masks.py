"""Which actions were possible: read from logs of every kind, and kept to by learners, policies and exports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import sapp
from sapp.algorithms import DiscreteBC, DiscreteCQL, MLPScores
from sapp.collect.given_vectors import record
from sapp.core.errors import SappError
from sapp.data import Dataset, Ledger

EPISODES, STEPS = 40, 5
TAXI = "Taxi-v4" if "Taxi-v4" in gymnasium.registry else "Taxi-v3"


def logs() -> dict[str, np.ndarray]:
    """Of three actions the highest possible one pays most; which are possible is drawn anew in each step.

    The first action is always possible, the last never; the features are noise.
    """
    rng = np.random.default_rng(0)
    rows = EPISODES * STEPS
    mask = np.stack([np.ones(rows), rng.random(rows) < 0.5, np.zeros(rows)], 1)
    action = (mask * rng.random((rows, 3))).argmax(1)
    return {
        "observations": rng.normal(size=(rows, 2)), "actions": action, "rewards": action.astype(float),
        "terminals": np.arange(rows) % STEPS == STEPS - 1, "action_masks": mask,
    }  # fmt: skip


def trained(data: Any, folder: Path, steps: int = 300, **options: Any) -> sapp.Run:
    algorithm = DiscreteCQL(alpha=0.01, lr=3e-3, target_every=20, network=MLPScores((32,)))
    return sapp.train(algorithm, data, steps=steps, out=folder, eval_every=0, progress=False, **options)


def test_a_mask_becomes_part_of_the_observation() -> None:
    given = logs()
    data = sapp.load(given)
    assert (data.mask_at, data.num_actions, data.observation_size) == (2, 3, 5)
    np.testing.assert_array_equal(data.observation[:, 2:], given["action_masks"])
    inner = ~data.terminal
    np.testing.assert_array_equal(data.next_observation[inner], data.observation[1:][inner[:-1]])
    assert sapp.load(given | {"action_masks": np.ones_like(given["action_masks"])}).fingerprint != data.fingerprint


def test_tables_and_our_own_files_keep_the_mask(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    given = logs()
    frame = pandas.DataFrame({
        "obs_0": given["observations"][:, 0], "obs_1": given["observations"][:, 1], "action": given["actions"],
        "reward": given["rewards"], "terminal": given["terminals"],
    })  # fmt: skip
    wide = frame.assign(**{f"action_mask_{i}": given["action_masks"][:, i].astype(int) for i in range(3)})
    lists = frame.assign(legal_actions=given["action_masks"].astype(int).tolist())
    wide.to_csv(tmp_path / "logs.csv", index=False)
    wanted = sapp.load(given)
    for source in (wide, lists, tmp_path / "logs.csv"):
        data = sapp.load(source)
        assert (data.mask_at, data.num_actions) == (2, 3)
        np.testing.assert_array_equal(data.observation[:, 2:], wanted.observation[:, 2:])
    again = sapp.load(sapp.save_npz(wanted, tmp_path / "logs.npz"))
    assert (again.mask_at, again.fingerprint) == (2, wanted.fingerprint)
    mapped = sapp.load(wide.assign(obs_0=1e4 * wide.obs_0), columns={
        "observation": ["obs_0", "obs_1"], "action": "action", "reward": "reward", "terminal": "terminal",
        "action_mask": [f"action_mask_{i}" for i in range(3)],
    })  # fmt: skip
    assert mapped.observation_scale is not None  # features are standardised, the mask is not
    np.testing.assert_array_equal(mapped.observation[:, 2:], wanted.observation[:, 2:])


def test_the_mask_after_a_step_is_the_next_row_s_or_the_logged_one() -> None:
    given = logs()
    after = np.roll(given["observations"], -1, 0)
    given |= {"next_observations": after, "timeouts": given.pop("terminals"), "terminals": np.zeros(len(after), bool)}
    data = sapp.load(given)
    inner = ~data.timeout
    np.testing.assert_array_equal(data.next_observation[inner, 2:], data.observation[1:][inner[:-1], 2:])
    assert (data.next_observation[data.timeout, 2:] == 1).all()
    assert "what is possible after the 40 time-outs is not known" in str(data.provenance["ledger"])
    told = sapp.load(given | {"next_action_masks": np.tile([1.0, 0, 0], (len(after), 1))})
    assert (told.next_observation[:, 2:] == [1, 0, 0]).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"actions": np.full(200, 2)}, r"action 2 at row 0 is not possible by its action_mask \(200 such rows\)"),
        ({"action_masks": np.full((200, 3), 0.5)}, "action_mask is 0.5 at row 0, action 0; it must be 0 or 1"),
        ({"actions": np.arange(200) % 3, "action_masks": np.ones((200, 2))}, "action_mask has 2 values for 3 actions"),
    ],
)
def test_masks_that_cannot_be_right_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(SappError, match=message):
        sapp.load(logs() | change)


@pytest.mark.parametrize(
    "change",
    [
        {"actions": np.random.default_rng(0).uniform(-1, 1, (200, 1))},  # vectors
        {"action_masks": np.full(200, 2)},  # how many were possible, perhaps
        {"action_masks": np.full(200, "0,1")},
    ],
)
def test_what_only_sounds_like_a_mask_is_left_out_with_a_warning(change: dict[str, Any]) -> None:
    given = logs() | change
    data = sapp.load(given)
    assert (data.mask_at, data.observation_size) == (None, 2)
    assert "action_masks (looks like action_mask, but is not mapped to it)" in " ".join(Ledger.of(data).text())
    with pytest.raises(SappError, match="action_mask"):
        sapp.load(given, columns={"action_mask": "action_masks"})


def test_words_for_actions_need_their_order() -> None:
    given = logs()
    named = given | {"actions": np.asarray(["wait", "go", "never"])[given["actions"]]}
    with pytest.raises(SappError, match="say which is which, by action_labels"):
        sapp.load(named)
    data = sapp.load(named, columns={"action_labels": ["wait", "go", "never"]})
    assert data.action_labels == ("wait", "go", "never")
    np.testing.assert_array_equal(data.action, given["actions"])


@pytest.mark.usefixtures("long_training")
@pytest.mark.parametrize("name", ["discrete-cql", "discrete-bc", "dqn", "qr-dqn", "rem"])
def test_no_learner_plays_or_values_what_is_impossible(name: str, tmp_path: Path) -> None:
    given = logs()
    data = sapp.load(given)
    network = MLPScores((16,))
    algorithm = {"discrete-cql": DiscreteCQL, "discrete-bc": DiscreteBC}.get(name)
    chosen = algorithm(network=network) if algorithm else _with_network(sapp.preset(name), network)
    run = sapp.train(chosen, data, steps=60, out=tmp_path / "run", eval_every=0, log_every=20, progress=False)
    logged = [row[key] for row in run.metrics() for key in row if key.startswith("critic/") and row[key]]
    assert all(abs(float(value)) < 1e3 for value in logged)
    seen = np.random.default_rng(1).normal(size=(300, 2))
    mask = np.random.default_rng(2).random((300, 3)) < 0.4
    mask[~mask.any(1), 0] = True
    played = run.predict(seen, action_mask=mask)
    assert mask[np.arange(300), played].all()
    np.testing.assert_array_equal(played, run.predict(np.concatenate([seen, mask], 1)))
    if name != "discrete-bc":
        assert run.predict_value(seen[0], 2, action_mask=[1, 1, 0]) == pytest.approx(-1e9, rel=1e-5)
        assert abs(run.predict_value(seen[0], 2, action_mask=[1, 1, 1])) < 1e3


def _with_network(algorithm: Any, network: Any) -> Any:
    import equinox as eqx

    return eqx.tree_at(lambda each: each.network, algorithm, network, is_leaf=lambda leaf: leaf is algorithm.network)


@pytest.mark.usefixtures("long_training")
def test_values_bootstrap_over_possible_actions_only(tmp_path: Path) -> None:
    """Action 2 never occurs: without the mask its value is made up; with it V(s') is that of 0 or 1."""
    run = trained(logs(), tmp_path / "run", steps=600, seeds=1)
    seen = np.zeros(2)
    assert run.predict(seen, action_mask=[1, 1, 0]) == 1
    assert run.predict(seen, action_mask=[1, 0, 0]) == 0
    with pytest.raises(SappError, match="3 of them say which actions are possible: give action_mask"):
        run.predict(seen)
    with pytest.raises(SappError, match="action_mask has shape"):
        run.predict(seen, action_mask=[1, 0])


@pytest.mark.usefixtures("long_training")
def test_an_exported_policy_keeps_to_the_mask(tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    from sapp.export import export_policy

    run = trained(logs(), tmp_path / "run", steps=50)
    card = export_policy(run, tmp_path / "policy.onnx")
    assert "0 or 1 for each action" in (tmp_path / "policy.md").read_text()
    assert card["input"]["mask_at"] == 2
    session = onnxruntime.InferenceSession(tmp_path / "policy.onnx")
    seen = np.random.default_rng(1).normal(size=(50, 2)).astype(np.float32)
    for action in range(3):
        full = np.concatenate([seen, np.tile(np.eye(3, dtype=np.float32)[action], (50, 1))], 1)
        assert (session.run(None, {"observation": full})[0] == action).all()


class Doors(gymnasium.Env):
    """Three doors, some open: going through an open one pays its number, running into a shut one ends all."""

    observation_space = spaces.Dict({
        "action_mask": spaces.MultiBinary(3), "place": spaces.Box(-1, 1, (2,), np.float32),
    })  # fmt: skip
    action_space = spaces.Discrete(3)

    def _seen(self) -> dict[str, Any]:
        self.open = np.append(1, self.np_random.integers(2, size=2)).astype(np.int8)
        return {"action_mask": self.open, "place": np.zeros(2, np.float32)}

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self.time = 0
        return self._seen(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict]:
        self.time += 1
        shut = not self.open[action]
        return self._seen(), -100.0 if shut else float(action), shut or self.time == 6, False, {}


@pytest.mark.usefixtures("long_training")
def test_a_mask_in_dict_observations_is_found_kept_and_played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = record(Doors, steps=600, max_episode_steps=10)
    assert (data.mask_at, data.observation_size) == (0, 5)
    assert data.reward.min() >= 0  # a uniform policy, too, goes through open doors only
    run = trained(data, tmp_path / "run", steps=300)
    (found,) = run.evaluate(Doors, episodes=10, max_episode_steps=10)
    assert found.returns.min() >= 0
    pytest.importorskip("minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    sapp.save_minari(data, "doors/uniform-v0")
    assert sapp.load("minari:doors/uniform-v0").mask_at == 0


def test_a_policy_that_ignores_the_mask_leaves_it_a_feature() -> None:
    data = record(Doors, lambda seen: np.full(len(seen), 2), steps=60, max_episode_steps=10)
    assert (data.mask_at, data.observation_size) == (None, 5)


@pytest.mark.usefixtures("long_training")
def test_the_mask_that_an_environment_tells_besides_is_appended(tmp_path: Path) -> None:
    data = record(TAXI, steps=800, action_masks=True)
    assert (data.mask_at, data.observation_size, data.num_actions) == (500, 506, 6)
    assert data.reward.min() == -1  # moves into walls are ruled out, as are wrong pick-ups, which cost 10
    run = trained(data, tmp_path / "run", steps=30)
    (found,) = run.evaluate(episodes=2)
    assert found.returns.min() >= -200  # no step costs 10
    with pytest.raises(SappError, match="does not say which actions are possible"):
        record("CartPole-v1", steps=10, action_masks=True)


def test_datasets_check_their_mask() -> None:
    data = sapp.load(logs())
    fields = {key: getattr(data, key) for key in ("observation", "action", "reward", "next_observation")}
    for at in (3, -1):
        with pytest.raises(SappError, match="hold no mask there"):
            Dataset(**fields, terminal=data.terminal, timeout=data.timeout, num_actions=3, mask_at=at)
    assert data.take_episodes(3).mask_at == 2
