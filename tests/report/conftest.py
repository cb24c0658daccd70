from __future__ import annotations

from pathlib import Path

import pytest

ROWS = Path(__file__).parents[2] / "studies" / "medium_datasets" / "rows"


@pytest.fixture(scope="session")
def sources() -> list[Path]:
    """Real results: CQL, SA-CQL and the controls on the three medium datasets, three seeds."""
    return [ROWS / "hopper", ROWS / "halfcheetah-walker2d"]


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory, sources: list[Path]) -> Path:
    """The report of those results, with its files."""
    from sapp.report import report

    folder = tmp_path_factory.mktemp("report")
    report(sources, folder / "report.html", folder / "figures", title="Medium <datasets>")
    return folder


@pytest.fixture(scope="session")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results store of two methods with metrics and events, written row by row without training anything."""
    from sapp.experiments.store import Results, Store, text

    path = tmp_path_factory.mktemp("store") / "results.sqlite"
    rows: dict[str, list[tuple[object, ...]]] = {
        name: [] for name in ("cells", "runs", "evaluations", "metrics", "events")
    }
    rows["experiments"] = [("table1", "smoke", "Table 1", "Does it work?", "SA-CQL")]
    for place, column in enumerate(("CQL", "SA-CQL")):
        for seed in range(3):
            run = f"{column}-{seed}"
            rows["cells"].append(("table1", "smoke", "hopper-medium", place, column, seed, run))
            algorithm = {"class": "CQL", "alpha": 5.0, "weights": {"class": "Control", "kind": 4 if place == 0 else 0}}
            rows["runs"].append(
                (run, "hopper-medium", "f" * 64, "hopper", "d4rl", 1000, 10, text(algorithm), seed,
                 text([{"name": "joint", "steps": 200}]), text({"every": 100}), text({"algorithm": 7, "weights": 5}),
                 text({"sapp": "0"}))
            )  # fmt: skip
            for step in (100, 200):
                for episode in range(4):
                    score = 10.0 * place + seed + step / 100 + episode / 10
                    rows["evaluations"].append((run, step, episode, step, 30 * score, score))
                values = {"weights/mean": 1.0 - 0.4 * place, "ratio/ess": 0.5, "ratio/reward": step + seed}
                rows["metrics"].append((run, step, "joint", text(values)))
            rows["events"].append((run, 0, 100, "ratio-unreliable"))
    with Store(path, create=True) as store:
        store.add(Results(rows))
    return path
