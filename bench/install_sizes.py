"""The measured section of docs/install.md, from rows: python -m bench.install_sizes

Measured by hand, once each: python -m venv, du -sm of its site-packages before and after pip install
--no-compile of the wheel, and after python -m compileall.
"""

from __future__ import annotations

import json
from pathlib import Path

from sapp.report.marked_sections import write_sections
from sapp.report.report_tables import table

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "install.md"
REQUIRED = ("jaxlib", "SciPy", "NumPy", "JAX")


def sections() -> dict[str, str]:
    """The marked sections of the page."""
    rows = [json.loads(line) for line in (HERE / "rows" / "install.jsonl").read_text(encoding="utf-8").splitlines()]
    whole = [row for row in rows if "installation" in row]
    parts = {row["part"]: row["mb"] for row in rows if "part" in row}
    lines = [
        [row["installation"], f"{row['mb']:,} MB", f"{row['seconds']} s", f"{row['bytecode_mb']} MB",
         f"{row['bytecode_seconds']} s"]
        for row in whole
    ]  # fmt: skip
    head = ("installation", "on disk without bytecode", "time", "Python's bytecode", "time for it")
    base = whole[0]["mb"] + whole[0]["bytecode_mb"]
    required = ", ".join(f"{name} {parts[name]}" for name in REQUIRED)
    others = [f"{name} {mb}" for name, mb in parts.items() if name not in REQUIRED]
    said = (
        f"pip compiles bytecode for all files when it installs, so a base installation takes {base} MB; with "
        f"`pip install --no-compile` (and by uv's default) it takes {whole[0]['mb']}, and Python adds bytecode "
        f"only for what is imported. Of the {base} MB JAX and what it requires are "
        f"{sum(parts[name] for name in REQUIRED)}: {required}. The rest is {', '.join(others)} and small ones."
    )
    made = table("Sizes", said, head, lines).markdown().strip()
    return {"sizes": made}


if __name__ == "__main__":
    write_sections(PAGE, sections())
