"""Checkpoints: arrays by name in one safetensors file, checked against the structure that loads them."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from sapp.core.errors import SappError
from sapp.core.files import write_aside

T = TypeVar("T")
FORMAT = 2
"""Raised when the layout of checkpoints changes: older ones are then refused by name."""


_SUM = "information_crc32"


class NoCheckpoint(SappError):
    """A checkpoint that is not there, perhaps not any more: training keeps the newest ones."""


def flatten(tree: Any) -> dict[str, np.ndarray]:
    """Arrays of a pytree by their path."""
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}


def save(path: Path, tree: Any, information: dict[str, Any]) -> None:
    """Write a pytree's arrays and some JSON; the file appears whole or not at all."""
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    arrays = {name: np.asarray(array, order="C") for name, array in flatten(tree).items()}
    checksums = {name: zlib.crc32(array.tobytes()) for name, array in arrays.items()}
    body = {"format": FORMAT, "crc32": checksums, **information}
    # one entry: safetensors writes several in any order, and equal states are equal files
    metadata = {"sapp": json.dumps({**body, _SUM: _sum(body)})}

    def write(temporary: Path) -> None:
        temporary.touch()  # for the usual mode: safetensors puts a file in its place that only its owner can read
        mode = temporary.stat().st_mode
        try:
            save_file(arrays, temporary, metadata=metadata)
            temporary.chmod(mode)
        except SafetensorError as error:  # how it reports a full disk
            raise OSError(str(error)) from None

    write_aside(path, write)


def read_information(path: Path) -> dict[str, Any]:
    """The JSON beside the arrays, after checking that this is a checkpoint of this format."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as handle:
            information = json.loads((handle.metadata() or {}).get("sapp", "null"))
    except (SafetensorError, OSError, ValueError) as error:
        _check_there(path)
        reason = str(error).splitlines()[0]
        raise SappError(f"{path}: damaged or not a checkpoint ({reason}); delete it to use the one before") from None
    if not isinstance(information, dict):
        raise SappError(f"{path}: a safetensors file, but not one of sapp's checkpoints")
    if information.get("format") != FORMAT:
        raise SappError(
            f"{path}: checkpoint format {information.get('format')}, this version reads {FORMAT}; "
            "use the version of sapp named in the run's config.json"
        )
    if information.pop(_SUM, None) != _sum(information) or not isinstance(information.get("crc32"), dict):
        raise SappError(f"{path}: its information is damaged (checksum differs); delete it to use the one before")
    return information


def _sum(information: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(information).encode())


def check_step(path: Path, step: int) -> None:
    """Refuse a checkpoint that is of another step than its name says."""
    if (own := read_information(path).get("step")) != step:
        raise SappError(f"{path}: is the checkpoint of step {own}, whatever its name says; name it so, or delete it")


def _check_there(path: Path) -> None:
    """Say that there is no checkpoint, or that it may not be read, where that is why it cannot be."""
    try:
        with path.open("rb"):
            pass
    except FileNotFoundError:
        raise NoCheckpoint(f"{path}: no such checkpoint") from None
    except OSError as error:
        raise SappError(f"{path}: cannot read ({error.strerror}); make it readable") from None


def load(path: Path, like: T) -> T:
    """Read arrays into the structure of ``like``; another structure or a damaged array is refused."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    information = read_information(path)
    try:
        arrays = load_file(path)
    except (SafetensorError, OSError) as error:
        _check_there(path)
        raise SappError(f"{path}: damaged ({str(error).splitlines()[0]}); delete it to use the one before") from None
    for name, array in arrays.items():
        if zlib.crc32(array.tobytes()) != information["crc32"].get(name):
            raise SappError(f"{path}: array {name} is damaged (checksum differs); delete it to use the one before")
    leaves, structure = jax.tree_util.tree_flatten_with_path(like)
    expected = {jax.tree_util.keystr(key): leaf for key, leaf in leaves}
    if missing := sorted(expected.keys() - arrays.keys()) or sorted(arrays.keys() - expected.keys()):
        raise SappError(f"{path}: does not fit this run's configuration (array {missing[0]} differs)")
    for name, leaf in expected.items():
        if tuple(leaf.shape) != arrays[name].shape or leaf.dtype != arrays[name].dtype:
            raise SappError(
                f"{path}: array {name} is {arrays[name].dtype}{list(arrays[name].shape)}, "
                f"this run's configuration wants {leaf.dtype}{list(leaf.shape)}"
            )
    return jax.tree_util.tree_unflatten(structure, [jnp.asarray(arrays[name]) for name in expected])
