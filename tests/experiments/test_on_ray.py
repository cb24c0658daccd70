"""An experiment on a local Ray cluster of two nodes, one of which dies in the middle."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tiny_experiment import SIZES

from sapp.experiments.driver import run_experiment
from sapp.experiments.grid import Family, Grid, Scale, named
from sapp.experiments.store import TABLES, Store
from sapp.experiments.table1 import grid as table1

STEPS = 30_000
ray = pytest.importorskip("ray", reason="needs ray: pip install 'sapp[ray]'")


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


@pytest.mark.slow
def test_a_node_that_dies_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ray.cluster_utils import Cluster

    from sapp.experiments.on_ray import run_on_ray

    roots = os.pathsep.join([str(Path(__file__).parents[2]), str(Path(__file__).parent)])
    monkeypatch.setenv("PYTHONPATH", roots)
    straight, spread = tmp_path / "straight", tmp_path / "spread"
    run_experiment(two_jobs(), straight, progress=False, say=lambda _: None)

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    node = cluster.add_node(num_cpus=1)
    at_kill: list[list[int]] = []

    def kill_when_both_train() -> None:
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline:
            steps = [
                max((int(f.stem) for f in run.glob("*.safetensors")), default=0) for run in spread.glob("*/checkpoints")
            ]
            if len(steps) == 2 and min(steps) > 0:
                cluster.remove_node(node, allow_graceful=False)
                at_kill.append(steps)
                return
            time.sleep(0.05)

    try:
        ray.init(address=cluster.address, log_to_driver=False)
        killer = threading.Thread(target=kill_when_both_train)
        killer.start()
        run_on_ray(two_jobs(), spread, say=lambda _: None)
        killer.join()
        deadline = time.monotonic() + 60
        while sum(each["Alive"] for each in ray.nodes()) > 1 and time.monotonic() < deadline:
            time.sleep(0.5)
        nodes = sum(each["Alive"] for each in ray.nodes())
    finally:
        ray.shutdown()
        cluster.shutdown()
    assert max(at_kill[0]) < STEPS  # neither job was done, so the dead node took one with it
    assert nodes == 1
    assert everything(spread / "results.sqlite") == everything(straight / "results.sqlite")
    assert len(list(spread.glob("slow*"))) == 2
