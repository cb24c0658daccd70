"""What is not in the base installation: one place for the sentence that says what to install."""

from __future__ import annotations

import importlib
from typing import Any

from sapp.core.errors import SappError

DISTRIBUTION = "sapp-rl"
"""The name to install; the package that is imported, and the command, are called sapp."""

EXTRAS = {
    "ale_py": "atari",
    "gymnasium_robotics": "minari",
    "huggingface_hub": "hub",
    "matplotlib": "plot",
    "minari": "minari",
    "mlflow": "mlflow",
    "mujoco": "mujoco",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "PIL": "plot",
    "pyarrow": "tables",
    "ray": "ray",
    "tensorboardX": "tensorboard",
    "wandb": "wandb",
}
"""Packages that are imported only where they are needed, and the extra that brings each."""


def installed(package: str) -> bool:
    """Whether a package of an extra can be imported: for what can be done without it, too."""
    try:
        importlib.import_module(package)
    except ImportError:
        return False
    return True


def install_line(package: str) -> str:
    """The command that installs a package of an extra, such as ``pip install 'sapp-rl[onnx]'``."""
    return f"pip install '{DISTRIBUTION}[{EXTRAS[package]}]'"


def missing(what: str, package: str) -> SappError:
    """The error to raise where a package of an extra is not installed.

    Args:
        what: needs it, such as "exporting to ONNX".
        package: that is not there, by the name it is imported by.
    """
    return SappError(f"{what} needs {package}, which is not installed; run: {install_line(package)}")


def require(module: str, what: str) -> Any:
    """Import a module of an extra, or say in one line what to install.

    Args:
        module: such as "matplotlib.figure".
        what: needs it, such as "a figure".
    """
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if (error.name or package).partition(".")[0] != package:  # it is there, but something that it needs is not
            raise SappError(f"{what} needs {package}, which cannot be imported ({error})") from None
        raise missing(what, package) from None
