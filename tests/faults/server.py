"""A process that has imported everything and forks itself for each command: a real process for a few milliseconds.

It reads requests from its standard input, a line of JSON each, and answers with a line each. No JAX backend is made in
it, so that there are no threads to lose in a fork.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import mmap
import os
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

KINDS = ("open", "read", "list", "write", "sync", "rename", "remove", "mkdir")


class Plan(ctypes.Structure):
    """What interpose.c calls ``struct plan``."""

    _fields_ = (
        ("counts", ctypes.c_long * len(KINDS)), ("kind", ctypes.c_int), ("number", ctypes.c_long),
        ("error", ctypes.c_int), ("half", ctypes.c_int), ("again", ctypes.c_int), ("hit", ctypes.c_int),
        ("folder", ctypes.c_char * 4096),
    )  # fmt: skip


def warm_up() -> None:
    """Import what commands import, without a backend."""
    import pkgutil

    import sapp

    found = [each.name for each in pkgutil.walk_packages(sapp.__path__, "sapp.")]
    others = (
        "h5py", "pandas", "pyarrow.parquet", "pyarrow.csv", "pydantic", "typer._adapters", "minari",
        "matplotlib.figure", "matplotlib.backends.backend_agg", "onnx", "onnxruntime", "safetensors.numpy",
        "scipy.stats", "rich.table", "rich.progress", "jinja2", "optax", "PIL.Image", "filelock", "sqlite3",
    )  # fmt: skip
    for name in (*found, *others):
        if not name.endswith("__main__"):
            with contextlib.suppress(ImportError):
                importlib.import_module(name)


def serve() -> None:
    """Answer requests until there are no more."""
    library = ctypes.CDLL(os.environ["LD_PRELOAD"]) if os.environ.get("LD_PRELOAD") else None
    memory = mmap.mmap(-1, ctypes.sizeof(Plan))
    plan = Plan.from_buffer(memory)
    warm_up()
    answers = os.dup(1)
    os.write(answers, json.dumps({"ready": True}).encode() + b"\n")
    for line in sys.stdin:
        request = json.loads(line)
        ctypes.memset(ctypes.addressof(plan), 0, ctypes.sizeof(Plan))
        plan.kind = -1
        if fault := request.get("fault"):
            plan.kind, plan.number = KINDS.index(fault["kind"]), fault["number"]
            plan.error, plan.half, plan.again = fault["error"], fault["half"], fault["again"]
        plan.folder = request["cwd"].encode()
        began = time.monotonic()
        children = []
        gate = os.pipe()
        for number, command in enumerate(request["commands"]):
            child = os.fork()
            if not child:
                os.close(gate[1])
                _child(request, command, number, gate[0], library, plan)
            children.append(child)
        os.close(gate[0])
        time.sleep(0.002 * (len(children) > 1))
        os.close(gate[1])  # all begin now
        codes = _wait(children, began + request.get("seconds", 60.0))
        answer: dict[str, Any] = {
            "codes": codes, "counts": dict(zip(KINDS, plan.counts, strict=True)), "hit": bool(plan.hit),
        }  # fmt: skip
        os.write(answers, json.dumps(answer).encode() + b"\n")


def _wait(children: list[int], deadline: float) -> list[int | None]:
    """Exit codes, None for those that hang and are killed."""
    codes: dict[int, int | None] = {}
    while len(codes) < len(children):
        for child in children:
            if child not in codes:
                found, status = os.waitpid(child, os.WNOHANG)
                if found:
                    codes[child] = os.waitstatus_to_exitcode(status)
                elif time.monotonic() > deadline:
                    os.kill(child, signal.SIGKILL)
                    os.waitpid(child, 0)
                    codes[child] = None
        time.sleep(0.002)
    return [codes[child] for child in children]


def _child(request: dict[str, Any], command: Any, number: int, gate: int, library: Any, plan: Plan) -> None:
    """Run a command: a list of words, or Python's text; never returns."""
    code = 70
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        folder = Path(request["cwd"])
        os.chdir(folder)
        os.environ.update(request.get("env", {}))
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        for descriptor, name in ((1, "out"), (2, "err")):
            file = os.open(f"{request['told']}.{number}.{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
            os.dup2(file, descriptor)
        import faulthandler

        faulthandler.enable()
        names: dict[str, Any] = {"__name__": "__main__"}
        if request.get("before"):
            exec(request["before"], names)
        os.read(gate, 1)  # until all are there
        if library is not None and number == 0:
            library.interpose(ctypes.byref(plan))
        if isinstance(command, str):
            exec(command, names)
            code = 0
        else:
            from sapp.cli.main import main

            code = main(command)
    except BaseException as error:
        if isinstance(error, SystemExit):
            code = int(error.code or 0)
        elif type(error).__name__ == "SappError":
            print(f"sapp: error: {error}", file=sys.stderr)
            code = 2
        else:
            traceback.print_exc()
            code = 1
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve()
