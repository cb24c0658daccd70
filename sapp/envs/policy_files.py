"""Several policies in one safetensors file: arrays by "name/array", and JSON beside them. Nothing is executed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sapp.core.errors import SappError
from sapp.core.files import write_aside
from sapp.envs.policies import TanhGaussianPolicy, policy_from_arrays


def save_policies(
    path: str | Path, policies: Mapping[str, TanhGaussianPolicy], information: Mapping[str, Any], half: bool = False
) -> None:
    """Writes policies; the file appears whole or not at all.

    Args:
        path: of the file.
        policies: by name.
        information: JSON kept beside them.
        half: store float16, half the size. What is stored is then the policy: `rounded` gives it before storing.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    kind = np.float16 if half else np.float32
    arrays = {
        f"{name}/{key}": np.ascontiguousarray(array, kind)
        for name, policy in policies.items()
        for key, array in policy.arrays().items()
    }
    metadata = {"sapp": json.dumps({"kind": "policies", **information}, ensure_ascii=False)}

    def write(temporary: Path) -> None:
        try:
            save_file(arrays, temporary, metadata=metadata)
        except SafetensorError as error:  # how it reports a full disk
            raise OSError(str(error)) from None

    write_aside(Path(path), write)


def load_policies(path: str | Path) -> tuple[dict[str, TanhGaussianPolicy], dict[str, Any]]:
    """Reads what `save_policies` wrote: the policies by name, in float32, and the JSON beside them."""
    from safetensors import SafetensorError, safe_open

    path = Path(path)
    if not path.is_file():
        raise SappError(f"{path}: no such policy file")
    found: dict[str, dict[str, np.ndarray]] = {}
    try:
        with safe_open(path, framework="numpy") as file:
            information = json.loads((file.metadata() or {}).get("sapp", "null"))
            for key in file.keys():  # noqa: SIM118 (not a dictionary)
                name, _, array = key.rpartition("/")
                found.setdefault(name, {})[array] = file.get_tensor(key).astype(np.float32)
    except (SafetensorError, OSError, ValueError) as error:
        raise SappError(f"{path}: damaged or not a policy file ({str(error).splitlines()[0]}); make it again") from None
    if not isinstance(information, dict) or information.get("kind") != "policies":
        raise SappError(f"{path}: a safetensors file, but not one of sapp's policies")
    return {name: policy_from_arrays(path, arrays) for name, arrays in found.items()}, information


def rounded(policy: TanhGaussianPolicy) -> TanhGaussianPolicy:
    """The policy with weights rounded to float16, as `save_policies(half=True)` stores it."""
    half = {key: array.astype(np.float16).astype(np.float32) for key, array in policy.arrays().items()}
    return policy_from_arrays("rounded policy", half)
