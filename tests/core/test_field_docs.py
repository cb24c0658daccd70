"""What hyper-parameters mean, from the docstrings of the classes that have them."""

from __future__ import annotations

import equinox as eqx
import pytest

from sapp import preset
from sapp.algorithms.config import options
from sapp.algorithms.registry import ALGORITHMS
from sapp.cli.main import main
from sapp.core.field_docs import field_doc, field_docs


class Base(eqx.Module):
    """What is common.

    Attributes:
        rate: of learning.
        size: of a batch; ``rate`` does not
            depend on it.

    And a sentence after them: not an entry.
    """

    rate: float = 0.1
    size: int = 32


class Part(eqx.Module):
    """A part.

    Args:
        width: of its layer.
    """

    width: int = 8
    depth: int = 2


class Whole(Base):
    """More of it, with ``silent`` in a sentence."""

    rate: float = 0.2
    low: float = 0.0
    """Least ``value``,
    in its own unit."""
    high: float = 1.0
    silent: bool = False
    part: Part = Part()

    def method(self) -> None:
        """Not a field's."""


class Bare(Whole):
    own: int = 3


def test_texts_come_from_below_fields_from_entries_and_from_shared_classes() -> None:
    assert field_docs(Whole()) == {
        "rate": "of learning.",
        "size": "of a batch; rate does not depend on it.",
        "low": "Least value, in its own unit.",
        "high": "",
        "silent": "",
        "part.width": "of its layer.",
        "part.depth": "",
    }
    assert field_doc(Bare, "low") == "Least value, in its own unit."
    assert field_doc(Bare, "own") == ""


def test_a_class_without_source_has_its_docstring() -> None:
    scope: dict[str, type] = {"Base": Base}
    exec('class Typed(Base):\n    """Typed in.\n\n    Args:\n        rate: mine.\n    """\n    more: int = 1', scope)
    assert [field_doc(scope["Typed"], name) for name in ("rate", "more")] == ["mine.", ""]


WEIGHTS = ("dualdice", "occupancy", "infonce", "random", "constant:0.5", "rescaled:frozen:dualdice", "matched:random")


@pytest.mark.parametrize(("name", "weights"), [*((name, None) for name in ALGORITHMS), *(("cql", w) for w in WEIGHTS)])
def test_every_hyper_parameter_of_every_preset_has_a_meaning(name: str, weights: str | None) -> None:
    chosen = preset(name, weights=weights)
    found = field_docs(chosen)
    assert found.keys() == dict(options(chosen)).keys()
    assert [name for name, text in found.items() if not text] == []


def test_the_command_shows_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["algorithms", "discrete-cql"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [word in lines[1] for word in ("hyper-parameter", "default", "meaning")] == [True] * 3
    (line,) = [line for line in lines if "network.features" in line]
    assert [cell.strip() for cell in line.strip("│").split("│")] == [
        "network.features", "512", "width of the dense layer after the convolutions.",
    ]  # fmt: skip
