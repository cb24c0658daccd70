"""How pessimism is made: one file per algorithm, shared pieces once."""

from sapp.algorithms.base import Algorithm
from sapp.algorithms.cql import CQL

__all__ = ["CQL", "Algorithm"]
