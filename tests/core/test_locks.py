"""The portable lock between two processes, and an import without anything of Unix."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import sapp
from sapp.core.errors import SappError
from sapp.core.locks import locked

HOLD = """
import sys, time
from pathlib import Path
from sapp.core.locks import locked
with locked(Path(sys.argv[1]), "held"):
    print("ready", flush=True)
    time.sleep(60)
"""
UNIX = ("fcntl", "grp", "resource", "syslog", "termios", "tty")
HIDDEN = f"""
import sys
for name in {UNIX!r}:
    sys.modules[name] = None  # as where there is no such module
import sapp, sapp.core.files, sapp.core.locks
from pathlib import Path
with sapp.core.locks.locked(Path(sys.argv[1]), "held"):
    sapp.core.files.write_text(Path(sys.argv[1]).with_name("text"), "written")
"""


def test_of_two_processes_one_holds_the_lock_and_its_death_lets_go(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    other = subprocess.Popen([sys.executable, "-c", HOLD, path], stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        with pytest.raises(SappError, match="another one has it"), locked(path, "another one has it"):
            pass
        os.kill(other.pid, getattr(signal, "SIGKILL", signal.SIGTERM))
        other.wait()
        with locked(path, "another one has it"):
            assert path.exists()
    finally:
        other.kill()
        other.wait()


def test_import_lock_and_write_without_modules_of_unix(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-W", "error", "-c", "import sys; sys.modules['fcntl'] = None; import sapp"])
    assert done.returncode == 0
    done = subprocess.run([sys.executable, "-c", HIDDEN, tmp_path / ".lock"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "text").read_text() == "written"


def test_no_module_imports_what_only_unix_has() -> None:
    """Inside functions it may be tried."""
    for path in sorted(Path(sapp.__file__).parent.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {name.partition(".")[0] for name in names} & {*UNIX, "posix", "pwd"}, path
