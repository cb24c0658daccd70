"""Commands as real processes for the price of a fork, which may fail or be killed at a place that is counted."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import compiling

HERE = Path(__file__).parent
Command = Sequence[str] | str
"""Words of the ``sapp`` command, or Python's text."""


@dataclass(frozen=True)
class Fault:
    """The ``number``-th time that files are opened, written, synced, ...: an error (0: SIGKILL).

    half: a write is half done before; again: all that follow fail, too.
    """

    kind: str
    number: int
    error: int = 0
    half: bool = False
    again: bool = False


@dataclass(frozen=True)
class Outcome:
    """How processes ended: exit codes (None: one hung and was killed), what they said, what they did to files."""

    codes: list[int | None]
    out: list[str]
    err: list[str]
    counts: dict[str, int]
    hit: bool

    @property
    def code(self) -> int | None:
        """Of the first."""
        return self.codes[0]


class Forked:
    """The process that forks."""

    def __init__(self, folder: Path) -> None:
        compiler = shutil.which("cc")
        assert compiler is not None
        self._told, library = folder / "told", folder / "interpose.so"
        source = str(HERE / "interpose.c")
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(library), source, "-ldl"], check=True)
        environment = {
            **os.environ, "LD_PRELOAD": str(library), "XLA_FLAGS": compiling.FLAGS, "JAX_PLATFORMS": "cpu",
            "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "JAX_COMPILATION_CACHE_DIR": str(folder / "cache"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
            "PYTHONPATH": str(HERE.parents[1]),
        }  # fmt: skip
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "server.py")],
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._answer()

    def run(
        self, folder: Path, *commands: Command, fault: Fault | None = None, env: Mapping[str, str] | None = None,
        before: str = "", seconds: float = 300.0,
    ) -> Outcome:  # fmt: skip
        """Run commands in a folder, all at once; the first may meet a fault.

        Args:
            folder: where they run, and below which operations are counted.
            commands: one or several.
            fault: what happens to the first.
            env: changes to the environment.
            before: Python's text that each runs first, as the process it will be.
            seconds: after which they are killed.
        """
        request: dict[str, Any] = {
            "cwd": str(folder), "told": str(self._told), "commands": commands, "env": dict(env or {}),
            "before": before, "seconds": seconds, "fault": None if fault is None else vars(fault),
        }  # fmt: skip
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._answer()
        said = [
            [Path(f"{self._told}.{i}.{end}").read_text(errors="replace") for i in range(len(commands))]
            for end in ("out", "err")
        ]
        return Outcome(answer["codes"], said[0], said[1], answer["counts"], answer["hit"])

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the forking process has ended"
        found: dict[str, Any] = json.loads(line)
        return found
