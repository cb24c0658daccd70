"""Offline reinforcement learning with state-aware proximal pessimism.

>>> import sapp
>>> data = sapp.load("hopper_medium-v2.hdf5")                           # doctest: +SKIP
>>> run = sapp.train(sapp.CQL(weights=sapp.DualDICE()), data, seeds=3)  # doctest: +SKIP
>>> run.predict(data.observation[0])                                     # doctest: +SKIP

Names are imported when first used, so ``import sapp`` is cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sapp.core.lazy import attach
from sapp.core.version import __version__ as __version__

_HOMES = {
    "sapp.algorithms": (
        "Algorithm", "BC", "BCQ", "BEAR", "BRAC", "ConvScores", "CQL", "DiscreteBC", "DiscreteCQL", "DQN", "EDAC",
        "FisherBRC", "IQL", "ReBRAC", "REM", "TD3BC", "UWAC",
    ),
    "sapp.algorithms.registry": ("preset",),
    "sapp.algorithms.config": ("register",),
    "sapp.weights": (
        "Clip", "ConstantWeights", "Control", "control", "ControlKind", "DualDICE", "FrozenWeights", "Identity",
        "LogMinMax", "MatchedWeights", "OccupancyInfoNCE", "OccupancyModel", "Power", "RandomWeights",
        "RatioWeights", "RescaledWeights", "ShuffledWeights", "StateWeights", "Transform", "Uniform",
    ),
    "sapp.weights.registry": ("state_weights",),
    "sapp.data": ("Dataset", "FrameDataset", "load", "save_npz"),
    "sapp.collect.minari_export": ("save_minari",),
    "sapp.runs.hooks": ("Hook",),
    "sapp.runs.phases": ("Phase", "sa_protocol"),
    "sapp.evaluation.run_evaluation": ("evaluate", "Run"),
    "sapp.training.train": ("resume", "train"),
    "sapp.core.errors": ("SappError",),
    "sapp.core.version": ("__version__",),
}  # fmt: skip

__all__ = [name for names in _HOMES.values() for name in names]

if TYPE_CHECKING:  # so that type checkers and editors see what __getattr__ brings
    from sapp import export as export
    from sapp import hooks as hooks
    from sapp.algorithms import BC as BC
    from sapp.algorithms import BCQ as BCQ
    from sapp.algorithms import BEAR as BEAR
    from sapp.algorithms import BRAC as BRAC
    from sapp.algorithms import CQL as CQL
    from sapp.algorithms import DQN as DQN
    from sapp.algorithms import EDAC as EDAC
    from sapp.algorithms import IQL as IQL
    from sapp.algorithms import REM as REM
    from sapp.algorithms import TD3BC as TD3BC
    from sapp.algorithms import UWAC as UWAC
    from sapp.algorithms import Algorithm as Algorithm
    from sapp.algorithms import ConvScores as ConvScores
    from sapp.algorithms import DiscreteBC as DiscreteBC
    from sapp.algorithms import DiscreteCQL as DiscreteCQL
    from sapp.algorithms import FisherBRC as FisherBRC
    from sapp.algorithms import ReBRAC as ReBRAC
    from sapp.algorithms.config import register as register
    from sapp.algorithms.registry import preset as preset
    from sapp.collect.minari_export import save_minari as save_minari
    from sapp.core.errors import SappError as SappError
    from sapp.data import Dataset as Dataset
    from sapp.data import FrameDataset as FrameDataset
    from sapp.data import save_npz as save_npz
    from sapp.data.load import load as load
    from sapp.evaluation.run_evaluation import Run as Run
    from sapp.evaluation.run_evaluation import evaluate as evaluate
    from sapp.runs.hooks import Hook as Hook
    from sapp.runs.phases import Phase as Phase
    from sapp.runs.phases import sa_protocol as sa_protocol
    from sapp.training.train import resume as resume
    from sapp.training.train import train as train
    from sapp.weights import Clip as Clip
    from sapp.weights import ConstantWeights as ConstantWeights
    from sapp.weights import Control as Control
    from sapp.weights import ControlKind as ControlKind
    from sapp.weights import DualDICE as DualDICE
    from sapp.weights import FrozenWeights as FrozenWeights
    from sapp.weights import Identity as Identity
    from sapp.weights import LogMinMax as LogMinMax
    from sapp.weights import MatchedWeights as MatchedWeights
    from sapp.weights import OccupancyInfoNCE as OccupancyInfoNCE
    from sapp.weights import OccupancyModel as OccupancyModel
    from sapp.weights import Power as Power
    from sapp.weights import RandomWeights as RandomWeights
    from sapp.weights import RatioWeights as RatioWeights
    from sapp.weights import RescaledWeights as RescaledWeights
    from sapp.weights import ShuffledWeights as ShuffledWeights
    from sapp.weights import StateWeights as StateWeights
    from sapp.weights import Transform as Transform
    from sapp.weights import Uniform as Uniform
    from sapp.weights import control as control
    from sapp.weights.registry import state_weights as state_weights

__getattr__, __dir__ = attach(__name__, _HOMES, ("export", "hooks"))
