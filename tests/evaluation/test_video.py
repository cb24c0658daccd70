"""Animated pictures of policies."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sapp.cli.main import main
from sapp.core.errors import SappError
from sapp.envs.point import Point
from sapp.evaluation.video import _painter, episode, save


def test_the_command_writes_a_video_that_the_report_shows(trained: Path, tmp_path: Path, capsys) -> None:
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    assert main(["evaluate", str(run), "--episodes", "2", "--video"]) == 0
    (video,) = (run / "videos").glob("*.gif")
    assert f"Video: {video}" in capsys.readouterr().err
    with Image.open(video) as opened:
        assert opened.n_frames >= 2
        assert opened.size == (240, 240)
    assert main(["report", str(run), "--out", str(tmp_path / "report.html")]) == 0
    assert "data:image/gif;base64," in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_the_point_moves_where_it_is_told() -> None:
    place = Point()
    with _painter(place) as draw:
        pictures = episode(place, lambda _: np.array([[1.0, 0.0]]), draw)
    blue = [np.argwhere((np.abs(p.astype(int) - (11, 98, 196)) < 3).all(-1)).mean(0) for p in pictures]
    assert len(pictures) > 3
    assert all(later[1] > earlier[1] for earlier, later in itertools.pairwise(blue[:6]))


def test_mujoco_draws_hopper_or_says_what_is_missing(tmp_path: Path) -> None:
    from sapp.envs import make

    place = make("hopper")
    try:
        with _painter(place) as draw:
            pictures = episode(place, lambda _: np.zeros((1, 3)), draw)
    except SappError as error:
        pytest.skip(str(error))
    assert pictures[0].shape == (240, 320, 3)
    assert pictures[0].std() > 10
    save(pictures, tmp_path / "hopper.gif")
    with Image.open(tmp_path / "hopper.gif") as opened:
        assert opened.n_frames > 2


def test_what_cannot_be_drawn_is_named() -> None:
    class Unknown:
        name = "moonlander"

    with pytest.raises(SappError, match="moonlander: it cannot be drawn"), _painter(Unknown()):
        pass


def test_gymnasium_environments_draw_themselves() -> None:
    pytest.importorskip("pygame")
    from sapp.envs import make

    env = make("CartPole-v1", pictures=True)
    with _painter(env) as draw:
        pictures = episode(env, lambda seen: (seen[:, 2] > 0).astype(int), draw)
    assert pictures[0].shape == (400, 600, 3)
    assert (pictures[0] != pictures[-1]).any()
    quiet = make("CartPole-v1")
    quiet.reset(1, 0)
    with _painter(quiet) as draw, pytest.raises(SappError, match="render_mode='rgb_array'"):
        draw(quiet)


class Counted:
    """An environment whose state is the number of its steps."""

    def __init__(self, limit: int, ends: int = 10_000, cut: int = 10_000) -> None:
        self.max_episode_steps, self.ends, self.cut, self.step_number = limit, ends, cut, 0

    def reset(self, count: int, seed: int) -> np.ndarray:
        assert count == 1
        self.step_number = seed
        return np.full((1, 1), self.step_number)

    def step(self, action: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        self.step_number += 1
        assert action == self.step_number  # decided on what was seen before it
        return np.full((1, 1), self.step_number), np.zeros(1), np.array([self.step_number == self.ends])

    @property
    def truncated(self) -> np.ndarray:
        return np.array([self.step_number == self.cut])


@pytest.mark.parametrize(
    ("env", "shown"),
    [
        (Counted(5), [0, 1, 2, 3, 4, 5]),
        (Counted(240), [*range(0, 241, 2)]),
        (Counted(365), [*range(0, 365, 3), 365]),
        (Counted(360, ends=7), [0, 3, 6, 7]),
        (Counted(360, cut=8), [0, 3, 6, 8]),
        (Counted(360, ends=6), [0, 3, 6]),
    ],
)
def test_pictures_are_spread_evenly_from_the_first_state_to_the_last(env: Counted, shown: list[int]) -> None:
    assert episode(env, lambda seen: seen + 1, lambda own: own.step_number) == shown


def test_an_episode_begins_where_its_seed_says() -> None:
    assert episode(Counted(2), lambda seen: seen + 1, lambda own: own.step_number, seed=3) == [3, 4, 5]
