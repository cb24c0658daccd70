"""Rows of steps on their way to a dataset: where episodes end, and what follows their last step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sapp.core.errors import SappError
from sapp.data.action_masks import mask_of
from sapp.data.ledger import Kind, Ledger, refuse_loss, reward_share

LAST_STEP = ("drop", "end")
"""What may become of the last row of an episode that stops unfinished, where the state after it is not recorded."""


def check_last_step(last_step: str | None, where: str) -> None:
    """Refuse what is no choice of what becomes of last rows.

    Args:
        last_step: one of ``LAST_STEP``, or None where nothing was chosen.
        where: what the message calls the data.
    """
    if last_step not in (None, *LAST_STEP):
        raise SappError(f"{where}: last_step is {last_step!r}; use one of {', '.join(LAST_STEP)}")


@dataclass
class Steps:
    """Checked arrays of N rows, episodes one after the other.

    Attributes:
        arrays: by name; observation, action, reward and terminal at least.
        extras: further arrays of N rows.
        where: what error messages call them.
        ledger: takes down what is done.
    """

    arrays: dict[str, np.ndarray]
    extras: dict[str, np.ndarray]
    where: str
    ledger: Ledger
    episode: np.ndarray | None = None
    """An id per row, where episodes have one."""
    holes: np.ndarray | None = None
    """Rows after which steps are missing from the log."""

    @classmethod
    def of(
        cls, arrays: dict[str, np.ndarray], extras: Mapping[str, ArrayLike], where: str, ledger: Ledger,
        episode: ArrayLike | None, holes: ArrayLike | None,
    ) -> Steps:  # fmt: skip
        """Steps with what is known of each row, checked.

        Args:
            arrays: checked, by name.
            extras: further arrays.
            where: what error messages call them.
            ledger: takes down what is done.
            episode: [N] ids, where there are some.
            holes: [N], after which rows steps are missing, where that is known.
        """
        steps = cls(arrays, {key: np.asarray(value) for key, value in extras.items()}, where, ledger)
        if episode is not None:
            steps.episode = steps.per_row("episode", episode)
        if holes is not None:
            steps.holes = steps.per_row("holes", holes)
        return steps

    def per_row(self, key: str, values: ArrayLike) -> np.ndarray:
        """Values [N], one per row, checked.

        Args:
            key: what they are.
            values: [N].
        """
        found, rows = np.asarray(values).reshape(-1), len(self.arrays["reward"])
        if len(found) != rows:
            raise SappError(
                f"{self.where}: {key} has {len(found)} rows but observation has {rows}; all fields need the same length"
            )
        return found

    def find_timeouts(self, limit: int | None, old_done: bool, tolerance: float) -> None:
        """Time-outs, from whatever tells of them.

        Args:
            limit: the environment's step limit.
            old_done: whether ``terminal`` was set at every end.
            tolerance: of the comparison of a successor with the next row.
        """
        terminal, told, found = self.arrays["terminal"], self.arrays.get("timeout"), None
        timeout = np.zeros_like(terminal) if told is None else told
        if told is None:
            found = "nothing: only terminals and the end of the data"
            if old_done and limit is None:
                self.ledger.say(
                    Kind.READ,
                    "done marks every end, and nothing tells time-outs from others: every one counts as terminal",
                )
        elif old_done:
            terminal = self._timed_out(terminal, timeout, "a time-out is set on the same row")
        if self.episode is not None:
            timeout = self._episode_ends(terminal | timeout)
            found = "episode ids"
        if limit is not None:
            if not 1 <= limit < 2**31:
                raise SappError(f"{self.where}: max_episode_steps is {limit}; it must be 1 to 2,147,483,647")
            over = (step_numbers(terminal | timeout) + 1) % limit == 0
            if self.episode is not None and len(early := np.flatnonzero(over & ~terminal & ~timeout)):
                raise SappError(
                    f"{self.where}: episode {self.episode[early[0]]} goes on after its step {limit} at row {early[0]}, "
                    f"and max_episode_steps is {limit}; give the right limit, or leave the episode column out"
                )
            if old_done:
                terminal = self._timed_out(terminal, over, f"it is step {limit}, the limit")
            timeout = timeout | over
            found = f"max_episode_steps={limit}"
        elif told is None and self.episode is None and "next_observation" in self.arrays:
            after, successor = self.arrays["observation"][1:], self.arrays["next_observation"][:-1]
            far = np.abs(after - successor) > tolerance * np.maximum(1, np.abs(after))
            timeout = np.append(far.any(axis=1), False)
            found = "next_observation differing from the next row's observation"
        if (both := told is not None and int((terminal & told).sum())) and not old_done:
            self.ledger.say(Kind.READ, f"{both} rows are marked as terminal and as time-out: the terminal counts")
            if both == np.count_nonzero(told) >= 5:
                self.ledger.say(
                    Kind.WARNING,
                    f"all {both} time-outs are marked as terminal, too, so none is left: if the column is set at every "
                    f"end, as Gym's old done was, map it as done (--map done=NAME)",
                )
        timeout = timeout & ~terminal
        timeout[-1] = not terminal[-1]
        self.arrays.update(terminal=terminal, timeout=timeout)
        if found is not None:
            self.ledger.say(Kind.READ, f"where episodes stop without ending was inferred from: {found}")

    def _timed_out(self, terminal: np.ndarray, timeout: np.ndarray, why: str) -> np.ndarray:
        """Terminals without those that are time-outs."""
        both = terminal & timeout
        if both.any():
            self.ledger.say(
                Kind.CHANGED, f"{both.sum()} rows marked done are time-outs, not ends of the task: {why}",
                rows=int(both.sum()), episodes=int(both.sum()),
            )  # fmt: skip
        return terminal & ~timeout

    def _episode_ends(self, ends: np.ndarray) -> np.ndarray:
        """The last row of each id; an id may not go on after an end."""
        assert self.episode is not None
        last = np.append(self.episode[1:] != self.episode[:-1], True)
        early = np.flatnonzero(ends & ~last)
        if len(early):
            row = int(early[0])
            kind = "terminal" if self.arrays["terminal"][row] else "timeout"
            raise SappError(
                f"{self.where}: episode {self.episode[row]} goes on after its {kind} at row {row}; "
                f"give each episode its own id, or leave the episode column out"
            )
        return last

    def append_mask(self, mask: ArrayLike, following: ArrayLike | None, count: int | None) -> int:
        """Make the masks of the possible actions part of the observations; where in them they begin.

        Args:
            mask: [N, count], possible before each step.
            following: [N, count], after it; else the next row's, and after a time-out all count as possible.
            count: discrete actions.
        """
        mask = mask_of(mask, "action_mask", len(self.arrays["reward"]), count, self.where)
        seen, at = self.arrays["observation"], self.arrays["observation"].shape[1]
        self.arrays["observation"] = np.concatenate([seen, mask], axis=1)
        if "next_observation" not in self.arrays:  # then the next row's observation is, mask and all
            return at
        if following is None:
            cut = self.arrays["timeout"]
            after = np.concatenate([mask[1:], mask[-1:]])
            after[cut | self.arrays["terminal"]] = 1.0
            if cut.any():
                self.ledger.say(
                    Kind.READ, f"what is possible after the {cut.sum()} time-outs is not known: every action counts"
                )
        else:
            after = mask_of(following, "next_action_mask", len(mask), count, self.where)
        self.arrays["next_observation"] = np.concatenate([self.arrays["next_observation"], after], axis=1)
        return at

    def finish(self, last_step: str | None) -> None:
        """Settle the last rows of unfinished episodes, and find every row's successor.

        Args:
            last_step: one of ``LAST_STEP``, or None to drop them where little is lost.
        """
        if last_step == "end":
            timeout = self.arrays["timeout"]
            ended = timeout & ~self._holes()
            if ended.any():
                self.ledger.say(
                    Kind.CHANGED, f"the last rows of {ended.sum()} unfinished episodes count as ends of the task",
                    rows=int(ended.sum()), episodes=int(ended.sum()), asked=True,
                )  # fmt: skip
            self.arrays["terminal"] = self.arrays["terminal"] | ended
            self.arrays["timeout"] = timeout & ~ended
        if "next_observation" in self.arrays:
            return
        self.ledger.say(Kind.READ, "the state after a step is the next row's observation")
        self._drop_last_rows(last_step == "drop")

    def _drop_last_rows(self, asked: bool) -> None:
        observation, terminal, timeout = (self.arrays[key] for key in ("observation", "terminal", "timeout"))
        successor = np.concatenate([observation[1:], observation[-1:]])
        successor[terminal] = observation[terminal]
        ends = terminal | timeout
        # a time-out on the first row of an episode: dropping the row leaves nothing of it
        alone = timeout & np.append(True, ends[:-1])
        gone = int(np.count_nonzero(alone))
        # Row i becomes the end of its episode when row i + 1, the dropped one, belonged to the same episode.
        self.arrays["timeout"] = np.append(timeout[1:], False) & ~ends
        self.arrays["next_observation"] = successor
        if not timeout.any():
            return
        rows, share = int(np.count_nonzero(timeout)), reward_share(self.arrays["reward"], timeout)
        if timeout.all():
            raise SappError(
                f"{self.where}: no transitions left, every episode is one row long without a terminal or a "
                f"next_observation; if every row is an episode of its own, set last_step = 'end'; else give terminal, "
                f"next_observation or episode"
            )
        if not asked:
            lost = timeout & ~self._holes()
            refuse_loss(
                self.where,
                f"the last rows of {np.count_nonzero(lost)} unfinished episodes would be dropped, as the state after "
                "them is not known",
                "if every episode really ended there, set last_step = 'end'; if recordings were just cut there, "
                "last_step = 'drop' leaves these rows out (on the command line: --map last_step=end); better, give "
                "terminal or next_observation columns",
                reward_share(self.arrays["reward"], lost),
                np.count_nonzero(alone & lost) / int(np.count_nonzero(ends)),
            )  # fmt: skip
        self.ledger.say(
            Kind.DROPPED,
            "the last step of an episode that stops unfinished has no known next state: "
            f"{rows} row{'s were' if rows > 1 else ' was'} dropped"
            + (f"; {gone} episodes of one such row are gone altogether" if gone else ""),
            rows=rows, episodes=rows, reward=share, asked=asked,
        )  # fmt: skip
        self.arrays = {key: value[~timeout] for key, value in self.arrays.items()}
        self.extras = {key: value[~timeout] for key, value in self.extras.items()}

    def _holes(self) -> np.ndarray:
        return np.zeros(len(self.arrays["reward"]), bool) if self.holes is None else self.holes.astype(bool)


def step_numbers(ends: np.ndarray) -> np.ndarray:
    """Step index of each row, where ``ends`` marks the last row of each episode."""
    rows = np.arange(len(ends))
    starts = np.where(np.concatenate([[True], ends[:-1]]), rows, 0)
    return rows - np.maximum.accumulate(starts)
