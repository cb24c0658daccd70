"""Which column of a log means what, and what is to be done about what is wrong with it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from sapp.core.errors import SappError, did_you_mean, one_line
from sapp.data.field_names import ROLES, VECTORS, detect, missing_field
from sapp.data.ledger import listed
from sapp.data.loaders.files import require_file
from sapp.data.repair import CHOICES
from sapp.data.steps import LAST_STEP

_LISTS = (*VECTORS, "ignore", "one_hot")
_SWITCHES = ("one_row_episodes", "clip_actions")


@dataclass(frozen=True)
class Columns:
    """Which column of a log means what.

    What is left out is inferred from the names of the columns, unless both ``observation`` and ``action`` are given:
    then only what is named here is used (and ``reward``, by name).

    Attributes:
        observation: one column per dimension, in order; or one column of lists.
        action: likewise; several columns of discrete actions make one action: their combination.
        reward: of the step.
        terminal: 0/1, the task ended. Without it no step is terminal, and ``episode`` or ``timeout`` is needed.
        done: 0/1, the episode ended in either way, as Gym's old ``done``: where a time-out is set on the same row, or
            the step limit is reached, the time-out wins.
        timeout: 0/1, the recording ended.
        episode: numbers or text, the same on all rows of an episode.
        time: orders the rows of an episode; needs ``episode``.
        next_observation: like ``observation``; without it the next row's observation is taken.
        action_mask: 0/1 for each discrete action, whether it was possible: one column per action, or one of lists.
        next_action_mask: likewise after the step; without it the next row's mask is taken.
        log_prob: log-density (or log-probability) of the behaviour policy; becomes an extra.
        probability: of the action under the behaviour policy; its logarithm becomes the extra ``log_prob``.
        ignore: columns that mean nothing, whatever they are called.
        one_hot: columns of the observation that are text or codes: each value becomes a feature of 0 and 1.
        action_low: bounds of the action columns, where they are not -1 and 1.
        action_high: likewise.
        clip_actions: clip actions beyond the bounds instead of refusing them.
        action_kind: "continuous" or "discrete"; by default text and whole numbers are discrete, others continuous.
        action_labels: all discrete actions by name, in the order that numbers them; by default those that occur,
            sorted.
        max_episode_steps: the environment's step limit, where time-outs are not marked.
        last_step: what becomes of the last row of an episode that stops unfinished, where the state after it is not
            recorded: "drop" it, or "end": every episode really ended there. By default it is dropped, unless that
            would lose more than 1 % of the reward or of the episodes.
        one_row_episodes: every row is an episode of its own that ends there (logs of recommendations, of a bandit).
        missing: what to do about empty values: "error" (default), "fill" observations with the last known one of the
            episode, or "drop" the whole episode. Rewards that are empty on most rows before the ends of episodes are 0
            there, whatever this says; episode and time may never be empty.
        gaps: what to do where steps are missing in time: "split" the episode there (default), "cut" off what follows,
            "keep" it as if nothing were missing, or "error".
        scale: "auto" (default) standardises features if they are far from unit size, "standard" always, "none" never.
            Columns recognised by their names, without a mapping, are left as they are.
    """

    observation: Sequence[str] = ()
    action: Sequence[str] = ()
    reward: str | None = None
    terminal: str | None = None
    done: str | None = None
    timeout: str | None = None
    episode: str | None = None
    time: str | None = None
    next_observation: Sequence[str] | None = None
    action_mask: Sequence[str] | None = None
    next_action_mask: Sequence[str] | None = None
    log_prob: str | None = None
    probability: str | None = None
    ignore: Sequence[str] = ()
    one_hot: Sequence[str] = ()
    action_low: Sequence[float] | float | None = None
    action_high: Sequence[float] | float | None = None
    clip_actions: bool = False
    action_kind: str | None = None
    action_labels: Sequence[str] | None = None
    max_episode_steps: int | None = None
    last_step: str | None = None
    one_row_episodes: bool = False
    missing: str | None = None
    gaps: str | None = None
    scale: str | None = None

    def __post_init__(self) -> None:
        for key, choices in {**CHOICES, "last_step": LAST_STEP}.items():
            value = getattr(self, key)
            if value is not None and value not in choices:
                raise SappError(f"columns: {key} is {value!r}; use one of {', '.join(choices)}")
        for key in _LISTS:
            value = getattr(self, key)
            if isinstance(value, str):
                object.__setattr__(self, key, (value,))

    @property
    def names_all(self) -> bool:
        """Whether it says which columns are used, so that nothing is inferred from names."""
        return bool(self.observation and self.action)

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any], where: str = "columns") -> Columns:
        """Build from plain data, with unknown keys and wrong types named."""
        known = [each.name for each in fields(cls)]
        for key, value in mapping.items():
            if key not in known:
                fix = f"known keys are {', '.join(known)}"
                raise SappError(f"{where}: unknown key {key!r}{did_you_mean(str(key), known)}; {fix}")
            if key == "max_episode_steps" and value is not None and type(value) is not int:
                raise SappError(f"{where}: max_episode_steps = {value!r}; give a whole number")
            if key in _SWITCHES and not isinstance(value, bool):
                raise SappError(f"{where}: {key} = {value!r}; use true or false")
            texts = value if isinstance(value, (list, tuple)) and key in _LISTS else [value]
            names = key in ROLES or key in _LISTS or key in CHOICES or key == "last_step"
            if names and value is not None and not all(isinstance(text, str) for text in texts):
                many = " or a list of names" if key in _LISTS else ""
                raise SappError(f"{where}: {key} = {value!r} is not a column name{many}; put names in quotes")
        plain: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in mapping.items()}
        labels = plain.get("action_labels")
        if labels is not None and (isinstance(labels, str) or not all(isinstance(each, str) for each in labels)):
            raise SappError(f"{where}: action_labels = {labels!r} is not a list of names; put names in quotes")
        try:
            return cls(**plain)
        except SappError as error:
            raise SappError(str(error).replace("columns:", f"{where}:", 1)) from None

    @classmethod
    def from_toml(cls, path: str | Path) -> Columns:
        """Read a TOML file whose keys are the attributes above."""
        path = Path(path)
        require_file(path)
        try:
            mapping = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise SappError(f"{path}: not valid TOML ({one_line(error)}); fix that line") from None
        return cls.from_mapping(mapping, str(path))

    @classmethod
    def from_words(cls, words: Sequence[str]) -> Columns:
        """Build from words of a command line, later ones on top of earlier ones.

        Args:
            words: paths of TOML files, and KEY=VALUE such as "episode=batch", "observation=a,b", "last_step=end".
        """
        known = {each.name: None for each in fields(cls)}
        chosen: dict[str, Any] = {}
        for word in words:
            key, equals, value = word.partition("=")
            if key in known and equals:
                chosen[key] = _value(key, value, f"--map {word}")
            elif equals and not Path(word).exists():
                raise SappError(
                    f"--map {word}: unknown key {key!r}{did_you_mean(key, known)}; known keys are {', '.join(known)}"
                )
            else:
                chosen |= cls.from_toml(word).to_json()
        return cls.from_mapping(chosen, "--map")

    def completed(self, names: Sequence[str], where: str) -> Columns:
        """With the fields that are not named inferred from the names of a table's columns."""
        mine = [name for key in ROLES for name in named(getattr(self, key))]
        free = [name for name in names if name not in mine and name not in self.ignore]
        mapped = [key for key in ROLES if getattr(self, key)]
        found: dict[str, Any] = {}
        if not self.names_all:
            others = [name for name in free if name not in self.one_hot]
            found = dict(detect(others, where, [key for key in ROLES if key not in mapped]))
            if self.one_row_episodes or (found.get("episode") is None and self.episode is None):
                found.pop("time", None)
        elif self.reward is None:
            found = dict(detect(free, where, ("reward",)))
        if extra := [name for name in self.one_hot if name not in found.get("observation", self.observation)]:
            found["observation"] = (*found.get("observation", self.observation), *extra)
        for key in ("observation", "action", "reward"):
            if not found.get(key) and key not in mapped:
                raise missing_field(key, free, where)
        if "log_prob" in found:
            found.pop("probability", None)
        return replace(self, **{key: value if key in VECTORS else value[0] for key, value in found.items()})

    def check_names(self, names: Sequence[str], where: str) -> None:
        """Every column that is named is there."""
        for key in (*ROLES, "one_hot"):
            for name in named(getattr(self, key)):
                if name not in names:
                    raise SappError(
                        f"{where}: no column {name!r} for {key}{did_you_mean(name, names)}; columns are {listed(names)}"
                    )
        self._check_uses(where)
        if self.time is not None and self.episode is None:
            raise SappError(
                f"{where}: time is {self.time!r} but no episode column is given; name it, or leave time out"
            )

    def _check_uses(self, where: str) -> None:
        """A column is used once; but what orders rows may be a feature, and a feature that stays its own successor."""
        seen: dict[str, str] = {}
        for key in ROLES:
            for name in named(getattr(self, key)):
                pair = {key, seen.get(name)}
                if name in seen and not {"episode", "time"} & pair and pair != {"observation", "next_observation"}:
                    both = f"twice for {key}" if key == seen[name] else f"for {seen[name]} and for {key}"
                    raise SappError(f"{where}: column {name!r} is given {both}; each column has one use")
                seen[name] = key

    def to_json(self) -> dict[str, Any]:
        """What is set, as plain data."""
        chosen = {each.name: getattr(self, each.name) for each in fields(self)}
        return {
            key: list(value) if isinstance(value, (list, tuple)) else value
            for key, value in chosen.items()
            if value is not None and value is not False and value != ()
        }


Given = Columns | Mapping[str, Any] | str | Path | Sequence[str] | None
"""What ``load`` takes for columns."""


def given_columns(columns: Given) -> Columns:
    """What ``load`` takes for columns, as ``Columns``."""
    if columns is None:
        return Columns()
    if isinstance(columns, Columns):
        return columns
    if isinstance(columns, (str, Path)):
        return Columns.from_toml(columns)
    return Columns.from_mapping(columns) if isinstance(columns, Mapping) else Columns.from_words(columns)


def named(value: Sequence[str] | str | None) -> tuple[str, ...]:
    """One name or several as a tuple."""
    return () if value is None else (value,) if isinstance(value, str) else tuple(value)


def _value(key: str, text: str, where: str) -> Any:
    """A word of the command line in the type that a key wants."""
    if key in _SWITCHES:
        if text.lower() not in ("true", "false"):
            raise SappError(f"{where}: use true or false")
        return text.lower() == "true"
    if key == "max_episode_steps":
        return int(text) if text.isdigit() else text
    if key in ("action_low", "action_high"):
        try:
            numbers = [float(part) for part in text.split(",")]
        except ValueError:
            raise SappError(f"{where}: give numbers, such as {key}=-2 or {key}=0,0.5") from None
        return numbers[0] if len(numbers) == 1 else numbers
    if key in (*_LISTS, "action_labels"):
        return [part.strip() for part in text.split(",") if part.strip()]
    return text
