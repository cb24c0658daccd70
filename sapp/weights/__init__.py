"""How pessimism is spread over states: occupancy ratios, the map from ratios to weights, and the controls."""

from sapp.weights.base import RatioWeights, StateWeights, Uniform, WrappedWeights
from sapp.weights.controls import (
    ConstantWeights,
    Control,
    ControlKind,
    FrozenWeights,
    MatchedWeights,
    RandomWeights,
    RescaledWeights,
    ShuffledWeights,
    control,
)
from sapp.weights.dualdice import DualDICE
from sapp.weights.infonce import OccupancyInfoNCE
from sapp.weights.occupancy import OccupancyModel
from sapp.weights.transforms import Clip, Identity, LogMinMax, Power, Transform

__all__ = [
    "Clip",
    "ConstantWeights",
    "Control",
    "ControlKind",
    "DualDICE",
    "FrozenWeights",
    "Identity",
    "LogMinMax",
    "MatchedWeights",
    "OccupancyInfoNCE",
    "OccupancyModel",
    "Power",
    "RandomWeights",
    "RatioWeights",
    "RescaledWeights",
    "ShuffledWeights",
    "StateWeights",
    "Transform",
    "Uniform",
    "WrappedWeights",
    "control",
]
