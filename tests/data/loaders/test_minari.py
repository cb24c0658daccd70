from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import sapp
from sapp.core.errors import SappError
from sapp.data import Dataset, Ledger, load
from sapp.data.load import load as load_again
from sapp.data.loaders.minari import _densities, _masks, environment_of
from sapp.runs.problem import Problem

minari = pytest.importorskip("minari", reason="minari is an extra")
import gymnasium  # noqa: E402
from gymnasium import spaces  # noqa: E402
from gymnasium.envs.registration import EnvSpec  # noqa: E402
from minari.data_collector import EpisodeBuffer  # noqa: E402

# Minari wants authors, descriptions and the like of whoever creates a dataset.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:minari")

WIDE = spaces.Box(-np.inf, np.inf, (2,), np.float64)
BOUNDS = spaces.Box(np.array([-2, -1, 0], np.float32), np.array([2, 1, 1], np.float32))


class Small(gymnasium.Env):
    """Never stepped: Minari only asks what it is called."""

    spec = EnvSpec(id="Small-v0", entry_point="test_minari:Small")
    observation_space = WIDE
    action_space = BOUNDS


def no_network() -> None:
    raise OSError("no route to host")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    monkeypatch.setattr("sapp.data.loaders.minari._reach_the_hub", no_network)
    return tmp_path / "minari"


def create(identity: str, episodes: list[dict[str, Any]], **options: Any) -> None:
    buffers = [EpisodeBuffer(id=i, seed=None, options=None, **{"infos": {}} | each) for i, each in enumerate(episodes)]
    minari.create_dataset_from_buffers(
        dataset_id=identity,
        buffer=buffers,
        eval_env=None,
        **{"env": Small(), "observation_space": WIDE, "action_space": BOUNDS} | options,
    )


def rows_of(data: Dataset) -> list[slice]:
    return [slice(start, end + 1) for start, end in zip(data.episode_starts, data.episode_ends, strict=True)]


def episodes_of(data: Dataset) -> list[dict[str, Any]]:
    found = []
    for rows in rows_of(data):
        last = data.next_observation[rows.stop - 1 : rows.stop]
        path = np.concatenate([data.observation[rows], last]).astype(np.float64)
        found.append(
            {
                "observations": path,
                # The fixture's actions lie in [-1, 1]; the space's third dimension starts at 0.
                "actions": np.abs(data.action[rows]),
                "rewards": data.reward[rows].astype(np.float64),
                "terminations": data.terminal[rows],
                "truncations": data.timeout[rows],
            }
        )
    return found


def test_d4rls_data_is_the_same_in_minari(d4rl_file: Path) -> None:
    """Episodes are chains here: what a successor is, the next observation says; the recorded ones agree to rounding."""
    data = load(d4rl_file)
    wide = spaces.Box(-np.inf, np.inf, (data.observation_size,), np.float64)
    bounds = spaces.Box(-1, 1, (data.action_size,), np.float32)
    pairs = zip(episodes_of(data), rows_of(data), strict=True)
    episodes = [each | {"actions": data.action[rows]} for each, rows in pairs]
    create("d4rl/copy-v0", episodes, observation_space=wide, action_space=bounds)
    found = load("d4rl/copy-v0")
    for key in ("observation", "action", "reward", "terminal", "timeout"):
        np.testing.assert_array_equal(getattr(found, key), getattr(data, key), err_msg=key)
    np.testing.assert_allclose(found.next_observation, data.next_observation, atol=1e-5)


@pytest.mark.parametrize("prefix", ["", "minari:"])
@pytest.mark.parametrize("identity", ["toy/small/medium-v0", "small-v3"])
def test_created_dataset_comes_back(small: Dataset, identity: str, prefix: str) -> None:
    create(identity, episodes_of(small))
    data = load(prefix + identity)
    for key in ("observation", "next_observation", "reward", "terminal", "timeout"):
        np.testing.assert_array_equal(getattr(data, key), getattr(small, key))
    np.testing.assert_array_equal(data.action, np.abs(small.action))
    assert data.action_low.tolist() == [-2, -1, 0]
    assert data.action_high.tolist() == [2, 1, 1]
    assert (data.name, data.environment, data.physics) == (identity, "Small-v0", None)


def test_episode_cut_short_ends_in_a_timeout(small: Dataset) -> None:
    episodes = episodes_of(small)
    episodes[0]["terminations"] = np.zeros(3, bool)
    create("toy/cut-v0", episodes)
    assert load("toy/cut-v0").timeout.tolist() == [False, False, True, False, True, False]


def test_the_ledger_has_every_array_and_step(small: Dataset) -> None:
    episodes = episodes_of(small)
    episodes[0]["terminations"] = np.zeros(3, bool)
    create("toy/told-v0", episodes)
    data = load("toy/told-v0")
    ledger = Ledger.of(data)
    assert (ledger.rows, ledger.dropped, data.size) == (6, 0, 6)
    used = {each.name: each.use for each in ledger.used}
    assert used["observations"] == f"observation 0 to {small.observation_size - 1}"
    assert set(used) == {"observations", "actions", "rewards", "terminations", "truncations"}
    assert "1 episodes end in neither a termination nor a truncation: they are time-outs" in ledger.lines()


def test_dictionary_observations_are_flattened(small: Dataset) -> None:
    space = spaces.Dict({"goal": spaces.Box(-9, 9, (1,), np.float64), "position": WIDE})
    episodes = episodes_of(small)
    for each in episodes:
        position = each["observations"]
        each["observations"] = {"goal": position[:, :1] * 0 + 7, "position": position}
    create("toy/dict-v0", episodes, observation_space=space)
    data = load("toy/dict-v0")
    assert (data.observation[:, 0] == 7).all()
    assert any(line.startswith("observations are Dict(") for line in Ledger.of(data).lines())
    np.testing.assert_array_equal(data.observation[:, 1:], small.observation)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"action_space": spaces.Box(-np.inf, np.inf, (3,))}, ["action_low", "finite"]),
        ({"action_space": spaces.MultiBinary(20)}, ["MultiBinary", "combinations"]),
    ],
)
def test_spaces_that_do_not_fit(small: Dataset, options: dict[str, Any], words: list[str]) -> None:
    episodes = episodes_of(small)
    for each in episodes:
        if isinstance(options["action_space"], spaces.MultiBinary):
            each["actions"] = np.zeros((len(each["rewards"]), 20), np.int8)
    create("toy/odd-v0", episodes, **options)
    with pytest.raises(SappError) as caught:
        load("toy/odd-v0")
    message = str(caught.value)
    assert "\n" not in message
    for word in ["toy/odd-v0", *words]:
        assert word in message
    if "finite" in words:
        assert load("toy/odd-v0", action_low=-1, action_high=1).size == 6


def test_discrete_actions_and_observations(small: Dataset) -> None:
    seen = spaces.Dict({"cell": spaces.Discrete(4, start=1), "position": WIDE})
    episodes, number = episodes_of(small), 0
    for each in episodes:
        count = len(each["rewards"])
        each["actions"] = np.stack([[1 + (number + i) % 3, i % 2] for i in range(count)])
        cells = np.array([1 + i % 4 for i in range(count + 1)])
        each["observations"] = {"cell": cells, "position": each["observations"]}
        number += count
    create("toy/keys-v0", episodes, action_space=spaces.MultiDiscrete([3, 2], start=[1, 0]), observation_space=seen)
    data = load("toy/keys-v0")
    assert (data.num_actions, data.observation_size) == (6, 6)
    assert data.action_labels == ("(1, 0)", "(1, 1)", "(2, 0)", "(2, 1)", "(3, 0)", "(3, 1)")
    assert data.action[:2].tolist() == [0, 3]
    assert data.observation[:2, :4].tolist() == [[1, 0, 0, 0], [0, 1, 0, 0]]
    np.testing.assert_array_equal(data.observation[:, 4:], small.observation)


def test_reference_scores_come_along(small: Dataset, tmp_path: Path) -> None:
    create("toy/scored-v0", episodes_of(small), ref_min_score=-5.0, ref_max_score=15.0)
    data = load("toy/scored-v0")
    assert data.provenance["reference_scores"] == [-5.0, 15.0]
    problem = Problem.of(load(sapp.save_npz(data, tmp_path / "copy.npz")), None)
    found = problem.scores(np.array([-5.0, 5.0, 20.0]))
    assert found is not None
    assert found.tolist() == [0, 50, 125]


def test_a_dataset_by_its_folder(small: Dataset, folder: Path, tmp_path: Path) -> None:
    create("toy/small-v0", episodes_of(small))
    (folder / "toy" / "small-v0").rename(tmp_path / "moved")
    data = load(tmp_path / "moved")
    assert (data.size, data.name) == (small.size, "moved")


@pytest.mark.parametrize("change", [{"kwargs": {"g": 3}}, {"additional_wrappers": ("some wrapper",)}])
def test_an_environment_with_other_options_is_not_taken_for_the_registered_one(change: dict[str, Any]) -> None:
    notes: dict[str, Any] = {}
    spec = EnvSpec("Pendulum-v1", **change)
    assert environment_of(None, spec, notes) == {}
    assert notes == {"environment_with_options": "Pendulum-v1"}
    assert environment_of(None, EnvSpec("Pendulum-v1"), {}) == {"environment": "Pendulum-v1"}
    assert environment_of(None, EnvSpec("Unheard-v1"), {}) == {"environment": "Unheard-v1"}


def test_downloaded_where_there_is_a_network(small: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    episodes = episodes_of(small)
    monkeypatch.setattr("sapp.data.loaders.minari._reach_the_hub", lambda: None)
    monkeypatch.setattr(minari, "download_dataset", lambda identity: create(identity, episodes))
    assert load("minari:toy/far-v0").size == small.size


def test_unknown_id(small: Dataset, folder: Path) -> None:
    with pytest.raises(SappError, match=r"toy/small-v0: no such .*there are none.*no route to host.*minari download"):
        load("toy/small-v0")
    create("toy/small-v0", episodes_of(small))
    with pytest.raises(SappError, match=r"toy/smal-v0.*did you mean 'toy/small-v0'\?.*minari download toy/smal-v0"):
        load("minari:toy/smal-v0")


def test_damaged_dataset(small: Dataset, folder: Path) -> None:
    create("toy/small-v0", episodes_of(small))
    for path in (folder / "toy" / "small-v0" / "data").glob("*.hdf5"):
        path.write_bytes(b"broken")
    with pytest.raises(SappError, match=r"toy/small-v0: Minari cannot read it"):
        load("toy/small-v0")


def test_without_minari(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "minari", None)
    with pytest.raises(SappError, match=r"pip install 'sapp-rl\[minari\]'"):
        load_again("minari:toy/small-v0")


@pytest.mark.parametrize("kept", [True, False])
def test_masks_that_were_recorded_beside_the_steps_are_read(kept: bool) -> None:
    """As Gymnasium's Taxi tells them, from ``reset`` on: one more than steps."""
    rng = np.random.default_rng(0)
    mask = np.stack([np.ones(5), rng.integers(2, size=5), np.zeros(5)], 1).astype(np.int8)
    mask[0, 1] = 1
    actions = np.where(mask[:4, 1] == 1, 1, 0) if kept else np.full(4, 2)
    episode = {
        "observations": rng.normal(size=(5, 2)), "actions": actions, "rewards": np.ones(4),
        "terminations": np.arange(4) == 3, "truncations": np.zeros(4, bool), "infos": {"action_mask": mask},
    }  # fmt: skip
    create("toy/masked-v0", [episode], action_space=spaces.Discrete(3))
    data = load("minari:toy/masked-v0")
    if not kept:  # logs that do what their masks forbid: the masks say nothing
        assert (data.mask_at, data.observation_size) == (None, 2)
        return
    assert (data.mask_at, data.observation_size) == (2, 5)
    np.testing.assert_array_equal(data.observation[:, 2:], mask[:4])
    np.testing.assert_array_equal(data.next_observation[:, 2:], mask[1:])
    assert "infos/action_mask as action_mask (which actions were possible)" in str(Ledger.of(data).text())


def test_masks_and_densities_of_some_episodes_only_are_not_used() -> None:
    stored = SimpleNamespace(storage=SimpleNamespace(metadata={}), observation_space=WIDE)
    mask, taken = np.array([[1, 1], [0, 1], [1, 0], [1, 1]]), np.array([0, 1, 0] * 2)
    told = {"action_mask": mask, "log_prob": np.array([-1.0, -2.0, -3.0])}

    def episodes(*infos: Any) -> list[SimpleNamespace]:
        return [SimpleNamespace(rewards=np.zeros(3), infos=each) for each in infos]

    def masks(*infos: Any, count: int | None = 2) -> dict[str, Any]:
        return _masks(stored, episodes(*infos), np.zeros((6, 2)), taken, count)

    both = masks(told, told)
    np.testing.assert_array_equal(both["action_mask"], np.tile(mask[:-1], (2, 1)))
    np.testing.assert_array_equal(both["next_action_mask"], np.tile(mask[1:], (2, 1)))
    np.testing.assert_array_equal(_densities(episodes(told, told))["log_prob"], [-1, -2, -3] * 2)
    short = {"action_mask": mask[:-1], "log_prob": np.array([-1.0, -2.0])}
    whole = {"action_mask": mask[:, :1], "log_prob": np.array([-1, -2, -3])}
    for other in ({}, None, short, whole):
        for infos in ((told, other), (other, told)):
            assert masks(*infos) == {}
            assert _densities(episodes(*infos)) == {}
    assert masks(told, told, count=None) == {}
