"""Ours: a preset for halfcheetah-medium as ``sapp.train`` runs it for one member, past its warm starts."""

from __future__ import annotations

import sys

import jax
from algorithms import DATASET
from worker import open_answers, serve
from worker_sapp import task

import sapp

if __name__ == "__main__":
    answers = open_answers()
    algorithm = sapp.preset(sys.argv[1], DATASET)
    serve({"step": task(algorithm, algorithm.preparation + 100_000)}, {"jax": jax.__version__}, answers)
