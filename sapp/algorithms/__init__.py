"""How pessimism is made: one file per algorithm, shared pieces once.

Names are imported when first used: the registry of algorithms (``sapp.algorithms.registry``) is read without JAX.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sapp.core.lazy import attach

_HOMES = {
    "sapp.algorithms.base": ("Algorithm",),
    "sapp.algorithms.bc": ("BC",),
    "sapp.algorithms.bcq": ("BCQ",),
    "sapp.algorithms.bear": ("BEAR",),
    "sapp.algorithms.brac": ("BRAC",),
    "sapp.algorithms.cql": ("CQL",),
    "sapp.algorithms.discrete_bc": ("DiscreteBC",),
    "sapp.algorithms.discrete_cql": ("DiscreteCQL",),
    "sapp.algorithms.dqn": ("DQN",),
    "sapp.algorithms.edac": ("EDAC",),
    "sapp.algorithms.fisher_brc": ("FisherBRC",),
    "sapp.algorithms.iql": ("IQL",),
    "sapp.algorithms.rebrac": ("ReBRAC",),
    "sapp.algorithms.rem": ("REM",),
    "sapp.algorithms.sac": ("SAC",),
    "sapp.algorithms.td3bc": ("TD3BC",),
    "sapp.algorithms.uwac": ("UWAC",),
    "sapp.networks.action_scores": ("MLPScores",),
    "sapp.networks.conv": ("ConvScores", "DefaultScores"),
}

if TYPE_CHECKING:  # so that type checkers and editors see what __getattr__ brings
    from sapp.algorithms.base import Algorithm as Algorithm
    from sapp.algorithms.bc import BC as BC
    from sapp.algorithms.bcq import BCQ as BCQ
    from sapp.algorithms.bear import BEAR as BEAR
    from sapp.algorithms.brac import BRAC as BRAC
    from sapp.algorithms.cql import CQL as CQL
    from sapp.algorithms.discrete_bc import DiscreteBC as DiscreteBC
    from sapp.algorithms.discrete_cql import DiscreteCQL as DiscreteCQL
    from sapp.algorithms.dqn import DQN as DQN
    from sapp.algorithms.edac import EDAC as EDAC
    from sapp.algorithms.fisher_brc import FisherBRC as FisherBRC
    from sapp.algorithms.iql import IQL as IQL
    from sapp.algorithms.rebrac import ReBRAC as ReBRAC
    from sapp.algorithms.rem import REM as REM
    from sapp.algorithms.sac import SAC as SAC
    from sapp.algorithms.td3bc import TD3BC as TD3BC
    from sapp.algorithms.uwac import UWAC as UWAC
    from sapp.networks.action_scores import MLPScores as MLPScores
    from sapp.networks.conv import ConvScores as ConvScores
    from sapp.networks.conv import DefaultScores as DefaultScores

__getattr__, __dir__ = attach(__name__, _HOMES)
__all__ = sorted(name for names in _HOMES.values() for name in names)
