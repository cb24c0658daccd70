"""The one error type a user ever sees: a sentence that names what is wrong and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches


class SappError(Exception):
    """Bad input or a condition the user can fix.

    The message is one line: it names the file, field, row or option at fault and says what to do. The command line
    prints it to stderr and exits with code 2; Python callers catch it like any exception.

    Examples:
        >>> import sapp
        >>> try:
        ...     sapp.preset("cqll")
        ... except sapp.SappError as error:
        ...     print(str(error).partition(";")[0])
        algorithm 'cqll' is unknown (did you mean 'cql'?)
    """


class Interrupted(SappError):
    """Ctrl-C, or a request to end: the run was saved and can be resumed."""


class TimeLimitReached(Interrupted):
    """A ``time_limit`` is over: the run was saved and can be resumed."""


def check_ranges(owner: str, values: Mapping[str, object], low: float, high: float, open_ends: bool = False) -> None:
    """Refuse hyper-parameters outside [low, high] (or the open interval) by name; traced values pass."""
    for name, value in values.items():
        if not isinstance(value, int | float):
            continue
        inside = low < value < high if open_ends else low <= value <= high
        if not inside:
            between = f"between {low:g} and {high:g}" if high != float("inf") else f"{low:g} or more"
            if open_ends:
                between = f"above {low:g}" if high == float("inf") else f"{between}, both excluded"
            raise SappError(f"{owner}: {name} is {value:g}; it must be {between}")


def one_line(error: BaseException) -> str:
    """Return an exception's message on one line, cut to a readable length."""
    text = printable(" ".join(str(error).split())) or type(error).__name__
    return text if len(text) <= 200 else text[:197] + "..."


def printable(text: str) -> str:
    """Text from a file without what would steer a terminal: control characters are shown as escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return " (did you mean 'x'?)" for the nearest known word, or nothing."""
    spelled = {_letters(each): each for each in reversed(list(known))}
    near = get_close_matches(_letters(word), list(spelled), n=1)
    return f" (did you mean {spelled[near[0]]!r}?)" if near else ""


def _letters(word: str) -> str:
    """A word without what people spell differently: capitals and marks ("TD3+BC" is "td3bc")."""
    return re.sub(r"[-_+ ]", "", word.lower())
