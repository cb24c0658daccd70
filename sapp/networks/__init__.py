"""Networks and densities: multilayer perceptrons, ensembles, tanh-Gaussian and mixture densities."""

from sapp.networks.gaussian import GaussianActor, TanhGaussian
from sapp.networks.mixture import BehaviourDensity
from sapp.networks.mlp import MLP, Linear, Precision, StateActionNetwork, ensemble

__all__ = [
    "MLP",
    "BehaviourDensity",
    "GaussianActor",
    "Linear",
    "Precision",
    "StateActionNetwork",
    "TanhGaussian",
    "ensemble",
]
