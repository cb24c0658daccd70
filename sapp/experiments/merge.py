"""Rows of a study's parts put together: checked to be whole, and of this study and no other."""

from __future__ import annotations

import json
import tarfile
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from sapp.algorithms import config as configuration
from sapp.core.errors import SappError
from sapp.data.benchmark_names import NAMES, parse
from sapp.experiments import text_store
from sapp.experiments.grid import Grid, run_key
from sapp.experiments.parts import Study
from sapp.experiments.store import TABLES, Results
from sapp.runs.members import MemberId


class Recorded(NamedTuple):
    """Which data a row says a run learned from."""

    fingerprint: str
    environment: str | None
    physics: str | None


def merge(
    study: Study, sources: Sequence[Path], rows: Path, *, rehearse: bool = False, say: Callable[[str], None] = print
) -> int:
    """Put rows of finished parts to a study's; returns how many runs are new. Merged twice, they change nothing.

    Args:
        study: whose rows they must be.
        sources: folders with rows somewhere inside, or archives of such folders.
        rows: the folder of CSV files that they are added to. A run that it has stays as it is.
        rehearse: they are a rehearsal's.
        say: where to report what was done.
    """
    grid, count = study.whole(rehearse), 0
    for source in sources:
        with _folder(source) as folder:
            stores = sorted(place for place in (folder, *folder.rglob("*")) if text_store.is_text_store(place))
            if not stores:
                raise SappError(f"{source}: holds no rows of an experiment")
            for store in stores:
                found = text_store.read(store)
                known = _runs(rows)
                new = found.without(known)
                added = len(new.rows["runs"])
                stopped = store.name == text_store.UNFINISHED
                for line in check(study, grid, new, rows, whole=not stopped, rehearse=rehearse):
                    say(f"{source}: {line}")
                if stopped:
                    text_store.add_unfinished(new, rows)
                    say(f"{source}: {added} runs that were stopped, kept in {text_store.UNFINISHED}")
                else:
                    text_store.add(new, rows)
                    count += added
                    say(f"{source}: {added} new runs, {len(found.rows['runs']) - added} there before")
    text_store.leave_out(rows / text_store.UNFINISHED, _runs(rows))
    return count


def check(
    study: Study, grid: Grid, found: Results, rows: Path, *, whole: bool = True, rehearse: bool = False
) -> list[str]:
    """Refuse rows that are not the study's, or not whole; returns what is worth knowing about the others."""
    tables = {
        name: [dict(zip(TABLES[name], row, strict=True)) for row in found.rows.get(name, ())] for name in TABLES
    }  # fmt: skip
    runs = {row["run"]: row for row in tables["runs"]}
    episodes: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for row in tables["evaluations"]:
        episodes[row["run"]][row["step"]] += 1
    last = {row["run"]: row["step"] for row in sorted(tables["metrics"], key=lambda row: row["step"])}
    wanted = {run for names, family in grid.jobs(together=True) for run in grid.runs(family, names)}
    belonging = set()
    for cell in tables["cells"]:
        if cell["run"] not in runs:
            continue  # of a run that is there already
        member = MemberId(cell["variant"], cell["dataset"], cell["seed"])
        if (cell["experiment"], cell["scale"]) != (grid.name, grid.scale.label) or member not in wanted:
            raise SappError(f"{member}: is of {cell['experiment']} ({cell['scale']}), not of {study.folder.name}")
        row = runs[cell["run"]]
        _check_settings(study, grid, member, row, any_precision=rehearse)
        if not rehearse and (member.dataset in NAMES and row["transitions"] != parse(member.dataset).transitions):
            raise SappError(f"{member}: its data have {row['transitions']:,} transitions, not those of D4RL's file")
        if whole:
            _check_whole(grid, member, episodes[cell["run"]], last.get(cell["run"]))
        belonging.add(cell["run"])
    if foreign := sorted(runs.keys() - belonging):
        raise SappError(f"run {foreign[0]}: no cell of {grid.name} names it")
    return _other_data(tables["runs"], rows)


def _check_settings(study: Study, grid: Grid, member: MemberId, row: Mapping[str, Any], *, any_precision: bool) -> None:
    """Refuse a run that today's grid would not train: another algorithm, protocol, evaluation or arithmetic."""
    family = next(family for family in grid.families if member.algorithm in family.variants)
    algorithm = family.variants[member.algorithm](member.dataset)
    data = Recorded(row["fingerprint"], row["environment"], row["physics"])
    phases = family.phases(grid.scale, [member.dataset])
    if (row["dataset"], row["seed"]) != (member.dataset, member.seed):
        raise SappError(f"{member}: its run is of {row['dataset']}, seed {row['seed']}")
    if run_key(algorithm, data, member.seed, phases, grid.scale) != row["run"]:
        raise SappError(f"{member}: run {row['run']} is none that {study.folder.name} would train today")
    made = json.loads(row["algorithm"])
    precision = made.get("precision") if any_precision else study.precision
    if json.loads(json.dumps(_in_precision(configuration.describe(algorithm), precision))) != made:
        raise SappError(f"{member}: was trained with other settings, or not in precision {study.precision}")


def _in_precision(described: Any, precision: Any) -> Any:
    """A description with every ``auto`` resolved."""
    if not isinstance(described, Mapping):
        return described
    return {
        name: precision if (name, value) == ("precision", "auto") else _in_precision(value, precision)
        for name, value in described.items()
    }


def _check_whole(grid: Grid, member: MemberId, episodes: Mapping[int, int], last: int | None) -> None:
    scale = grid.scale
    steps = [*range(scale.eval_every, scale.steps, scale.eval_every), scale.steps]
    if dict(episodes) != dict.fromkeys(steps, scale.eval_episodes) or last != scale.steps:
        raise SappError(f"{member}: not whole, evaluated at {len(episodes)} of {len(steps)} steps")


def _other_data(found: Sequence[Mapping[str, Any]], rows: Path) -> list[str]:
    """Which datasets have other bits than those of runs that are there: the same recipe on another kind of CPU."""
    there: dict[str, set[str]] = defaultdict(set)
    if text_store.is_text_store(rows):
        for row in text_store.read(rows).rows["runs"]:
            there[row[TABLES["runs"].index("dataset")]].add(row[TABLES["runs"].index("fingerprint")])
    names = {
        row["dataset"] for row in found if there[row["dataset"]] and row["fingerprint"] not in there[row["dataset"]]
    }
    return [
        f"{name}: made by the same recipe, but with other bits than those of earlier runs" for name in sorted(names)
    ]


def _runs(rows: Path) -> set[str]:
    return {row[0] for row in text_store.read(rows).rows["runs"]} if text_store.is_text_store(rows) else set()


@contextmanager
def _folder(source: Path) -> Iterator[Path]:
    """A folder as it is; an archive unpacked for as long as it is looked at."""
    if source.is_dir():
        yield source
        return
    with tempfile.TemporaryDirectory() as name:
        try:
            with tarfile.open(source) as archive:
                archive.extractall(name, filter="data")
        except (OSError, tarfile.TarError) as error:
            raise SappError(f"{source}: neither a folder nor an archive that can be read ({error})") from None
        yield Path(name)
