"""What tests share: how programs are compiled, tiny data, and one tiny trained run per process."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import time
import types
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import compiling
import d4rl_files
import pytest

from sapp.core.registry import Registry

# Before JAX is imported, and for the processes that tests start, too; flags that are set already stay.
os.environ.setdefault("XLA_FLAGS", compiling.FLAGS)

LONGEST = (
    "test_kill.py", "test_baselines.py", "test_experiment.py", "test_own_logs.py", "test_population.py",
    "test_occupancy.py", "test_occupancy_population.py", "test_frame_training.py", "test_train.py", "test_program.py",
    "test_driver.py",
)  # fmt: skip
"""The files that take longest: they begin first, so that no process waits for one of them at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    place = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.name, len(LONGEST)))


MAPS = Path("/proc/self/maps")
MANY_MAPS = 20_000
"""A process may have 65,530 memory maps (Linux's default), and a compiled program keeps up to some hundreds of them:
where none is left, the compiler ends the process."""
BEGAN = pytest.StashKey[float]()


def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[BEGAN] = time.monotonic()


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Compiled programs go once they are many; asked at the end of a file and after a test of some length."""
    long = time.monotonic() - item.stash[BEGAN] > 2.0
    asked = MAPS.exists() and (long or nextitem is None or nextitem.path != item.path)
    if asked and MAPS.read_bytes().count(b"\n") > MANY_MAPS:
        import jax

        jax.clear_caches()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Why tests were skipped, a line per reason."""
    reasons = [str(report.longrepr[-1]) for report in terminalreporter.stats.get("skipped", [])]
    for reason, count in Counter(each.removeprefix("Skipped: ") for each in reasons).items():
        terminalreporter.write_line(f"{count} test{'s' * (count > 1)} skipped: {reason}")


@pytest.fixture(scope="session")
def genuine() -> Path:
    """The folder of the genuine samples (D4RL's, its policies, DOPE's), for what nothing else can show."""
    if not d4rl_files.SAMPLES.is_dir():
        pytest.skip(d4rl_files.ABSENT)
    return d4rl_files.SAMPLES


BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """The system's Chromium, without a network."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright, of the dev extra")
    path = os.environ.get("SAPP_BROWSER") or next((found for name in BROWSERS if (found := shutil.which(name))), None)
    flags = ["--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
    with playwright.sync_playwright() as started:
        try:
            opened = started.chromium.launch(executable_path=path, args=flags)
        except playwright.Error:
            pytest.skip("no Chromium is on the path, in SAPP_BROWSER or among playwright's own: install chromium")
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def d4rl_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where files in D4RL's layout go that are made for a test; see ``d4rl_files``."""
    return tmp_path_factory.mktemp("d4rl")


@pytest.fixture(autouse=True, scope="module")
def names_as_before_the_file() -> Iterator[None]:
    """What a file of tests registers goes with it: lists of algorithms and weights are tested, too."""
    with names_restored():
        yield


@pytest.fixture(autouse=True)
def names_as_before() -> Iterator[None]:
    """What a test registers goes with it."""
    with names_restored():
        yield


@contextmanager
def names_restored() -> Iterator[None]:
    """Take away what is registered meanwhile."""
    names = ("sapp.algorithms.registry", "sapp.weights.registry")
    modules = [importlib.import_module(name) for name in names]
    found = {id(each): each for module in modules for each in vars(module).values() if isinstance(each, Registry)}
    before = [(registry, set(registry)) for registry in found.values()]
    yield
    for registry, names_before in before:
        for name in set(registry) - names_before:
            registry.remove(name)


@pytest.fixture(scope="module")
def long_training() -> Iterator[None]:
    """Training compiled for thousands of steps."""
    with compiling.training(compiling.LONG):
        yield


@pytest.fixture
def usual_fusion() -> Iterator[None]:
    """Training compiled with the fusion that users get."""
    with compiling.training(compiling.USUAL_FUSION):
        yield


@pytest.fixture(scope="module")
def usual_compiler() -> Iterator[None]:
    """Training compiled as users get it."""
    with compiling.training(compiling.USUAL):
        yield


@pytest.fixture(scope="session")
def long_environment() -> dict[str, str]:
    """The environment of a process that trains for thousands of steps."""
    quick = os.environ["XLA_FLAGS"] == compiling.FLAGS
    return {**os.environ, "XLA_FLAGS": compiling.LONG_FLAGS if quick else os.environ["XLA_FLAGS"]}


@pytest.fixture(scope="session")
def tiny() -> list[str]:
    """Networks that train in no time; compiling is what costs, so every test that trains uses this one shape."""
    return ["--hidden", "8", "--batch-size", "8", "--action-samples", "1"]


@pytest.fixture(scope="session")
def short() -> list[str]:
    """A run of two rows of metrics and two evaluations."""
    return ["--steps", "20", "--log-every", "10", "--eval-every", "10", "--eval-episodes", "2", "--quiet"]


@pytest.fixture(scope="session")
def point_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six logged episodes of the point task."""
    from sapp.data import save_npz
    from sapp.envs.point import behaviour_dataset

    return save_npz(behaviour_dataset(6), tmp_path_factory.mktemp("data") / "point.npz")


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory, point_file: Path, tiny: list[str], short: list[str]) -> Path:
    """A finished run of CQL made by the command; copy it before changing it."""
    from sapp.cli.main import main

    folder = tmp_path_factory.mktemp("runs") / "cql"
    assert main(["train", "cql", str(point_file), *tiny, *short, "--out", str(folder)]) == 0
    return folder


@pytest.fixture
def recordable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gymnasium's MuJoCo environments import imageio for rendering, which no test does."""
    if importlib.util.find_spec("imageio") is None:
        monkeypatch.setitem(sys.modules, "imageio", types.ModuleType("imageio"))
