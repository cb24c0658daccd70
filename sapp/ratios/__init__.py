"""How pessimism is spread over states: occupancy ratios, the map from ratios to weights, and the controls."""

from sapp.ratios.base import StateWeights, Uniform
from sapp.ratios.controls import (
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
from sapp.ratios.dualdice import DualDICE
from sapp.ratios.infonce import OccupancyInfoNCE
from sapp.ratios.occupancy import OccupancyModel
from sapp.ratios.transforms import Clip, Identity, LogMinMax, Power, Transform

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
