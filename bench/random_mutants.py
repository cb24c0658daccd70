"""Draws small faults at random, so that nobody who knows the tests has chosen them: a table for bench/mutants.py.

    python bench/random_mutants.py --count 100 --seed 1 --out runs/drawn
    python bench/mutants.py --table runs/drawn --out runs/random

A place is drawn from all places in the chosen packages where one small change makes other code: a comparison or an
arithmetic sign turned round, a number changed, minimum for maximum, mean for sum, and for or, a condition denied, a
``stop_gradient`` left out, a statement left out. Messages, docstrings, types and what is only printed are not touched.
The tests that should notice are those of the module's own name, or with ``--widely`` all of its folder. Some changes
make no difference that anybody could see; whoever reads the survivors says which.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("algorithms", "core", "data", "evaluation", "networks", "ope", "runs", "tabular", "training", "weights")
OPERATORS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"),
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="), ast.And: ("and", "or"), ast.Or: ("or", "and"),
}  # fmt: skip
NAMES = {
    "minimum": "maximum", "maximum": "minimum", "min": "max", "max": "min", "mean": "sum", "sum": "mean",
    "argmin": "argmax", "argmax": "argmin", "any": "all", "all": "any", "floor": "ceil", "exp": "log1p", "cos": "sin",
}  # fmt: skip
SPOKEN = {"SappError", "print", "say", "warn", "AnsweredError", "field_docs"}
"""Calls whose arguments are for people."""


@dataclass(frozen=True)
class Change:
    """Text between two places of a file that gives way to another."""

    file: Path
    start: int
    end: int
    new: str
    meaning: str
    line: int


class Finder:
    """All small changes of one module."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.text = file.read_text(encoding="utf-8")
        raw = self.text.encode()
        self._lines = [0]
        for line in raw.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))
        self._raw = raw

    def place(self, line: int, column: int) -> int:
        """Characters before a place that the parser gives in bytes."""
        return len(self._raw[: self._lines[line - 1] + column].decode())

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Where a node begins and ends."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.place(node.lineno, node.col_offset), self.place(node.end_lineno, node.end_col_offset)

    def change(self, node: ast.expr | ast.stmt, span: tuple[int, int], new: str, meaning: str) -> Change:
        """A change on a node's line."""
        return Change(self.file, *span, new, meaning, node.lineno)

    def changes(self) -> Iterator[Change]:
        """Every small change."""
        yield from self._in(ast.parse(self.text))

    def _in(self, node: ast.AST) -> Iterator[Change]:
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_params", "type_comment"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not _spoken(child):
                    yield from self._of(child, node)
                    yield from self._in(child)

    def _of(self, node: ast.AST, parent: ast.AST) -> Iterator[Change]:
        if isinstance(node, ast.BinOp):
            yield from self._sign(node, node.left, node.op, node.right)
        elif isinstance(node, ast.Compare) and len(node.ops) == 1:
            yield from self._sign(node, node.left, node.ops[0], node.comparators[0])
        elif isinstance(node, ast.BoolOp):
            yield from self._sign(node, node.values[0], node.op, node.values[1])
        elif isinstance(node, ast.Constant) and not isinstance(parent, (ast.JoinedStr, ast.FormattedValue, ast.Expr)):
            yield from self._constant(node)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
            start, end = self.span(node)
            yield self.change(node, (start, end), self.text[slice(*self.span(node.operand))], "the sign is left out")
        elif isinstance(node, ast.Call):
            yield from self._call(node)
        elif isinstance(node, (ast.AugAssign, ast.Expr)) and not (_documents(node) or _spoken(node.value)):
            yield self.change(node, self.span(node), "pass", "the statement is left out")
        elif isinstance(node, (ast.If, ast.IfExp)):
            start, end = self.span(node.test)
            yield self.change(node, (start, end), f"not ({self.text[start:end]})", "the condition is denied")

    def _sign(self, node: ast.expr, left: ast.expr, operator: ast.AST, right: ast.expr) -> Iterator[Change]:
        if type(operator) not in OPERATORS or isinstance(left, ast.JoinedStr) or isinstance(right, ast.JoinedStr):
            return
        old, new = OPERATORS[type(operator)]
        between = self.span(left)[1], self.span(right)[0]
        if self.text[slice(*between)].count(old) == 1:
            at = self.text.index(old, between[0])
            yield self.change(node, (at, at + len(old)), new, f"{new} for {old}")

    def _constant(self, node: ast.Constant) -> Iterator[Change]:
        if isinstance(node.value, bool):
            yield self.change(node, self.span(node), str(not node.value), f"{not node.value} for {node.value}")
        elif isinstance(node.value, (int, float)):
            new = node.value + 1 if isinstance(node.value, int) else 2.0 * node.value if node.value else 1.0
            yield self.change(node, self.span(node), repr(new), f"{new!r} for {node.value!r}")

    def _call(self, node: ast.Call) -> Iterator[Change]:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in NAMES:
            _, end = self.span(node.func)
            yield self.change(node, (end - len(name), end), NAMES[name], f"{NAMES[name]} for {name}")
        if name == "stop_gradient" and len(node.args) == 1:
            inner = self.text[slice(*self.span(node.args[0]))]
            yield self.change(node, self.span(node), f"({inner})", "stop_gradient is left out")


def _documents(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, (ast.Constant, ast.Yield, ast.YieldFrom))


def _spoken(node: ast.AST) -> bool:
    """Whether it is only there to tell somebody something."""
    if isinstance(node, (ast.Raise, ast.Assert)):
        return True
    call = node.func if isinstance(node, ast.Call) else None
    name = call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", None)
    return name in SPOKEN


def apart(text: str, change: Change) -> tuple[str, str] | None:
    """The lines that change and what they become, with as many before them as make them the only ones of their kind."""
    first = text.rfind("\n", 0, change.start) + 1
    last = text.find("\n", change.end) + 1 or len(text)
    while text.count(text[first:last]) > 1:
        if first == 0:
            return None
        first = text.rfind("\n", 0, first - 1) + 1
    old = text[first:last]
    return old, text[first : change.start] + change.new + text[change.end : last]


def tests_of(file: Path, widely: bool) -> list[str]:
    """The tests of a module's own name, or all of its folder."""
    inside = file.relative_to(ROOT / "sapp")
    folder = ROOT / "tests" / inside.parent
    own = sorted(folder.glob(f"test_{inside.stem.lstrip('_')}*.py"))
    if widely:
        own = sorted(folder.glob("test_*.py"))
    return [each.relative_to(ROOT).as_posix() for each in own]


def draw(packages: Sequence[str], count: int, seed: int, widely: bool) -> dict[str, list[dict[str, object]]]:
    """Faults by package: every place is as likely as any other."""
    files = sorted(file for name in packages for file in (ROOT / "sapp" / name).rglob("*.py"))
    places = [
        (change, finder.text)
        for file in files
        if tests_of(file, widely)
        for finder in [Finder(file)]
        for change in finder.changes()
    ]
    random.Random(seed).shuffle(places)
    found: dict[str, list[dict[str, object]]] = {}
    used: set[tuple[Path, int]] = set()
    for change, text in places:
        if len(used) == count:
            break
        lines = apart(text, change)
        if lines is None or lines[0] == lines[1] or (change.file, change.line) in used or not _parses(text, change):
            continue
        used.add((change.file, change.line))
        inside = change.file.relative_to(ROOT).as_posix()
        row = {
            "name": f"{inside}:{change.line}:{change.start}", "meaning": change.meaning, "file": inside,
            "old": lines[0], "new": lines[1], "tests": tests_of(change.file, widely),
        }  # fmt: skip
        found.setdefault(change.file.relative_to(ROOT / "sapp").parts[0], []).append(row)
    return found


def _parses(text: str, change: Change) -> bool:
    try:
        ast.parse(text[: change.start] + change.new + text[change.end :])
    except SyntaxError:
        return False
    return True


def toml(rows: Sequence[dict[str, object]]) -> str:
    """Tables as bench/mutants.py reads them; TOML's basic strings are JSON's."""
    lines = [
        "\n".join(["[[mutant]]", *(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in row.items())])
        for row in rows
    ]
    return "\n\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100, help="how many faults")
    parser.add_argument("--seed", type=int, default=0, help="which ones")
    parser.add_argument("--packages", nargs="+", default=PACKAGES, help="of sapp")
    parser.add_argument("--widely", action="store_true", help="let all tests of the folder look")
    parser.add_argument("--out", type=Path, required=True, help="folder for the table")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    for name, rows in sorted(draw(options.packages, options.count, options.seed, options.widely).items()):
        (options.out / f"{name}.toml").write_text(toml(rows), encoding="utf-8")
        print(f"{name}: {len(rows)} faults")


if __name__ == "__main__":
    main()
