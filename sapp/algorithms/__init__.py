"""How pessimism is made: one file per algorithm, shared pieces once."""

from sapp.algorithms.base import Algorithm
from sapp.algorithms.bc import BC
from sapp.algorithms.bcq import BCQ
from sapp.algorithms.bear import BEAR
from sapp.algorithms.brac import BRAC
from sapp.algorithms.cql import CQL
from sapp.algorithms.discrete_cql import DiscreteCQL, MLPScores
from sapp.algorithms.edac import EDAC
from sapp.algorithms.fisher_brc import FisherBRC
from sapp.algorithms.iql import IQL
from sapp.algorithms.rebrac import ReBRAC
from sapp.algorithms.sac import SAC
from sapp.algorithms.td3bc import TD3BC
from sapp.algorithms.uwac import UWAC

__all__ = [
    "BC",
    "BCQ",
    "BEAR",
    "BRAC",
    "CQL",
    "EDAC",
    "IQL",
    "SAC",
    "TD3BC",
    "UWAC",
    "Algorithm",
    "DiscreteCQL",
    "FisherBRC",
    "MLPScores",
    "ReBRAC",
]
