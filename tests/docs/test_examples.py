"""Every public name has a docstring whose example does what it says."""

from __future__ import annotations

import doctest
import inspect
from pathlib import Path

import pytest

import sapp

NAMES = [name for name in sapp.__all__ if name != "__version__"]


@pytest.mark.parametrize("name", NAMES)
def test_its_example_gives_what_it_says(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # where examples write
    thing = getattr(sapp, name)
    doc = inspect.cleandoc(thing.__dict__["__doc__"] if inspect.isclass(thing) else thing.__doc__)
    example = doctest.DocTestParser().get_doctest(doc, {"__name__": "example"}, name, None, None)
    assert not any(step.options.get(doctest.SKIP) for step in example.examples)
    said: list[str] = []
    found = doctest.DocTestRunner(verbose=False).run(example, out=said.append)
    assert found.attempted >= 2, "no example"
    assert found.failed == 0, "".join(said)
