"""An experiment on a local Ray cluster of two nodes: workers die in the middle, and then a node."""

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
from sapp.experiments.paper_grids import table1
from sapp.experiments.shares import shares
from sapp.experiments.store import OF_RUNS, TABLES, Store
from sapp.experiments.variants import named

STEPS = 12_000
ray = pytest.importorskip("ray", reason="needs ray, of the dev extra")


def two_jobs(steps: int = STEPS) -> Grid:
    """TD3+BC at two weights in families of their own: two jobs, long enough to be hit in the middle."""
    scale = Scale("smoke", steps, 10, 10, (0, 1), steps // 10, 2, steps // 10, SIZES)
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


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head and another node, one processor each; this process is connected."""
    from ray.cluster_utils import Cluster

    roots = os.pathsep.join([str(Path(__file__).parents[2]), str(Path(__file__).parent)])
    patched = pytest.MonkeyPatch()
    patched.setenv("PYTHONPATH", roots)
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    made.add_node(num_cpus=1)
    ray.init(address=made.address, log_to_driver=False)
    yield made
    ray.shutdown()
    made.shutdown()
    patched.undo()


def until(condition: Callable[[], Any]) -> Any:
    """What a condition gives as soon as it holds; the test's own time limit is the end of waiting."""
    while not (found := condition()):
        time.sleep(0.02)
    return found


def workers() -> set[int]:
    """Processes that train a job now; Ray names a worker after what it runs."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            if entry.read_bytes().startswith(b"ray::_job"):
                found.add(int(entry.parent.name))
    return found


@pytest.mark.slow
def test_one_job_is_shared_by_all_workers(tmp_path: Path, cluster: Any) -> None:
    """A family with two seeds on two workers: the rows that each seed has when it is trained on this machine."""
    from sapp.experiments.on_ray import run_on_ray

    both = two_jobs(600)
    one = replace(both, families=both.families[:1])
    said: list[str] = []
    run_on_ray(one, tmp_path / "ray", say=said.append)
    assert said[0] == "2 jobs for 2 workers"
    found = everything(tmp_path / "ray" / "results.sqlite")
    assert len(found["runs"]) == len(list((tmp_path / "ray").glob("slow-*/checkpoints"))) == 2
    for share in shares(one, 2):
        run_experiment(share.grid, tmp_path / share.label, progress=False, say=lambda _: None)
        here = everything(tmp_path / share.label / "results.sqlite")
        (mine,) = (row["run"] for row in here["runs"])
        for table in ("cells", *OF_RUNS):
            assert [row for row in found[table] if row["run"] == mine] == here[table], table


@pytest.mark.slow
def test_workers_and_a_node_that_die_lose_nothing(tmp_path: Path, cluster: Any, straight: dict[str, Any]) -> None:
    """Both workers at the first checkpoint, then, as soon as both jobs are under way again, a node with one of them."""
    from sapp.experiments.on_ray import run_on_ray

    node = next(each for each in cluster.list_all_nodes() if each is not cluster.head_node)
    killed: set[int] = set()
    steps: list[int] = []

    def saved() -> list[int]:
        return [int(file.stem) for file in tmp_path.glob("*/checkpoints/*.safetensors") if int(file.stem)]

    def strike() -> None:
        steps.extend(until(saved))
        killed.update(workers())
        for each in killed:
            os.kill(each, signal.SIGKILL)
        until(lambda: len(workers() - killed) == 2)
        cluster.remove_node(node, allow_graceful=False)
        steps.extend(saved())

    striker = threading.Thread(target=strike, daemon=True)
    striker.start()
    run_on_ray(two_jobs(), tmp_path, say=lambda _: None)
    striker.join(60)
    assert killed
    assert max(steps) < STEPS  # neither job was done, so each was taken from somebody
    until(lambda: sum(each["Alive"] for each in ray.nodes()) == 1)
    assert everything(tmp_path / "results.sqlite") == straight
    assert len(list(tmp_path.glob("slow*"))) == 2
