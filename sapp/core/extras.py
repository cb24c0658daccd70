"""What is not in the base installation: one place for the sentence that says what to install."""

from __future__ import annotations

import importlib
from typing import Any

from sapp.core.errors import SappError

DISTRIBUTION = "sapp-rl"
"""The name to install; the package that is imported, and the command, are called sapp."""


def install_line(extra: str) -> str:
    """The command that adds an extra, such as ``pip install 'sapp-rl[onnx]'``."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def missing(what: str, package: str, extra: str) -> SappError:
    """The error to raise where a package of an extra is not installed.

    Args:
        what: needs it, such as "exporting to ONNX".
        package: that is not there, by the name it is imported by.
        extra: that brings it.
    """
    return SappError(f"{what} needs {package}, which is not installed; run: {install_line(extra)}")


def require(module: str, extra: str, what: str) -> Any:
    """Import a module of an extra, or say in one line what to install; see ``missing``."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        if error.name is not None and error.name.partition(".")[0] != package:  # it is there, but does not load
            raise SappError(f"{what} needs {package}, which cannot be imported ({error})") from None
        raise missing(what, package, extra) from None
