"""The page on architecture names modules that exist, packages in the order of their layers, and real frames."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from test_layers import LAYERS

from sapp.runs import folders

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`([a-z_0-9/]+\.py)`", PAGE))))
def test_a_named_module_is_there(path: str) -> None:
    assert (ROOT / "sapp" / path).is_file() or (ROOT / path).is_file()


def test_packages_are_named_in_the_order_of_their_layers() -> None:
    (order,) = re.findall(r"from the bottom: ([\w, ]+)\.", PAGE)
    assert tuple(order.split(", ")) == LAYERS


def test_each_frame_is_defined_where_the_page_says() -> None:
    rows = re.findall(r"(?m)^\| *\d* \| `([\w.]+)` \| `([\w/]+\.py)` \|", PAGE)
    assert len(rows) == 9
    for function, module in rows:
        name = function.split(".")[-1]
        assert re.search(rf"\bdef {name}\(", (ROOT / "sapp" / module).read_text(encoding="utf-8")), function


def test_every_entry_of_a_run_folder_is_explained() -> None:
    for entry in {*folders.ENTRIES, folders.LOCK} - {folders.BOARD}:
        assert f"`{entry}" in PAGE, entry
