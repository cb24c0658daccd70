"""Networks and densities: multilayer perceptrons, ensembles, policies, tanh-Gaussian and mixture densities, a VAE."""

from sapp.core.precision import Precision
from sapp.networks.action_gradient import values_and_action_gradients
from sapp.networks.action_scores import MLPScores
from sapp.networks.conv import ConvScores, DefaultScores, Encoder
from sapp.networks.deterministic import ClippedGaussian, DeterministicActor, MeanActor, NoisyPolicy
from sapp.networks.ensemble import (
    DropoutCritic,
    LayerNormCritic,
    action_gradients,
    make_critics,
    many,
    orthogonal,
    small_actor,
    small_head,
)
from sapp.networks.gaussian import GaussianActor, NarrowGaussianActor, TanhGaussian
from sapp.networks.mixture import BehaviourDensity
from sapp.networks.mlp import MLP, Linear, StateActionNetwork, ensemble
from sapp.networks.policy import BestOf, Distribution, Normalised, Normaliser, Policy, best
from sapp.networks.vae import CVAE, vae_loss

__all__ = [
    "CVAE",
    "MLP",
    "BehaviourDensity",
    "BestOf",
    "ClippedGaussian",
    "ConvScores",
    "DefaultScores",
    "DeterministicActor",
    "Distribution",
    "DropoutCritic",
    "Encoder",
    "GaussianActor",
    "LayerNormCritic",
    "Linear",
    "MLPScores",
    "MeanActor",
    "NarrowGaussianActor",
    "NoisyPolicy",
    "Normalised",
    "Normaliser",
    "Policy",
    "Precision",
    "StateActionNetwork",
    "TanhGaussian",
    "action_gradients",
    "best",
    "ensemble",
    "make_critics",
    "many",
    "orthogonal",
    "small_actor",
    "small_head",
    "vae_loss",
    "values_and_action_gradients",
]
