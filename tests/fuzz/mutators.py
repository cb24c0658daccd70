"""Damage done by a seed: to bytes, to JSON, to tables of text, to arrays, to the cells of a store."""

from __future__ import annotations

import copy
import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np

Rng = np.random.Generator

ODD: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 2**31, 2**63, -(2**70), 1e308, -0.0, float("nan"), float("inf"), "", "x", "nan",
    "\x1b[2J", "../..", "evil:Env-v0", "9" * 400, [], {},
    [1, 2, 3], [[1]], {"class": "CQL"}, ["a"], {"a": {"b": []}}, "é\u202e",
    0.5, 3,
)  # fmt: skip
"""Values that files should not hold where they hold others."""


def damaged_bytes(content: bytes, rng: Rng) -> bytes:
    """Bits flipped, pieces cut out, doubled, zeroed, or the end cut off."""
    found = bytearray(content)
    for _ in range(int(rng.integers(1, 4))):
        if not found:
            break
        place = int(rng.integers(len(found) if rng.random() < 0.5 else min(len(found), 400)))
        length = int(rng.integers(1, 40))
        what = rng.integers(5)
        if what == 0:
            found[place] ^= 1 << int(rng.integers(8))
        elif what == 1:
            del found[place : place + length]
        elif what == 2:
            found[place:place] = found[place : place + length]
        elif what == 3:
            found[place : place + length] = bytes(length)
        else:
            del found[place:]
    return bytes(found)


def damaged_json(content: Any, rng: Rng) -> Any:
    """One to three values replaced, removed, doubled or renamed, anywhere in a tree."""
    found = copy.deepcopy(content)
    for _ in range(int(rng.integers(1, 4))):
        holder, key = _pick(found, rng)
        if holder is None:
            return ODD[int(rng.integers(len(ODD)))]
        what = rng.integers(6)
        if what == 0:
            del holder[key]
        elif what == 1 and isinstance(holder, dict):
            holder[f"{key}x"] = holder.pop(key)
        elif what == 2 and isinstance(holder, list):
            holder.append(copy.deepcopy(holder[key]))
        elif what == 3 and type(holder[key]) in (int, float):
            holder[key] = holder[key] * -1 if rng.random() < 0.5 else holder[key] + 1
        else:
            holder[key] = copy.deepcopy(ODD[int(rng.integers(len(ODD)))])
    return found


def _pick(tree: Any, rng: Rng) -> tuple[Any, Any]:
    places: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        for key in node if isinstance(node, dict) else range(len(node)):
            places.append((node, key))
            if isinstance(node[key], dict | list):
                walk(node[key])

    if isinstance(tree, dict | list):
        walk(tree)
    return places[int(rng.integers(len(places)))] if places else (None, None)


def damaged_text(text: str, rng: Rng) -> bytes:
    """A table of text with cells replaced, lines doubled, cut or left out, or its bytes damaged."""
    if rng.random() < 0.25:
        return damaged_bytes(text.encode(), rng)
    lines = [line.split(",") for line in text.splitlines()]
    for _ in range(int(rng.integers(1, 4))):
        if not lines:
            break
        row = int(rng.integers(len(lines)))
        what, cell = rng.integers(5), int(rng.integers(max(1, len(lines[row]))))
        if what == 0:
            lines.pop(row)
        elif what == 1:
            lines.insert(row, list(lines[row]))
        elif what == 2:
            lines[row] = lines[row][:cell]
        elif lines[row]:
            lines[row][cell % len(lines[row])] = str(ODD[int(rng.integers(len(ODD)))])
    return ("\n".join(map(",".join, lines)) + "\n").encode(errors="surrogatepass")


def damaged_arrays(arrays: dict[str, np.ndarray], rng: Rng) -> dict[str, np.ndarray]:
    """Arrays of other types, lengths, ranks and values, or missing, or under other names."""
    found = {key: value.copy() for key, value in arrays.items()}
    for _ in range(int(rng.integers(1, 3))):
        if not found:
            break
        key = list(found)[int(rng.integers(len(found)))]
        value = found[key]
        what = rng.integers(7)
        if what == 0:
            del found[key]
        elif what == 1:
            found[f"{key}x"] = found.pop(key)
        elif what == 2:
            found[key] = value[: len(value) // 2] if value.ndim else np.zeros(3)
        elif what == 3:
            found[key] = value[..., None] if rng.random() < 0.5 else value.reshape(-1)
        elif what == 4:
            kinds = ("U4", "i8", "u1", "c8", "f8", "?", "S3", "M8[s]")
            found[key] = np.zeros(value.shape, kinds[int(rng.integers(len(kinds)))])
        elif value.size and value.dtype.kind == "f":
            value.flat[int(rng.integers(value.size))] = (np.nan, np.inf, 1e38, -1e30)[int(rng.integers(4))]
        elif value.size and value.dtype.kind == "i":
            value.flat[int(rng.integers(value.size))] = -1
    return found


def damage_store(file: Path, rng: Rng) -> None:
    """Cells of a store replaced, rows left out, or JSON within them damaged."""
    with sqlite3.connect(file) as db:
        tables = ("experiments", "cells", "runs", "evaluations", "metrics", "events")
        for _ in range(int(rng.integers(1, 4))):
            table = tables[int(rng.integers(len(tables)))]
            columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
            column = columns[int(rng.integers(len(columns)))]
            if rng.random() < 0.15:
                db.execute(f"DELETE FROM {table}")
                continue
            (value,) = db.execute(f'SELECT "{column}" FROM {table} LIMIT 1').fetchone() or (None,)
            try:
                odd: Any = json.dumps(damaged_json(json.loads(value), rng)) if rng.random() < 0.5 else None
            except (TypeError, ValueError):
                odd = None
            if odd is None:
                odd = ODD[int(rng.integers(len(ODD)))]
                large = type(odd) is int and abs(odd) >= 2**63
                odd = json.dumps(odd) if large or isinstance(odd, list | dict) else odd
            try:
                db.execute(f'UPDATE OR IGNORE {table} SET "{column}" = ?', (odd,))
            except sqlite3.Error:
                continue
