"""Do the tests bite? Plants small faults in sapp, one at a time, and counts how many the tests find.

    python bench/mutants.py --out runs/mutants                 # all of them, two at a time
    python bench/mutants.py --out runs/mutants --only weights  # an area, or a fault by its name
    python bench/mutants.py --check                            # only whether the table still fits the code

The faults are in ``bench/mutations``, a file for each area: ``[[mutant]]`` tables with ``name``, ``meaning`` (what is
wrong then), ``file``, ``old`` (text that occurs there exactly once), ``new``, ``tests`` (files or tests by their id,
of which one should fail). A table that no longer fits the code is refused: move the fault to where its meaning now is.

Nothing is changed in the checkout: each worker has a copy of it (what git knows or would add). First the named tests
run there without any fault: a test that fails by itself would find everything. Then, fault by fault, they run with -x:
*killed* if a test fails, *survived* if none does, *timed out* beyond ``--seconds`` of CPU time, *broken* if they could
not run at all (what cannot be imported is no small fault). Compiled programs are kept in ``OUT/cache`` from one to the
next. Results are in ``OUT/results.jsonl``; called again, what was found for the same fault, file and tests is kept.

``OUT/mutants.csv`` is the table and ``OUT/mutants.md`` its counts, which bench/README.md shows. Ends with 1 if fewer
than 97 % were killed, with 2 if something is wrong with the faults or with the tests themselves.
"""

from __future__ import annotations

import argparse
import ast
import csv
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parents[1]
TABLE = Path(__file__).resolve().parent / "mutations"
VERDICTS = ("killed", "survived", "timed out", "broken")
BAR = 0.97
WAIT = 20
"""So many times the CPU time that a fault may take it may wait: for a lock that nobody gives back, say."""
FIELDS = ("name", "file", "old", "new", "meaning")
COLUMNS = ("area", "name", "file", "meaning", "verdict", "cpu_seconds", "seconds", "found_by")
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


class Unfit(Exception):
    """The faults do not fit the code, or the tests fail without any."""


@dataclass(frozen=True)
class Mutant:
    """A fault: ``old`` gives way to ``new`` in ``file``; ``tests`` should notice."""

    area: str
    name: str
    file: str
    old: str
    new: str
    meaning: str
    tests: tuple[str, ...]

    def apply(self, root: Path) -> str:
        """The file's text with the fault in it."""
        path = root / self.file
        if not path.is_file():
            raise Unfit(f"{self.area}/{self.name}: there is no {self.file}")
        text = path.read_text(encoding="utf-8")
        if (count := text.count(self.old)) != 1:
            raise Unfit(f"{self.area}/{self.name}: 'old' occurs {count} times in {self.file}; it must be there once")
        return text.replace(self.old, self.new)


@dataclass(frozen=True)
class Result:
    """What became of a fault; ``key`` tells whether that still holds. CPU time is of all cores."""

    key: str
    verdict: str
    cpu_seconds: float
    seconds: float
    found_by: str


def read_table(folder: Path) -> list[Mutant]:
    """All faults of a folder's TOML files, by area."""
    found: list[Mutant] = []
    for path in sorted(folder.glob("*.toml")):
        for number, row in enumerate(tomllib.loads(path.read_text(encoding="utf-8")).get("mutant", [])):
            if wrong := {*FIELDS, "tests"} ^ row.keys():
                raise Unfit(f"{path.name}, fault {number + 1}: {', '.join(sorted(wrong))} is missing or unknown")
            found.append(Mutant(path.stem, *(row[name] for name in FIELDS), tests=tuple(row["tests"])))
    return found


def check(mutants: Sequence[Mutant], root: Path) -> None:
    """Refuse a table that does not fit the code; all that is wrong is said."""
    wrong = [f"{name}: the name of two faults" for name, n in Counter(m.name for m in mutants).items() if n > 1]
    for mutant in mutants:
        label = f"{mutant.area}/{mutant.name}"
        try:
            ast.parse(mutant.apply(root))
        except Unfit as error:
            wrong.append(str(error))
        except SyntaxError as error:
            wrong.append(f"{label}: {mutant.file} is no Python any more ({error.msg})")
        wrong += [f"{label}: there is no {test}" for test in mutant.tests if not (root / test.split("::")[0]).is_file()]
        if not mutant.tests or mutant.old == mutant.new:
            wrong.append(f"{label}: it changes nothing, or no test is named")
    if wrong:
        raise Unfit("\n".join(wrong))


def files_of(root: Path) -> list[str]:
    """Files that git knows or would add."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=root, capture_output=True, check=True).stdout
    return sorted({name for name in listed.decode().split("\0") if name and (root / name).is_file()})


def copy_tree(root: Path, target: Path) -> None:
    """A fresh copy of the checkout."""
    shutil.rmtree(target, ignore_errors=True)
    for name in files_of(root):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / name, target / name)


def digest(*parts: str | bytes) -> str:
    """A short name for contents."""
    found = hashlib.sha256()
    for part in parts:
        found.update(part if isinstance(part, bytes) else part.encode())
        found.update(b"\0")
    return found.hexdigest()[:16]


def key_of(mutant: Mutant, root: Path) -> str:
    """Changes with the fault, the file it is planted in and the tests that should find it."""
    files = sorted({mutant.file, *(test.split("::")[0] for test in mutant.tests)})
    return digest(json.dumps(asdict(mutant)), *((root / name).read_bytes() for name in files))


class Worker:
    """A copy of the checkout, and tests that run in it."""

    def __init__(self, copy: Path, cache: Path, seconds: int) -> None:
        self.copy, self.seconds = copy, seconds
        self.environment = os.environ | {
            "PYTHONPATH": str(copy),
            "JAX_COMPILATION_CACHE_DIR": str(cache),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.3",
            "PYTHONHASHSEED": "0",
        }

    def prepare(self) -> None:
        """Make the copy, and see that it is what Python imports there."""
        copy_tree(ROOT, self.copy)
        command = [sys.executable, "-c", "import sapp; print(sapp.__file__)"]
        done = subprocess.run(command, cwd=self.copy, env=self.environment, capture_output=True, text=True)
        if not done.stdout.startswith(str(self.copy)):
            raise Unfit(f"{self.copy}: Python imports {done.stdout.strip() or done.stderr[-300:]} there, not the copy")

    def pytest(self, tests: Sequence[str], *options: str, seconds: int = 0) -> tuple[int | None, str, float]:
        """The exit status (None: it took too long, and was ended), what was printed, and the CPU time of it all."""
        command = [sys.executable, "-m", "pytest", "-q", "-rfE", "--tb=no", *options, *tests]
        if seconds:  # the kernel counts, so that a machine that is busy with other things ends nothing early
            command = ["sh", "-c", 'ulimit -t "$0"; exec "$@"', str(seconds), *command]
        process = subprocess.Popen(
            command, cwd=self.copy, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        late = threading.Event()

        def end() -> None:
            late.set()
            os.killpg(process.pid, signal.SIGKILL)

        timer = threading.Timer(WAIT * seconds or 1e6, end)
        timer.daemon = True
        timer.start()
        assert process.stdout is not None
        out = process.stdout.read().decode(errors="replace")
        _, status, usage = os.wait4(process.pid, 0)
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        cpu = usage.ru_utime + usage.ru_stime
        ended = late.is_set() or (process.returncode in (-signal.SIGXCPU, -signal.SIGKILL) and cpu > seconds / 2 > 0)
        return None if ended else process.returncode, out, cpu

    def write(self, file: str, text: str) -> None:
        """Into the copy; what Python keeps of the file compiled goes, since it is known by the second only."""
        path = self.copy / file
        path.write_text(text, encoding="utf-8")
        for old in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            old.unlink()

    def run(self, mutant: Mutant, key: str) -> Result:
        """Plant a fault, run its tests, and take it out again."""
        before = (self.copy / mutant.file).read_text(encoding="utf-8")
        began = time.monotonic()
        self.write(mutant.file, mutant.apply(self.copy))
        try:
            status, out, cpu = self.pytest(mutant.tests, "-x", seconds=self.seconds)
        finally:
            self.write(mutant.file, before)
        names = {1: "killed", 0: "survived", None: "timed out"}
        first = FAILED.search(out)
        found_by = first[1] if first and status == 1 else ""
        if names.get(status) is None:
            found_by = " ".join(out.split())[-200:]
        spent = time.monotonic() - began
        return Result(key, names.get(status, "broken"), round(cpu, 1), round(spent, 1), found_by)


def known_results(path: Path) -> dict[str, Result]:
    """Results so far, by the name of the fault; the last one counts."""
    if not path.is_file():
        return {}
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return {row.pop("name"): Result(**row) for row in rows}


def check_tests(workers: Sequence[Worker], mutants: Sequence[Mutant], out: Path) -> None:
    """The named tests pass where nothing is planted; remembered for as long as the code stays the same."""
    tree = digest(*((ROOT / name).read_bytes() for name in files_of(ROOT) if name.endswith((".py", ".toml"))))
    notes = out / "passing.json"
    passing = json.loads(notes.read_text(encoding="utf-8")) if notes.is_file() else {}
    known = set(passing.get(tree, []))
    wanted = sorted({test for mutant in mutants for test in mutant.tests} - known)
    # by file, so that what a file trains is compiled once
    shares = [[test for test in wanted if hash_of(test, len(workers)) == number] for number in range(len(workers))]
    with ThreadPoolExecutor(len(workers)) as pool:
        found = list(pool.map(lambda own, share: own.pytest(share) if share else (0, "", 0.0), workers, shares))
    for status, text, _ in found:
        if status != 0:
            failed = ", ".join(FAILED.findall(text)) or text[-500:]
            raise Unfit(f"tests fail with nothing planted: {failed}")
    print(f"tests pass with nothing planted ({sum(cpu for *_, cpu in found) / 60:.1f} minutes of CPU time)", flush=True)
    notes.write_text(json.dumps({tree: sorted(known | set(wanted))}), encoding="utf-8")


def hash_of(test: str, count: int) -> int:
    """Which of several shares a test's file belongs to."""
    return int(digest(test.split("::")[0]), 16) % count


def run_all(mutants: Sequence[Mutant], workers: Sequence[Worker], out: Path) -> None:
    """Run what is not known yet, and note each result as it comes."""
    path = out / "results.jsonl"
    known = known_results(path)
    keys = {mutant.name: key_of(mutant, ROOT) for mutant in mutants}
    waiting = [m for m in mutants if m.name not in known or known[m.name].key != keys[m.name]]
    if not waiting:
        return
    for worker in workers:
        worker.prepare()
    check_tests(workers, waiting, out)
    free: SimpleQueue[Worker] = SimpleQueue()
    for worker in workers:
        free.put(worker)
    lock, done = threading.Lock(), 0

    def one(mutant: Mutant) -> None:
        nonlocal done
        worker = free.get()
        try:
            result = worker.run(mutant, keys[mutant.name])
        finally:
            free.put(worker)
        with lock, path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"name": mutant.name, **asdict(result)}) + "\n")
            done += 1
            print(f"{done:3} of {len(waiting)}  {result.verdict:9} {result.seconds:6.1f} s  {mutant.area}/{mutant.name}"
                  f"  {result.found_by}", flush=True)  # fmt: skip

    with ThreadPoolExecutor(len(workers)) as pool:
        list(pool.map(one, waiting))


def write_csv(mutants: Sequence[Mutant], results: dict[str, Result], path: Path) -> list[dict[str, str]]:
    """One row per fault, in the order of the table; and the rows as they can be read back."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(mutant) | asdict(results[mutant.name]) for mutant in mutants)
    return read_csv(path)


def read_csv(path: Path) -> list[dict[str, str]]:
    """The rows of ``mutants.csv``."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def share(rows: Sequence[dict[str, str]]) -> float:
    """How many were killed, of all."""
    return sum(row["verdict"] == "killed" for row in rows) / len(rows)


def figures(rows: Sequence[dict[str, str]]) -> str:
    """The counts as Markdown, by area and in all, with what was not killed: what bench/README.md shows."""
    killed, cpu = sum(row["verdict"] == "killed" for row in rows), sum(float(row["cpu_seconds"]) for row in rows) / 60
    lines = [
        f"**{killed} of {len(rows)} are found, {100 * share(rows):.1f} %**, in {cpu:.0f} minutes of CPU time.", "",
        f"| area | faults | {' | '.join(VERDICTS)} | CPU seconds per fault |", f"|---|{'---:|' * (len(VERDICTS) + 2)}",
    ]  # fmt: skip
    for area in [*sorted({row["area"] for row in rows}), "all"]:
        own = [row for row in rows if area in (row["area"], "all")]
        counts = [sum(row["verdict"] == verdict for row in own) for verdict in VERDICTS]
        mean = sum(float(row["cpu_seconds"]) for row in own) / len(own)
        lines.append(f"| {' | '.join(map(str, (area, len(own), *counts)))} | {mean:.1f} |")
    missed = [f"* {row['verdict']}: {row['name']} ({row['meaning']})" for row in rows if row["verdict"] != "killed"]
    return "\n".join([*lines, *(["", *missed] if missed else [])])


def chosen(mutants: Sequence[Mutant], only: Sequence[str]) -> list[Mutant]:
    """Those of some areas or names."""
    if unknown := set(only) - {m.area for m in mutants} - {m.name for m in mutants}:
        raise Unfit(f"--only {sorted(unknown)[0]}: no such area or fault")
    return [m for m in mutants if not only or m.area in only or m.name in only]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/mutants"), help="folder for results, copies and cache")
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", help="areas or faults (default: all)")
    parser.add_argument("--workers", type=int, default=2, help="how many at a time")
    parser.add_argument("--seconds", type=int, default=300, help="CPU time that a fault may take")
    parser.add_argument("--check", action="store_true", help="only see whether the table fits the code")
    parser.add_argument("--table", type=Path, default=TABLE, help="folder of the faults")
    options = parser.parse_args(arguments)
    try:
        table = read_table(options.table)
        check(table, ROOT)
        mutants = chosen(table, options.only)
        if options.check:
            print(f"{len(mutants)} faults fit the code")
            return 0
        out = options.out.resolve()
        out.mkdir(parents=True, exist_ok=True)
        workers = [Worker(out / f"copy-{i}", out / "cache", options.seconds) for i in range(options.workers)]
        run_all(mutants, workers, out)
    except Unfit as error:
        print(error, file=sys.stderr)
        return 2
    results = known_results(out / "results.jsonl")
    rows = write_csv(mutants, results, out / "mutants.csv")
    (out / "mutants.md").write_text(figures(rows) + "\n", encoding="utf-8")
    print(figures(rows))
    if any(row["verdict"] == "broken" for row in rows):
        return 2
    return 0 if share(rows) >= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
