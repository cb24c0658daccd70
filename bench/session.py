"""A list of measurements within a fixed time on a machine: one after another, each ended in time, all kept.

    python bench/session.py bench/plans/studies.toml --out runs/session --seconds 1600 --set data=DATA
    python bench/session.py ... --detach --wait 570 --collect results.tgz      # where a command must return early

Several plans are one: their jobs follow each other. A plan is TOML: ``[[job]]`` tables with ``name``, ``command`` (a
list of words), and if wanted ``at_most`` (seconds), ``background`` (runs next to the following ones: data made by the
CPU), ``needs`` (names of jobs that must have succeeded; it waits for them, which holds up the following ones
unless it is in the background) and ``environment``. In words and values {python}, {out} (the folder of all jobs),
{bench} and what ``--set`` names are filled in, and {seconds} or {minutes}: what the job may use. A job that is given
less than ``at_least`` seconds is left out. Its output is ``OUT/NAME.log``; one that overruns by 30 seconds is
interrupted, then killed. ``OUT/session.log`` says what ran when. Called again with the same --out, finished jobs are
not run again.

``--detach`` starts the session in the background unless it was started before (``--again``: also where that one has
ended, for what failed or was left out), ``--wait`` waits so long for its end, and ``--collect`` packs every small text
file of OUT (no checkpoints, no data).
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tarfile
import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

GRACE = 30.0
POLL = 0.2
TEXTS = (".log", ".csv", ".json", ".jsonl", ".md", ".txt")
LARGEST = 8 * 2**20


@dataclass(frozen=True)
class Job:
    name: str
    command: list[str]
    at_most: float = float("inf")
    at_least: float = 20.0
    background: bool = False
    needs: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)


@dataclass
class Running:
    job: Job
    process: subprocess.Popen
    until: float
    began: float
    warned: bool = False


class Session:
    """Runs a plan until a point in time."""

    def __init__(self, jobs: list[Job], out: Path, end: float, words: dict[str, str]) -> None:
        self.jobs, self.out, self.end, self.words = jobs, out, end, words
        self.began = time.monotonic()
        self.running: dict[str, Running] = {}
        out.mkdir(parents=True, exist_ok=True)

    def say(self, text: str) -> None:
        line = f"{time.monotonic() - self.began:7.1f} s  {text}"
        print(line, flush=True)
        with (self.out / "session.log").open("a") as file:
            file.write(line + "\n")

    def done(self, name: str) -> bool:
        return (self.out / f"{name}.done").exists()

    def run(self) -> None:
        waiting = [job for job in self.jobs if not self.done(job.name)]
        while waiting or self.running:
            for name in list(self.running):
                self.look_after(name)
            waiting = self.start_what_can(waiting)
            time.sleep(POLL)
        self.say("session over")

    def start_what_can(self, waiting: list[Job]) -> list[Job]:
        """Start jobs in their order, and return those that must wait longer.

        One that runs in the background and waits for what it needs holds up nobody; any other holds up all that follow
        it.
        """
        left_waiting: list[Job] = []
        for number, job in enumerate(waiting):
            needed = {name for name in job.needs if not self.done(name)}
            coming = needed & (self.running.keys() | {other.name for other in left_waiting})
            if not job.background and (coming or any(not running.job.background for running in self.running.values())):
                return left_waiting + waiting[number:]
            if coming:
                left_waiting.append(job)
            elif needed:
                self.say(f"{job.name}: left out, {', '.join(sorted(needed))} failed")
            else:
                self.start(job)
        return left_waiting

    def start(self, job: Job) -> None:
        seconds = min(job.at_most, self.end - time.monotonic() - GRACE)
        if seconds < job.at_least:
            self.say(f"{job.name}: left out, {max(0.0, seconds):.0f} s are too few")
            return
        words = self.words | {"seconds": f"{seconds:.0f}", "minutes": f"{seconds / 60.0:.3f}"}
        filled = [word.format(**words) for word in job.command]
        extra = {name: value.format(**words) for name, value in job.environment.items()}
        self.say(f"{job.name}: begins, {seconds:.0f} s at most")
        with (self.out / f"{job.name}.log").open("a") as log:
            # a shell starts what runs in its background deaf to SIGINT, and children inherit that
            deaf = signal.signal(signal.SIGINT, signal.default_int_handler)
            process = subprocess.Popen(filled, stdout=log, stderr=subprocess.STDOUT, env=os.environ | extra)
            signal.signal(signal.SIGINT, deaf)
        now = time.monotonic()
        self.running[job.name] = Running(job, process, now + seconds + GRACE, now)

    def look_after(self, name: str) -> None:
        """Note a job that has ended; one whose time is over gets SIGINT (experiments save), then SIGKILL."""
        mine = self.running[name]
        code = mine.process.poll()
        if code is None:
            if time.monotonic() > mine.until:
                mine.process.send_signal(signal.SIGKILL if mine.warned else signal.SIGINT)
                mine.warned, mine.until = True, time.monotonic() + GRACE
            return
        del self.running[name]
        if code == 0:
            (self.out / f"{name}.done").touch()
        self.say(f"{name}: {'done' if code == 0 else f'failed ({code})'} after {time.monotonic() - mine.began:.0f} s")


def read_plans(paths: Sequence[Path]) -> list[Job]:
    jobs: list[Job] = []
    for path in paths:
        for table in tomllib.loads(path.read_text(encoding="utf-8"))["job"]:
            job, names = Job(**table), [earlier.name for earlier in jobs]
            if job.name in names:
                raise SystemExit(f"{path}: {job.name} is the name of two jobs")
            if unknown := [name for name in job.needs if name not in names]:
                raise SystemExit(f"{path}: {job.name} needs {unknown[0]}, which no job before it is")
            jobs.append(job)
    return jobs


def collect(out: Path, archive: Path) -> None:
    with tarfile.open(archive, "w:gz") as tar:
        for file in sorted(out.rglob("*")):
            if file.suffix in TEXTS and file.stat().st_size <= LARGEST and "checkpoint" not in str(file):
                tar.add(file, file.relative_to(out))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="for everything (default: no limit)")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a word of the plan")
    parser.add_argument("--detach", action="store_true", help="run in the background, unless it does already")
    parser.add_argument("--again", action="store_true", help="with --detach: start anew where an earlier one has ended")
    parser.add_argument("--wait", type=float, default=0.0, help="with --detach: seconds to wait for its end")
    parser.add_argument("--collect", type=Path, help="archive for the text files found in OUT at the end")
    options = parser.parse_args()
    jobs = read_plans(options.plan)
    if options.detach:
        wait_for(options)
    else:
        bench = Path(__file__).resolve().parent
        words = {"python": sys.executable, "out": str(options.out.resolve()), "bench": str(bench)}
        words |= dict(pair.split("=", 1) for pair in options.set)
        Session(jobs, options.out, time.monotonic() + options.seconds, words).run()
    if options.collect:
        collect(options.out, options.collect)


def wait_for(options: argparse.Namespace) -> None:
    """Start the session if there is none, wait for its end, and show its log."""
    options.out.mkdir(parents=True, exist_ok=True)
    mark = options.out / "session.pid"
    if not mark.exists() or (options.again and not _alive(int(mark.read_text()))):
        own = [sys.executable, str(Path(__file__).resolve()), *map(str, options.plan), "--out", str(options.out),
               "--seconds", str(options.seconds)]  # fmt: skip
        own += [word for pair in options.set for word in ("--set", pair)]
        with (options.out / "session.out").open("a") as log:
            process = subprocess.Popen(own, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        mark.write_text(str(process.pid))
    pid, end = int(mark.read_text()), time.monotonic() + options.wait
    while time.monotonic() < end and _alive(pid):
        time.sleep(1.0)
    print((options.out / "session.out").read_text())


def _alive(pid: int) -> bool:
    """Whether a process runs; one that has ended but was not waited for does not."""
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


if __name__ == "__main__":
    main()
