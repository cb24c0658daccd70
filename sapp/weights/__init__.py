"""How pessimism is spread over states: occupancy ratios, the map from ratios to weights, and the controls."""

from sapp.weights.base import StateWeights, Uniform
from sapp.weights.controls import (
    KINDS,
    ConstantWeights,
    Control,
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
    "KINDS",
    "Clip",
    "ConstantWeights",
    "Control",
    "DualDICE",
    "FrozenWeights",
    "Identity",
    "LogMinMax",
    "MatchedWeights",
    "OccupancyInfoNCE",
    "OccupancyModel",
    "Power",
    "RandomWeights",
    "RescaledWeights",
    "ShuffledWeights",
    "StateWeights",
    "Transform",
    "Uniform",
    "control",
]
