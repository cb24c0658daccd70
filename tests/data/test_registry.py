from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sapp.core.errors import SappError
from sapp.data import Dataset, load
from sapp.data.registry import FORMATS, Format


def read_pair(source: str, *, name: str = "pair") -> Dataset:
    action, reward = (float(word) for word in Path(source).read_text().split())
    return Dataset.from_arrays([[0.0]], [[action]], [reward], [True], name=name)


@pytest.fixture
def pair() -> Iterator[None]:
    FORMATS.add("pairs", Format("a .pair file", lambda request: request.ends_in(".pair"), read_pair, ("name",)))
    yield
    FORMATS.remove("pairs")


@pytest.mark.usefixtures("pair")
def test_a_format_of_ones_own_is_loaded_by_load(tmp_path: Path) -> None:
    path = tmp_path / "x.PAIR"
    path.write_text("0.5 3")
    data = load(path, name="mine")
    assert isinstance(data, Dataset)
    assert (data.name, data.action.tolist(), data.reward.tolist()) == ("mine", [[0.5]], [3.0])
    with pytest.raises(SappError, match=r"x\.PAIR: physics does not apply to pairs; leave it out"):
        load(path, physics="d4rl")


@pytest.mark.usefixtures("pair")
def test_what_nobody_recognises_is_told_every_format(tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(b"1")
    with pytest.raises(SappError, match=r"unknown file ending '\.bin'; give a dictionary of arrays, .* a \.pair file"):
        load(tmp_path / "x.bin")


def test_every_format_resolves() -> None:
    assert all(isinstance(FORMATS[kind], Format) for kind in FORMATS)
