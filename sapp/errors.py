"""The one error type a user ever sees: a sentence that names what is wrong and what to do."""

from __future__ import annotations


class SappError(Exception):
    """Bad input or a condition the user can mend.

    The message is one line: it names the file, field, row or option at fault and says what to do. The command line
    prints it to stderr and exits with code 2; Python callers catch it like any exception.
    """
