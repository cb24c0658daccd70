"""The short Atari grid: the paper's variants, with its own settings and cut episodes."""

from __future__ import annotations

from sapp.experiments import atari
from sapp.experiments.datasets import load_dataset
from sapp.experiments.grid import run_key, scaled
from studies.atari.grid import grid


def test_settings_reach_every_variant_and_the_evaluation() -> None:
    declared = grid(scaled("small", steps=60_000))
    assert declared.variants == atari.grid(scaled("small")).variants
    assert (declared.scale.eval_every, declared.scale.eval_max_steps) == (20_000, 3_000)
    for family in declared.families:
        assert family.phases(declared.scale, ["pong"])[0].steps == 10_000
        for make in family.variants.values():
            algorithm = make("pong")
            assert (algorithm.lr, algorithm.target_every, algorithm.network.start) == (1.5e-4, 2_000, "he")
    data, scale = load_dataset("point-6"), declared.scale
    keys = {
        run_key(declared.families[1].variants["REM"]("pong"), data, 0, (), each)
        for each in (scale, scaled("small", steps=60_000))
    }
    assert len(keys) == 2


def test_a_smoke_run_is_the_papers() -> None:
    assert grid(scaled("smoke")).datasets == ("catch-60",)
