"""The import graph: packages import from layers below them only, sapp never a study, studies public names only."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import sapp

ROOT = Path(__file__).parents[1]
LAYERS = (
    "core", "data", "envs", "kernels", "networks", "weights", "algorithms", "runs", "evaluation", "ope", "training",
    "collect", "tabular", "theory", "experiments", "report", "export", "hooks", "cli",
)  # fmt: skip
"""From the bottom to the top."""
ROOM = {name: number for number, name in enumerate(LAYERS)}


class Import(NamedTuple):
    """A module that a file imports, the names it takes from it, and where."""

    module: str
    names: tuple[str, ...]
    where: str


def imports(file: Path) -> Iterator[Import]:
    """Every import of a file, also those inside functions, but not those for type checkers only."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            skipped |= {inner for statement in node.body for inner in ast.walk(statement)}
    for node in ast.walk(tree):
        if node in skipped:
            continue
        where = f"{file.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, (), where)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{where}: imports are absolute"
            yield Import(node.module or "", tuple(alias.name for alias in node.names), where)


def packages(module: str, names: tuple[str, ...]) -> list[str]:
    """The subpackages of sapp that an import reaches; ``import sapp`` may reach the training loop."""
    parts = module.split(".")
    if parts[0] != "sapp":
        return []
    if len(parts) > 1:
        return [parts[1]]
    home = {name: module.split(".")[1] for module, held in sapp._HOMES.items() for name in held}
    return [home.get(name, name) for name in names if name != "__version__"] or ["training"]


def files(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize("package", LAYERS)
def test_imports_go_down(package: str) -> None:
    upward = [
        f"{found.where}: {found.module}"
        for file in files(f"sapp/{package}")
        for found in imports(file)
        for other in packages(found.module, found.names)
        if ROOM[other] > ROOM[package]
    ]
    assert upward == []


def test_every_package_has_its_layer() -> None:
    folders = {path.name for path in (ROOT / "sapp").iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders == set(LAYERS)


def test_the_library_knows_no_study() -> None:
    assert [
        found.where for file in files("sapp") for found in imports(file) if found.module.split(".")[0] == "studies"
    ] == []


def test_studies_use_public_names_and_not_each_other() -> None:
    wrong = []
    for file in files("studies"):
        own = file.relative_to(ROOT / "studies").parts[0]
        for found in imports(file):
            parts = [*found.module.split("."), *found.names]
            if any(part.startswith("_") and not part.endswith("__") for part in parts):
                wrong.append(f"{found.where}: {found.module} {found.names}")
            if parts[0] == "studies" and parts[1] != own:
                wrong.append(f"{found.where}: another study")
    assert wrong == []
