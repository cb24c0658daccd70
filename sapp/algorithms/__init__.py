"""How pessimism is made: one file per algorithm, shared pieces once."""

from sapp.algorithms.base import Algorithm
from sapp.algorithms.bc import BC
from sapp.algorithms.bcq import BCQ
from sapp.algorithms.bear import BEAR
from sapp.algorithms.brac import BRAC
from sapp.algorithms.cql import CQL
from sapp.algorithms.discrete_bc import DiscreteBC
from sapp.algorithms.discrete_cql import DiscreteCQL
from sapp.algorithms.dqn import DQN
from sapp.algorithms.edac import EDAC
from sapp.algorithms.fisher_brc import FisherBRC
from sapp.algorithms.iql import IQL
from sapp.algorithms.rebrac import ReBRAC
from sapp.algorithms.rem import REM
from sapp.algorithms.sac import SAC
from sapp.algorithms.td3bc import TD3BC
from sapp.algorithms.uwac import UWAC
from sapp.networks.action_scores import MLPScores
from sapp.networks.conv import ConvScores, DefaultScores

__all__ = [
    "BC",
    "BCQ",
    "BEAR",
    "BRAC",
    "CQL",
    "DQN",
    "EDAC",
    "IQL",
    "REM",
    "SAC",
    "TD3BC",
    "UWAC",
    "Algorithm",
    "ConvScores",
    "DefaultScores",
    "DiscreteBC",
    "DiscreteCQL",
    "FisherBRC",
    "MLPScores",
    "ReBRAC",
]
