"""How pessimism is spread over states: occupancy ratios, the map from ratios to weights, and the controls.

Names are imported when first used: the registry of weights (``sapp.weights.registry``) is read without JAX.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sapp.core.lazy import attach

_HOMES = {
    "sapp.weights.base": ("RatioWeights", "StateWeights", "Uniform", "WrappedWeights"),
    "sapp.weights.controls": (
        "ConstantWeights", "Control", "ControlKind", "FrozenWeights", "MatchedWeights", "RandomWeights",
        "RescaledWeights", "ShuffledWeights", "control",
    ),
    "sapp.weights.dualdice": ("DualDICE",),
    "sapp.weights.infonce": ("OccupancyInfoNCE",),
    "sapp.weights.occupancy": ("OccupancyModel",),
    "sapp.weights.transforms": ("Clip", "Identity", "LogMinMax", "Power", "Transform"),
}  # fmt: skip

if TYPE_CHECKING:  # so that type checkers and editors see what __getattr__ brings
    from sapp.weights.base import RatioWeights as RatioWeights
    from sapp.weights.base import StateWeights as StateWeights
    from sapp.weights.base import Uniform as Uniform
    from sapp.weights.base import WrappedWeights as WrappedWeights
    from sapp.weights.controls import ConstantWeights as ConstantWeights
    from sapp.weights.controls import Control as Control
    from sapp.weights.controls import ControlKind as ControlKind
    from sapp.weights.controls import FrozenWeights as FrozenWeights
    from sapp.weights.controls import MatchedWeights as MatchedWeights
    from sapp.weights.controls import RandomWeights as RandomWeights
    from sapp.weights.controls import RescaledWeights as RescaledWeights
    from sapp.weights.controls import ShuffledWeights as ShuffledWeights
    from sapp.weights.controls import control as control
    from sapp.weights.dualdice import DualDICE as DualDICE
    from sapp.weights.infonce import OccupancyInfoNCE as OccupancyInfoNCE
    from sapp.weights.occupancy import OccupancyModel as OccupancyModel
    from sapp.weights.transforms import Clip as Clip
    from sapp.weights.transforms import Identity as Identity
    from sapp.weights.transforms import LogMinMax as LogMinMax
    from sapp.weights.transforms import Power as Power
    from sapp.weights.transforms import Transform as Transform

__getattr__, __dir__ = attach(__name__, _HOMES)
__all__ = sorted(name for names in _HOMES.values() for name in names)
