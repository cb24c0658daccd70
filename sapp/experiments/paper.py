"""The paper's published numbers, to be shown beside ours; nothing is computed from them but their own averages.

Normalised scores at one million steps, three seeds. Two slips are kept as printed and named in ``REMARKS``.
"""

from __future__ import annotations

from sapp.data.benchmark_names import d4rl_parts

QUALITIES = ("medium", "medium-replay", "full-replay", "expert", "medium-expert", "random")
METHODS = ("UWAC", "BEAR", "BCQ", "EDAC", "TD3+BC", "CQL", "F-BRC", "SA-CQL")
"""Columns of Table 1, in the paper's order."""

_TABLE_1: dict[str, tuple[tuple[float, ...], ...]] = {
    "halfcheetah": (
        (42.0, 42.0, 47.7, 64.2, 48.8, 52.5, 48.3, 58.1),
        (36.1, 36.7, 44.7, 63.3, 44.6, 49.3, 43.9, 55.1),
        (62.3, 62.5, 74.5, 82.5, 74.3, 80.5, 71.4, 83.1),
        (92.5, 91.6, 96.6, 4.8, 97.1, 100.5, 95.4, 98.2),
        (42.95, 45.3, 92.8, 72.2, 83.4, 68.5, 94.0, 81.2),
        (2.3, 2.3, 2.2, 28.4, 10.7, 26.2, 26.9, 31.0),
    ),
    "hopper": (
        (49.7, 49.5, 63.3, 101.3, 60.5, 74.1, 90.9, 86.3),
        (30.8, 37.2, 25.4, 101.5, 53.4, 98.3, 93.1, 100.1),
        (21.9, 69.5, 34.6, 106.1, 89.0, 107.3, 106.0, 108.0),
        (111.4, 78.4, 59.9, 29.8, 108.4, 112.1, 111.5, 111.8),
        (50.9, 49.7, 112.4, 88.1, 102.0, 103.0, 101.3, 111.8),
        (2.6, 7.2, 7.3, 7.7, 8.9, 12.1, 11.03, 17.7),
    ),
    "walker2d": (
        (78.3, 74.6, 77.3, 89.8, 85.0, 85.4, 81.7, 87.7),
        (25.5, 5.4, 34.3, 81.7, 84.2, 82.9, 86.6, 90.1),
        (25.6, 93.3, 57.4, 98.6, 94.6, 97.7, 96.7, 102.3),
        (108.0, 105.8, 110.7, 37.7, 110.0, 110.4, 108.9, 109.2),
        (107.16, 108.3, 109.6, 113.9, 110.0, 109.6, 109.5, 109.8),
        (2.8, 4.9, 4.3, 0.0, 1.8, 0.0, 2.4, 4.1),
    ),
}
"""Table 1: rows by quality in the order of ``QUALITIES``, columns in the order of ``METHODS``."""

PRESETS = {
    "uwac": "UWAC", "bear": "BEAR", "bcq": "BCQ", "edac": "EDAC", "td3bc": "TD3+BC", "cql": "CQL",
    "fisher-brc": "F-BRC", "sa-cql": "SA-CQL",
}  # fmt: skip
"""Columns of the table by the names that ``sapp train`` knows them by."""

SWEEP_QUALITIES = ("medium", "medium-replay", "full-replay", "random")
ALPHAS = (2.5, 5.0, 10.0, 25.0)
_TABLE_6: dict[str, tuple[tuple[float, ...], ...]] = {
    "halfcheetah": (
        (57.0, 51.6, 82.6, 27.1), (52.5, 49.3, 80.5, 26.2), (49.4, 47.56, 78.6, 18.6), (46.4, 45.3, 76.8, 12.8),
    ),
    "hopper": ((71.3, 102.0, 85.7, 6.3), (74.1, 90.3, 107.3, 12.1), (73.4, 97.2, 103.0, 8.0), (61.8, 98.3, 100.8, 7.5)),
    "walker2d": ((0.0, 52.0, 101.0, 1.9), (85.4, 82.9, 97.7, 0.0), (83.4, 86.2, 94.9, 0.0), (82.0, 72.6, 92.5, 3.9)),
}  # fmt: skip
"""Table 6: CQL by its weight α (rows, ``ALPHAS``) and quality (columns, ``SWEEP_QUALITIES``)."""

_TABLE_7: dict[str, tuple[float, ...]] = {
    "halfcheetah": (54.2, 50.6, 82.4, 96.8, 85.8, 27.0),
    "hopper": (76.8, 101.5, 107.2, 112.5, 104.0, 8.1),
}
"""Table 7: SA-CQL at b0 = 0.5, in the order of ``QUALITIES``."""

TABLE_2: dict[str, dict[str, tuple[float, float]]] = {
    "pong": {"REM": (10.1, 3.3), "CQL": (15.65, 2.2), "SA-CQL": (16.9, 2.2)},
    "qbert": {"REM": (6778, 248), "CQL": (13844, 736), "SA-CQL": (17562, 972)},
    "seaquest": {"REM": (1523, 345), "CQL": (1147, 408), "SA-CQL": (1667, 677)},
    "breakout": {"REM": (81, 2.5), "CQL": (93, 4.2), "SA-CQL": (99, 3.1)},
}
"""Table 2, Atari: mean and standard deviation of the return by game and method, from DQN-Replay's logs."""

REMARKS = (
    "The paper prints 75.5 as the average of its CQL column; the printed scores average 76.1.",
    "The paper's CQL on hopper-medium-replay is 98.3 in its Table 1 and 90.3 (at the same weight) in its Table 6.",
)


def published(experiment: str, variant: str, dataset: str) -> float | None:
    """The paper's score of a variant of an experiment on a dataset; None where it prints none."""
    if (game := dataset.split("-")[0]) in TABLE_2:
        return TABLE_2[game].get(variant, (None,))[0]
    known = d4rl_parts(dataset)
    if known is None or known[0] not in _TABLE_1 or known[1] not in QUALITIES:
        return None
    environment, quality = known
    variant = PRESETS.get(variant, variant)
    if experiment == "alpha-sweep" and variant.startswith("CQL"):
        alpha = float(variant.removeprefix("CQL").removeprefix(" α=") or 5.0)
        if alpha not in ALPHAS or quality not in SWEEP_QUALITIES:
            return None
        return _TABLE_6[environment][ALPHAS.index(alpha)][SWEEP_QUALITIES.index(quality)]
    if variant == "SA-CQL b0=0.5":
        values = _TABLE_7.get(environment)
        return None if values is None else values[QUALITIES.index(quality)]
    if variant not in METHODS:
        return None
    return _TABLE_1[environment][QUALITIES.index(quality)][METHODS.index(variant)]
