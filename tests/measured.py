"""What a long run of tests counted, as rows in a file (SAPP_ROWS): the pages' figures are made of them."""

from __future__ import annotations

import json
import os
from pathlib import Path


def keep(kind: str, name: str, **counts: int) -> None:
    """Print counts, and add them to the file that SAPP_ROWS names, if it names one."""
    print(f"{name}: {counts}")
    if file := os.environ.get("SAPP_ROWS"):
        with Path(file).open("a", encoding="utf-8") as rows:
            rows.write(json.dumps({"kind": kind, "name": name, **counts}) + "\n")
