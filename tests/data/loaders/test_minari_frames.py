from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import sapp
from sapp.core.errors import SappError
from sapp.data.frames import FrameDataset
from sapp.data.ledger import Ledger
from sapp.data.loaders.minari_frames import _shape, load_images

minari = pytest.importorskip("minari", reason="minari is an extra")
import gymnasium  # noqa: E402
from gymnasium import spaces  # noqa: E402
from gymnasium.envs.registration import EnvSpec  # noqa: E402
from minari.data_collector import EpisodeBuffer  # noqa: E402

# Minari wants authors, descriptions and the like of whoever creates a dataset.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:minari")

ACTIONS = spaces.Discrete(3)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))


def create(identity, images, space, actions=ACTIONS):
    """Two episodes: three steps to a terminal, two steps to a truncation."""

    class Game(gymnasium.Env):
        spec = EnvSpec(id="ALE/Pong-v5", entry_point="test_minari_frames:Game")
        observation_space = space
        action_space = actions

    low = int(getattr(actions, "start", 0))
    made = []
    for number, (shown, ended) in enumerate(zip(images, (True, False), strict=True)):
        steps = len(shown) - 1
        last = np.arange(steps) == steps - 1
        made.append(
            EpisodeBuffer(
                id=number, seed=None, options=None, infos={}, observations=shown,
                actions=np.arange(steps) % 3 + low if isinstance(actions, spaces.Discrete) else np.zeros((steps, 1)),
                rewards=np.arange(steps) - 1.0, terminations=last & ended, truncations=last & (not ended),
            )
        )  # fmt: skip
    minari.create_dataset_from_buffers(
        dataset_id=identity, buffer=made, eval_env=None, env=Game(), observation_space=space, action_space=actions
    )


def shown(shape, steps, level):
    """Flat pictures, which JPEG keeps almost as they are: step t is level + 20 t."""
    return np.stack([np.full(shape, level + 20 * t, np.uint8) for t in range(steps + 1)])


@pytest.mark.parametrize("shape", [(16, 16), (16, 16, 1), (1, 16, 16)])
def test_single_frames(shape):
    create("game/single-v0", [shown(shape, 3, 10), shown(shape, 2, 100)], spaces.Box(0, 255, shape, np.uint8))
    data = sapp.load("minari:game/single-v0")
    assert isinstance(data, FrameDataset)
    # Three rows to the terminal; two rows, and the successor of the truncation as a row that is not drawn.
    levels = np.array([10, 30, 50, 100, 120, 140])
    assert data.frames.shape == (6, 16, 16)
    np.testing.assert_allclose(data.frames[:, 8, 8], levels, atol=2)
    assert data.action.tolist() == [0, 1, 2, 0, 1, 0]
    assert data.reward.tolist() == [-1, 0, 1, -1, 0, 0]
    assert data.terminal.tolist() == [False, False, True, False, False, False]
    assert data.timeout.tolist() == [False] * 5 + [True]
    assert data.sampled_rows.tolist() == [0, 1, 2, 3, 4]
    assert (data.stack, data.num_actions, data.environment) == (4, 3, "ALE/Pong-v5")
    assert data.provenance["successors_kept_as_rows"] == 1
    ledger = Ledger.of(data)  # seven pictures: the one after the terminal is of no use
    assert (ledger.rows, ledger.dropped) == (7, 1)
    assert [each.use for each in ledger.used][:3] == ["frames", "action", "reward"]
    assert [each.rows for each in ledger.entries] == [1, 1]


def test_stacks_keep_the_newest_frame_and_actions_count_from_zero():
    frames = [shown((16, 16), 3, 10), shown((16, 16), 2, 100)]
    stacks = []
    for each in frames:
        padded = np.concatenate([np.repeat(each[:1], 2, 0), each])
        stacks.append(np.stack([padded[t : t + 3] for t in range(len(each))]))
    actions = spaces.Discrete(3, start=1)
    create("game/stacks-v0", stacks, spaces.Box(0, 255, (3, 16, 16), np.uint8), actions)
    data = sapp.load("game/stacks-v0", name="mine")
    np.testing.assert_allclose(data.frames[:, 8, 8], [10, 30, 50, 100, 120, 140], atol=2)
    assert data.stack == 3
    assert data.name == "mine"
    assert data.action.tolist() == [0, 1, 2, 0, 1, 0]
    np.testing.assert_allclose(data.stacks([1])[0, :, 8, 8], [0, 10, 30], atol=2)


def test_what_cannot_be_read_is_named():
    create("game/colour-v0", [shown((16, 16, 3), 3, 10), shown((16, 16, 3), 2, 10)],
           spaces.Box(0, 255, (16, 16, 3), np.uint8))  # fmt: skip
    with pytest.raises(SappError, match=r"observations are \(16, 16, 3\); give grey frames"):
        sapp.load("minari:game/colour-v0")
    create("game/box-v0", [shown((16, 16), 3, 10), shown((16, 16), 2, 10)], spaces.Box(0, 255, (16, 16), np.uint8),
           spaces.Box(-1, 1, (1,)))  # fmt: skip
    with pytest.raises(SappError, match="image data needs discrete ones"):
        sapp.load("minari:game/box-v0")
    with pytest.raises(SappError, match="action_low does not apply"):
        sapp.load("minari:game/box-v0", action_low=0)


@pytest.mark.parametrize(
    ("shape", "read"),
    [
        ((5, 7), (1, 5, 7)), ((5, 7, 1), (1, 5, 7)), ((1, 5, 7), (1, 5, 7)), ((2, 5, 4), (2, 5, 4)),
        ((16, 5, 7), (16, 5, 7)), ((2, 5, 3), None), ((17, 5, 7), None),
    ],
)  # fmt: skip
def test_what_shapes_are_stacks(shape: tuple[int, ...], read: tuple[int, int, int] | None) -> None:
    """Three in the last place are colours, more than 16 in the first a height."""
    if read is None:
        with pytest.raises(SappError, match="give grey frames"):
            _shape(shape, "x")
    else:
        assert _shape(shape, "x") == read


@pytest.mark.parametrize(("taken", "fits"), [([1, 3], True), ([0, 2], False), ([2, 4], False)])
def test_actions_outside_their_space_are_refused(taken: list[int], fits: bool) -> None:
    episode = SimpleNamespace(
        rewards=np.zeros(2), observations=np.zeros((3, 4, 5), np.uint8), terminations=np.array([False, True]),
        actions=np.array(taken),
    )  # fmt: skip
    stored = SimpleNamespace(
        action_space=spaces.Discrete(3, start=1), observation_space=spaces.Box(0, 255, (4, 5), np.uint8), total_steps=2,
        total_episodes=1, spec=None, iterate_episodes=lambda: [episode],
    )  # fmt: skip
    if fits:
        assert load_images(stored, "x", {}).action.tolist() == [0, 2]
    else:
        with pytest.raises(SappError, match="x: an action of episode 0 is not in Discrete"):
            load_images(stored, "x", {})
