"""What fields of logs are called: one set of names for every format, with those of RLlib, D4RL, Minari, d3rlpy, Gym."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches

from sapp.core.errors import SappError
from sapp.data.ledger import listed

VECTORS: dict[str, tuple[str, ...]] = {
    "observation": ("observation", "observations", "obs", "state", "states"),
    "action": ("action", "actions", "act", "acts"),
    "next_observation": (
        "next_observation", "next_observations", "next_obs", "new_obs", "obs_next", "next_state", "next_states",
        "new_observation", "new_observations", "new_state", "new_states", "observation_next",
    ),
    "action_mask": (
        "action_mask", "action_masks", "legal_actions", "legal_action_mask", "legal_actions_mask", "valid_actions",
        "valid_action_mask", "available_actions", "avail_actions", "infos/action_mask",
    ),
    "next_action_mask": (
        "next_action_mask", "next_action_masks", "new_action_mask", "next_legal_actions", "next_available_actions",
    ),
}  # fmt: skip
"""Fields of several numbers: one column, or one per dimension with a number behind its name."""
SCALARS: dict[str, tuple[str, ...]] = {
    "reward": ("reward", "rewards", "rew", "rews"),
    "terminal": (
        "terminal", "terminals", "terminated", "terminateds", "termination", "terminations", "is_terminal",
    ),
    "done": ("done", "dones", "is_done", "episode_end", "end_of_episode", "is_last"),
    "timeout": (
        "timeout", "timeouts", "truncated", "truncateds", "truncation", "truncations", "is_truncated", "time_out",
        "timed_out", "time_limit_reached",
    ),
    "episode": (
        "episode", "episodes", "episode_id", "eps_id", "ep_id", "episode_index", "episode_number", "trajectory",
        "trajectory_id", "traj_id", "trajectory_index",
    ),
    "time": ("step", "time", "timestep", "time_step", "t", "step_id", "frame_index", "timestamp"),
    "log_prob": (
        "log_prob", "log_probs", "action_log_prob", "action_log_probs", "action_logp", "logp", "behavior_log_prob",
        "behaviour_log_prob", "infos/action_log_probs",
    ),
    "probability": (
        "action_prob", "action_probs", "action_probability", "propensity", "propensity_score", "pscore",
        "behavior_prob", "behaviour_prob",
    ),
}  # fmt: skip
"""Fields of one number per row."""
ROLES = {**VECTORS, **SCALARS}
"""Every field, ours first among its names."""
FIELD_DOCS = {
    "done": "done (every end of an episode)",
    "terminal": "terminal (the task ended)",
    "timeout": "timeout (the recording ended)",
    "time": "the order of rows",
    "action_mask": "action_mask (which actions were possible)",
    "next_action_mask": "next_action_mask (which actions were possible after the step)",
    "log_prob": "log-density of the behaviour policy",
    "probability": "probability of the action under the behaviour policy",
}
"""What a field is, where its name does not say it."""
_FIRST_OF_MANY = ("episode", "time", "log_prob", "probability", "done")
"""Fields of which a log may well have several columns: the first in the order above counts."""
_STRUCTURE = ("observation", "action", "reward", "next_observation", "terminal", "done", "timeout", "episode")
"""Fields that change what the data mean: one that seems to be there under another name may not be passed over."""
_KNOWN = re.compile(
    r"infos?|info_.*|unroll_id|agent_(id|index)|env_id|module_id|type|prev_(actions?|rewards?)|vf_preds|advantages|"
    r"value_targets|action_dist_inputs|weights?|seed|(dataset_|task_)?index|__index_level_\d+__|unnamed: \d+|count"
)
"""Columns that logs often have and that mean nothing to learning."""
_OPPOSITE = re.compile(r"masks?|not_?dones?|non_?terminals?|not_?terminals?|not_?terminated|continues?")
"""Names of columns that are 1 where the task goes on."""
NOT_NEEDED = "not needed"
"""Why these are not used."""


def normal(name: str) -> str:
    """A name without capitals, accents of format, and the number of a dimension."""
    return re.sub(r"[_. \[]?\d+\]?$", "", name.strip().lower())


def detect(names: Sequence[str], where: str, roles: Collection[str] = tuple(ROLES)) -> dict[str, tuple[str, ...]]:
    """Which columns hold which field, by their names."""
    found: dict[str, tuple[str, ...]] = {}
    for role, words in VECTORS.items():
        if role not in roles:
            continue
        ways = [way for word in words for way in _vector(names, word, where)]
        if len(ways) > 1:
            raise _twice(role, ways[0][0], ways[1][0], where)
        if ways:
            found[role] = ways[0]
    lower = {name.strip().lower(): name for name in reversed(names)}
    for role, words in SCALARS.items():
        if role not in roles:
            continue
        present = [lower[word] for word in words if word in lower]
        if len(present) > 1 and role not in _FIRST_OF_MANY:
            raise _twice(role, present[0], present[1], where)
        if present:
            found[role] = (present[0],)
    return found


def why_unused(name: str, taken: Collection[str], ignored: Collection[str]) -> str:
    """Why a column is not used, in words."""
    if name in ignored:
        return "ignored, as asked"
    if _KNOWN.fullmatch(name.strip().lower()):
        return NOT_NEEDED
    role = resembles(name)
    if role is None:
        return "no field goes by that name"
    return f"{role} is taken from another column" if role in taken else f"looks like {role}, but is not mapped to it"


def resembles(name: str) -> str | None:
    """The field that a column seems to be, by its name; None where it is none."""
    plain = normal(name)
    every = {word: role for role, words in ROLES.items() for word in words if len(word) > 1}
    if plain in every:
        return every[plain]
    near = get_close_matches(plain, list(every), n=1, cutoff=0.8)
    return every[near[0]] if near else None


def refuse_near_misses(unused: Sequence[str], taken: Mapping[str, object], where: str) -> None:
    """Raise where a column that is not used seems to be a field that nothing else gives.

    Args:
        unused: columns without a use that were not said to be ignored.
        taken: fields that have a column.
        where: what error messages call the table.
    """
    for name in unused:
        role = resembles(name)
        if role is None or role in taken or role not in _STRUCTURE or _KNOWN.fullmatch(name.strip().lower()):
            continue
        if role in ("done", "terminal") and ("done" in taken or "terminal" in taken):
            continue
        near = get_close_matches(normal(name), ROLES[role], n=1, cutoff=0.0)[0]
        raise SappError(
            f"{where}: unknown column {name!r}, which looks like {role} (did you mean {near!r}?); rename it, map it "
            f"(columns={{{role!r}: {name!r}}} or --map {role}={name}), or say that it means nothing "
            f"(ignore = [{name!r}] or --map ignore={name})"
        )


def refuse_opposites(names: Sequence[str], taken: Collection[str], where: str) -> None:
    """Raise where a column seems to say that the task goes on, and nothing says that it ends.

    Args:
        names: of columns that were not said to be ignored.
        taken: fields that have a column.
        where: what error messages call the table.
    """
    if "terminal" in taken or "done" in taken:
        return
    for name in names:
        if _OPPOSITE.fullmatch(name.strip().lower()):
            raise SappError(
                f"{where}: column {name!r} looks like the opposite of terminal, 0 where the task ended; log terminal "
                f"as 1 minus it, or say that it means nothing (ignore = [{name!r}] or --map ignore={name})"
            )


def missing_field(role: str, names: Sequence[str], where: str) -> SappError:
    """What to say of a field that no column holds."""
    near = next((name for name in names if resembles(name) == role), None)
    hint = f" (did you mean {near!r}?)" if near else ""
    call = f"{role}_0, …" if role in VECTORS else role
    if list(names) == ["item"]:
        hint = " (RLlib's packed episodes? write them with output_write_episodes=False, output_compress_columns=[])"
    elif names and all(re.fullmatch(r"[+-]?[\d.]+", name.strip()) for name in names):
        hint = " (the first line holds numbers: are the names of the columns missing?)"
    value, words = ("['NAME', 'NAME']", "NAME,NAME") if role in VECTORS else ("'NAME'", "NAME")
    return SappError(
        f"{where}: no {role} columns recognised{hint}; name them {call}, or map them (columns={{{role!r}: {value}}} or "
        f"--map {role}={words}); columns are {listed(names) or 'none'}"
    )


def _twice(role: str, one: str, other: str, where: str) -> SappError:
    return SappError(
        f"{where}: both {one!r} and {other!r} are given for {role}; keep one, or say which counts "
        f"(--map {role}=NAME, --map ignore=NAME)"
    )


def _vector(names: Sequence[str], word: str, where: str) -> list[tuple[str, ...]]:
    """The columns of a field under one of its names: a column of that name, or a row of numbered ones."""
    numbered: dict[int, str] = {}
    for name in names:
        if match := re.fullmatch(rf"{word}[_. \[]?(\d+)\]?", name.strip().lower()):
            numbered[int(match[1])] = name
    ways: list[tuple[str, ...]] = []
    exact = next((name for name in names if name.strip().lower() == word), None)
    if numbered and exact is not None:
        return [(exact,), tuple(numbered.values())]
    if numbered:
        start, indices = min(numbered), sorted(numbered)
        if start > 1 or indices != list(range(start, start + len(indices))):
            gap = next((i for i in range(min(start, 1), max(indices)) if i not in numbered), 0)
            raise SappError(f"{where}: columns {word}_… skip number {gap}; add it or give a column mapping")
        ways.append(tuple(numbered[i] for i in indices))
    return ways if exact is None else [(exact,)]
