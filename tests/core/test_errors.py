"""Messages: one line, printable, with the nearest known word."""

from __future__ import annotations

import jax.numpy as jnp
import pytest

from sapp.core.errors import SappError, check_ranges, did_you_mean, one_line, printable


def test_a_long_message_is_one_readable_line() -> None:
    assert one_line(ValueError("a\n  b\tc")) == "a b c"
    assert one_line(KeyError()) == "KeyError"
    cut = one_line(ValueError("x" * 300))
    assert (len(cut), cut[-3:]) == (200, "...")


def test_what_would_steer_a_terminal_is_shown_as_an_escape() -> None:
    assert printable("a\x1b[31mb\udc80") == "a\\x1b[31mb\\udc80"
    assert printable("ζ ≥ 0") == "ζ ≥ 0"


def test_the_nearest_word_is_offered_if_it_is_near() -> None:
    assert did_you_mean("cqll", ["cql", "bc"]) == " (did you mean 'cql'?)"
    assert did_you_mean("walrus", ["cql", "bc"]) == ""


@pytest.mark.parametrize(
    ("value", "low", "high", "open_ends", "message"),
    [
        (-1.0, 0.0, float("inf"), False, "X: lr is -1; it must be 0 or more"),
        (1.5, 0.0, 1.0, False, "X: lr is 1.5; it must be between 0 and 1"),
        (1.0, 0.0, 1.0, True, "X: lr is 1; it must be between 0 and 1, both excluded"),
        (0.0, 0.0, float("inf"), True, "X: lr is 0; it must be above 0"),
        (float("nan"), 0.0, 1.0, False, "X: lr is nan; it must be between 0 and 1"),
    ],
)
def test_a_number_outside_its_range_is_named(
    value: float, low: float, high: float, open_ends: bool, message: str
) -> None:
    with pytest.raises(SappError) as caught:
        check_ranges("X", {"lr": value}, low, high, open_ends)
    assert str(caught.value) == message


def test_ends_are_inside_and_what_is_no_plain_number_passes() -> None:
    check_ranges("X", {"a": 0, "b": 1.0, "traced": jnp.float32(-7.0), "none": None}, 0.0, 1.0)
    with pytest.raises(SappError, match=r"X: b is 1\.1"):
        check_ranges("X", {"a": 0, "b": 1.1, "traced": jnp.float32(-7.0)}, 0.0, 1.0)
