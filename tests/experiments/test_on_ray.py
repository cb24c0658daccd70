"""An experiment on a local Ray cluster of two nodes: first a worker dies in the middle, then, in another, a node."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tiny_experiment import SIZES

from sapp.experiments.driver import run_experiment
from sapp.experiments.grid import Family, Grid, Scale
from sapp.experiments.store import TABLES, Store
from sapp.experiments.table1 import grid as table1
from sapp.experiments.variants import named

STEPS = 30_000
ray = pytest.importorskip("ray", reason="needs ray: pip install 'sapp-rl[ray]'")


def two_jobs() -> Grid:
    """TD3+BC at two weights in families of their own: two jobs, long enough to be hit in the middle."""
    scale = Scale("smoke", STEPS, 10, 10, (0, 1), STEPS // 10, 2, STEPS // 10, SIZES)
    families = (
        Family("slow", {"TD3+BC": named(scale, "td3bc")}),
        Family("slower", {"TD3+BC α=5": named(scale, "td3bc", alpha=5.0)}),
    )
    return replace(table1(scale), datasets=("point-6",), families=families, focus="TD3+BC")


def everything(store: Path) -> dict[str, list[dict[str, object]]]:
    with Store(store) as opened:
        return {table: opened.rows(table) for table in TABLES}


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, object]]]:
    """The store of the same experiment on this machine, nothing killed."""
    out = tmp_path_factory.mktemp("straight")
    run_experiment(two_jobs(), out, progress=False, say=lambda _: None)
    return everything(out / "results.sqlite")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A head and another node, one processor each; this process is connected."""
    from ray.cluster_utils import Cluster

    roots = os.pathsep.join([str(Path(__file__).parents[2]), str(Path(__file__).parent)])
    monkeypatch.setenv("PYTHONPATH", roots)
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    made.add_node(num_cpus=1)
    ray.init(address=made.address, log_to_driver=False)
    yield made
    ray.shutdown()
    made.shutdown()


def run_and_strike(out: Path, strike: Callable[[], None]) -> list[int]:
    """Run the experiment, strike as soon as both jobs have a checkpoint, and return the steps they had then."""
    from sapp.experiments.on_ray import run_on_ray

    found: list[list[int]] = []

    def wait_and_strike() -> None:
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline:
            steps = [
                max((int(f.stem) for f in run.glob("*.safetensors")), default=0) for run in out.glob("*/checkpoints")
            ]
            if len(steps) == 2 and min(steps) > 0:
                strike()
                found.append(steps)
                return
            time.sleep(0.05)

    striker = threading.Thread(target=wait_and_strike)
    striker.start()
    run_on_ray(two_jobs(), out, say=lambda _: None)
    striker.join()
    return found[0]


def workers() -> set[int]:
    """Processes that train a job now; Ray names a worker after what it runs."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            if entry.read_bytes().startswith(b"ray::_job"):
                found.add(int(entry.parent.name))
    return found


@pytest.mark.slow
def test_a_worker_that_dies_loses_nothing(tmp_path: Path, cluster: Any, straight: dict[str, Any]) -> None:
    killed: list[int] = []

    def strike() -> None:
        killed.append(min(workers()))
        os.kill(killed[0], signal.SIGKILL)

    steps = run_and_strike(tmp_path, strike)
    assert max(steps) < STEPS  # neither job was done, so the worker took one with it
    assert not Path(f"/proc/{killed[0]}").exists()
    assert everything(tmp_path / "results.sqlite") == straight
    assert len(list(tmp_path.glob("slow*"))) == 2


@pytest.mark.slow
def test_a_node_that_dies_loses_nothing(tmp_path: Path, cluster: Any, straight: dict[str, Any]) -> None:
    node = next(each for each in cluster.list_all_nodes() if each is not cluster.head_node)
    steps = run_and_strike(tmp_path, lambda: cluster.remove_node(node, allow_graceful=False))
    deadline = time.monotonic() + 60
    while sum(each["Alive"] for each in ray.nodes()) > 1 and time.monotonic() < deadline:
        time.sleep(0.5)
    assert sum(each["Alive"] for each in ray.nodes()) == 1
    assert max(steps) < STEPS  # neither job was done, so the dead node took one with it
    assert everything(tmp_path / "results.sqlite") == straight
    assert len(list(tmp_path.glob("slow*"))) == 2
