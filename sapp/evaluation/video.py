"""Animated pictures of policies at work: one episode per member, as a GIF that any browser shows.

Hopper, halfcheetah and walker2d are drawn by MuJoCo, which needs OpenGL (without a display: EGL or OSMesa, chosen by
the variable MUJOCO_GL); the point task is drawn here; other Gymnasium environments draw themselves.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sapp.core.errors import SappError
from sapp.core.extras import require
from sapp.core.files import distinct, write_aside
from sapp.data.environment_names import typed_environment

if TYPE_CHECKING:
    from sapp.envs.gymnasium_batch import Source
    from sapp.runs.run import Run

FOLDER = "videos"
"""Where a run folder keeps them; the report shows what it finds there."""
FRAMES = 120
"""At most so many pictures per episode, evenly spread."""
WIDTH, HEIGHT = 320, 240

Picture = np.ndarray
"""[height, width, 3], whole numbers up to 255."""


def record(
    run: Run, members: Sequence[int | str] | None = None, *, seed: int = 0, environment: Source | None = None,
    physics: str | None = None, max_episode_steps: int | None = None,
) -> list[Path]:  # fmt: skip
    """Play one episode with each member's newest policy and write ``RUN/videos/MEMBER.gif``.

    Args:
        run: with at least one checkpoint.
        members: names or indices (default: all).
        seed: of the start state: that of the first episode of ``sapp evaluate`` with this seed.
        environment: in place of the one the data names.
        physics: in place of the one the data names.
    """
    if (place := run.path / FOLDER).is_symlink():
        raise SappError(f"{place}: is a link, and a run is written through none; put there what it leads to")
    _prefer_egl()
    from sapp.envs import fitted, make

    chosen = [run.member_index(member) for member in (range(len(run.members)) if members is None else members)]
    if isinstance(environment, str):
        environment = typed_environment(environment)
    names = distinct([re.sub(r"[^A-Za-z0-9.+=-]+", "_", str(member)) for member in run.members])
    written = []
    for index in chosen:
        problem = run.plan.problems[run.plan.members[index].dataset]
        source = environment if environment is not None else problem.environment
        if source is None:
            raise SappError(f"{run.path}: no environment is known for {problem.name}; name one: --environment ID")
        own = physics or (problem.physics if environment in (None, problem.environment) else None)
        env = make(
            source, physics=own, max_episode_steps=max_episode_steps, recorded=True, pictures=True,
            usual_steps=problem.play_limit,
        )  # fmt: skip
        env = fitted(env, problem.observation_size, problem.mask_at)
        with _painter(env) as draw:
            pictures = episode(env, partial(run.predict, member=index), draw, seed)
        if (run.path / FOLDER).is_symlink():
            raise SappError(f"{run.path / FOLDER}: is a link, and a run is written through none; remove it")
        path = run.path / FOLDER / f"{names[index]}.gif"
        save(pictures, path)
        written.append(path)
    return written


def episode(
    env: Any, act: Callable[[np.ndarray], np.ndarray], draw: Callable[[Any], Picture], seed: int = 0
) -> list[Picture]:
    """Pictures of one episode, its first and its last among them."""
    observation = np.asarray(env.reset(1, seed), np.float32)
    every = max(1, env.max_episode_steps // FRAMES)
    pictures = [draw(env)]
    for step in range(1, env.max_episode_steps + 1):
        observation, _, terminal = env.step(np.asarray(act(np.asarray(observation, np.float32))))
        over = bool(terminal[0]) or bool(env.truncated[0]) or step == env.max_episode_steps
        if over or step % every == 0:
            pictures.append(draw(env))
        if over:
            break
    return pictures


def save(pictures: Sequence[Picture], path: Path) -> None:
    """Write pictures as an animated GIF of about thirty per second that repeats."""
    Image = require("PIL.Image", "writing a video")
    images = [Image.fromarray(np.asarray(picture, np.uint8)).quantize(64) for picture in pictures]

    def write(temporary: Path) -> None:
        images[0].save(
            temporary, format="GIF", save_all=True, append_images=images[1:], duration=40, loop=0, optimize=True
        )

    write_aside(path, write)


def _prefer_egl() -> None:
    """Without a display, let MuJoCo draw by EGL unless told otherwise; it chooses when it is first imported."""
    if sys.platform == "linux" and "mujoco" not in sys.modules and not os.environ.get("DISPLAY"):
        os.environ.setdefault("MUJOCO_GL", "egl")


@contextlib.contextmanager
def _painter(env: Any) -> Iterator[Callable[[Any], Picture]]:
    from sapp.envs.gymnasium_batch import GymnasiumBatch
    from sapp.envs.locomotion import Locomotion
    from sapp.envs.point import Point

    if isinstance(env, Point):
        yield _point_painter()
    elif isinstance(env, Locomotion):
        renderer = _renderer(env)
        try:
            yield _mujoco_painter(env, renderer)
        finally:
            renderer.close()
    elif isinstance(env, GymnasiumBatch):
        yield lambda env: np.asarray(env.picture(), np.uint8)
    else:
        raise SappError(
            f"{env.name}: it cannot be drawn; hopper, halfcheetah, walker2d, point and Gymnasium's environments can"
        )


def _renderer(env: Any) -> Any:
    import mujoco

    try:
        return mujoco.Renderer(env.model, HEIGHT, WIDTH)
    except Exception as error:  # whatever the GL library at hand throws: each has errors of its own
        raise SappError(
            f"{env.name}: cannot draw on this machine ({type(error).__name__}: {error}); install EGL or OSMesa and "
            "set MUJOCO_GL to egl or osmesa"
        ) from None


def _mujoco_painter(env: Any, renderer: Any) -> Callable[[Any], Picture]:
    import mujoco

    data = mujoco.MjData(env.model)
    camera = mujoco.MjvCamera()
    camera.distance, camera.elevation, camera.azimuth = 4.0, -12.0, 90.0

    def draw(env: Any) -> Picture:
        data.qpos[:], data.qvel[:] = env.position[0], env.velocity[0]
        mujoco.mj_forward(env.model, data)
        camera.lookat[:] = data.body(1).xpos[0], 0.0, 0.7
        renderer.update_scene(data, camera)
        return np.array(renderer.render())

    return draw


def _point_painter() -> Callable[[Any], Picture]:
    Image, ImageDraw = (require(f"PIL.{name}", "drawing a video") for name in ("Image", "ImageDraw"))
    from sapp.envs.point import GOAL, PIT

    trail: list[tuple[float, float]] = []

    def at(position: np.ndarray) -> tuple[float, float]:
        return float((position[0] + 1) / 2 * HEIGHT), float((1 - position[1]) / 2 * HEIGHT)

    def disc(canvas: Any, centre: tuple[float, float], radius: float, fill: str) -> None:
        x, y = centre
        canvas.ellipse((x - radius, y - radius, x + radius, y + radius), fill=fill)

    def draw(env: Any) -> Picture:
        trail.append(at(env.position[0]))
        image = Image.new("RGB", (HEIGHT, HEIGHT), "#ffffff")
        canvas = ImageDraw.Draw(image)
        (left, bottom), (right, top) = at(PIT[0]), at(PIT[1])
        canvas.rectangle((left, top, right, bottom), fill="#444444")
        disc(canvas, at(GOAL), 9, "#8fd19e")
        if len(trail) > 1:
            canvas.line(trail, fill="#7aa6d8", width=2)
        disc(canvas, trail[-1], 5, "#0b62c4")
        return np.asarray(image)

    return draw
