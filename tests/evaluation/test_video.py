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
