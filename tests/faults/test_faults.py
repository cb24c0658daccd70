"""Every command that writes, failed or killed at the n-th open, write, sync, rename: run again it gives the same bits.

``make faults`` takes many places in each command (SAPP_FAULTS, per command); ``make test`` a few of those that train
nothing.
"""

from __future__ import annotations

import contextlib
import csv
import errno
import io
import os
import re
import shutil
import sqlite3
from collections import Counter
from pathlib import Path

import pytest
from forked import Fault, Forked, Outcome
from measured import keep
from scenarios import SCENARIOS, Scenario, laid_out

MANY = int(os.environ.get("SAPP_FAULTS", "0"))
"""Cases per command."""
QUICK = ("store", "results as text", "data convert", "collect --policy", "collect --minari", "data make")
ERRORS = {
    "open": errno.EACCES, "read": errno.EACCES, "list": errno.EACCES, "write": errno.ENOSPC, "sync": errno.EIO,
    "rename": errno.EIO, "mkdir": errno.ENOSPC, "remove": errno.EACCES,
}  # fmt: skip
SHARES = {"write": 5, "sync": 3, "rename": 3, "open": 3, "mkdir": 2, "read": 3, "list": 3, "remove": 1}
"""How many of a command's cases are at each kind of operation."""


def contents(folder: Path) -> dict[str, bytes]:
    """Files of a folder without clocks and locks; empty folders count, too."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.name.endswith((".lock", "-timings.csv")) or "__pycache__" in name:
            continue
        if path.is_dir():
            found[f"{name}/"] = b""
        elif path.exists():  # reading a store that was cut off takes its journal away
            found[name] = untimed(path)
    return found


def untimed(path: Path) -> bytes:
    """A file's content; of a table of metrics without the clock."""
    if path.suffix == ".sqlite":  # of rows in any order; a store that was cut off is as its next reader finds it
        with contextlib.closing(sqlite3.connect(path)) as db, contextlib.suppress(sqlite3.Error):
            return "\n".join(sorted(db.iterdump())).encode()
    content = path.read_bytes()
    if path.name == "report.html":  # an experiment's, which says how long each update took
        return b""
    if path.name == "offline.json":
        return re.sub(rb'"seconds": [0-9.e-]+', b"", content)
    if path.name not in ("metrics.csv", "evaluations.csv"):
        return content
    rows = csv.DictReader(io.StringIO(content.decode()))
    return repr([{key: value for key, value in row.items() if key != "seconds"} for row in rows]).encode()


def planned(counts: dict[str, int], cases: int) -> list[Fault]:
    """Places spread over a command's operations, killed and failed in turn."""
    found: list[Fault] = []
    whole = sum(SHARES.values())
    for kind, share in SHARES.items():
        count = counts[kind]
        wanted = min(count * 2, max(1, round(cases * share / whole)))
        for i in range(wanted if count else 0):
            number = 1 + (i * count // wanted if wanted > 1 else count // 2)
            if i % 2 and kind not in ("read", "list"):
                found.append(Fault(kind, number, ERRORS[kind], half=i % 4 == 1, again=i % 3 == 0))
            elif kind in ("read", "list"):
                found.append(Fault(kind, number, ERRORS[kind] if i % 2 else errno.EIO))
            else:
                found.append(Fault(kind, number, half=i % 4 == 2))
    return found


def leftovers(folder: Path) -> list[str]:
    """Half-written files and folders; not what ``data make`` goes on from, nor the shard that a run was at."""
    hidden = [path for path in folder.rglob(".*") if not path.name.endswith((".lock", ".partial", "observation.0.tmp"))]
    found = [str(path.relative_to(folder)) for path in hidden]
    return found + [name for name in map(str, folder.rglob("*")) if name.endswith(("-journal", "-wal", "-shm"))]


def complaints(done: Outcome, fault: Fault, ends: int) -> str:
    """What is wrong with how a command ended."""
    if fault.error == 0:
        return "" if done.code == -9 else f"exit {done.code} instead of a kill"
    if done.code == ends:
        return ""
    lines = [line for line in done.err[0].splitlines() if line]
    if done.code != 2 or len(lines) != 1 or not lines[0].startswith("sapp: error: "):
        return f"exit {done.code}, {lines[-3:]}"
    return ""


def one_case(forked: Forked, scenario: Scenario, kit: Path, folder: Path, fault: Fault,
             before: dict[str, bytes], after: dict[str, bytes]) -> list[str]:  # fmt: skip
    """Fail or kill a command, run it again; what is wrong with either."""
    laid_out(forked, scenario, kit, folder)
    done = forked.run(folder, scenario.command, fault=fault, env=scenario.env, before=scenario.before)
    if not done.hit:
        return []
    found = [complaint] if (complaint := complaints(done, fault, scenario.ends)) else []
    if fault.error and (left := leftovers(folder)):
        found.append(f"left {left}")
    if fault.error and done.code == scenario.ends and contents(folder) != after:
        found.append("said nothing, but is not the same")
    if scenario.pure:
        now = contents(folder)
        wrong = [name for name, content in now.items() if content not in (before.get(name), after.get(name))]
        found += [f"half written: {name}" for name in wrong if not name.startswith(".") and "/." not in name]
    if contents(folder) == after:  # killed after its work
        return found
    again = scenario.again(folder) if scenario.again is not None else scenario.command
    done = forked.run(folder, again, env=scenario.env, before=scenario.before)
    if done.code != scenario.ends:
        return [*found, f"again: exit {done.code}, {done.err[0][-300:]}"]
    now = contents(folder)
    other = sorted(name for name in {*now, *after} if now.get(name) != after.get(name))
    return [*found, f"again: other bits in {other}"] if other else found


@pytest.mark.parametrize("name", SCENARIOS if MANY else QUICK)
def test_failed_or_killed_anywhere_it_ends_with_the_same_bits(
    forked: Forked, kit: Path, tmp_path: Path, name: str
) -> None:
    scenario = SCENARIOS[name]
    folder = tmp_path / "case"  # of one name for all: runs note where their data are
    laid_out(forked, scenario, kit, folder)
    before = contents(folder)
    done = forked.run(folder, scenario.command, env=scenario.env, before=scenario.before)
    assert done.code == scenario.ends, done.err
    after = contents(folder)
    shutil.rmtree(folder)
    wrong: dict[str, list[str]] = {}
    kinds: Counter[str] = Counter()
    for fault in planned(done.counts, (MANY // 2 if scenario.trains else MANY) or 6):
        if found := one_case(forked, scenario, kit, folder, fault, before, after):
            wrong[str(fault)] = found
        kinds["killed" if fault.error == 0 else "failed"] += 1
        shutil.rmtree(folder)
    keep("faults", name, **kinds, wrong=len(wrong))
    assert not wrong, "\n".join(f"{fault}: {found}" for fault, found in wrong.items())
