"""The study's tables as Markdown, from its rows: python -m studies.theory.tables"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sapp.core.comparisons import alone_only
from sapp.report.marked_sections import write_sections
from sapp.report.report_tables import family_caption
from sapp.theory.audit import Row, says_where, table_markdown
from sapp.theory.chain_tuned import METHODS, Tuned
from studies.theory.comparison import Comparison
from studies.theory.rows import Line, read, read_audit, read_chain, read_comparison

HERE = Path(__file__).parent
ROWS = HERE / "rows"
PAGES = (HERE.parents[1] / "docs" / "theory.md", HERE / "README.md")
LABELS = {
    "none": "none", "count": "counts", "pp": "PP", "sa": "SA-PP w", "sa-root": "√w", "sa-clipped": "w∧2",
    "sa-log": "log-min–max", "random": "random", "shuffled": "shuffled",
}  # fmt: skip


def sections(folder: Path = ROWS) -> dict[str, str]:
    """Every marked section that the rows in a folder make."""
    audit = read_audit(folder / "audit.csv", folder / "verdicts.csv")
    chain = read_chain(folder / "chain.csv")
    return {
        "audit-size": audit_size(audit, folder),
        "audit": table_markdown(audit),
        "audit-short": short(audit),
        "lemma-normalised": lemma_normalised(read(folder / "audit.csv")),
        "chain-tuned": chain_table({case: rows for case, rows in chain.items() if case[2] == "knowing"}),
        "chain-ignorant": chain_table({case: rows for case, rows in chain.items() if case[2] == "ignorant"}),
        "comparison": comparison_table(read_comparison(folder / "comparison.csv")),
    }


def audit_size(rows: Sequence[Row], folder: Path) -> str:
    """How much was checked."""
    problems = int(read(folder / "verdicts.csv")[0]["problems"])
    least, most = (choose(row.checked for row in rows) for choose in (min, max))
    return f"{problems:,} MDPs, each statement checked {least:,} to {most:,} times."


def lemma_normalised(lines: Sequence[Line]) -> str:
    """Where the repaired lemma with the occupancy that sums to 1 is violated, by family."""
    found = [line for line in lines if line["statement"] == "lemma1-normalised"]
    shares = {line["family"]: int(line["violated"]) / int(line["checked"]) for line in found}
    some = sorted(((share, name) for name, share in shares.items() if share >= 0.0005), reverse=True)
    told = ", ".join(f"{_share(share)} in {name}" for share, name in some)
    return f"With Σd = 1 in its bound the repaired lemma is violated in {told} of the checks, in no other family."


def _signed(value: float, digits: int) -> str:
    return f"{value:+.{digits}f}".replace("-", "−")


def _share(value: float) -> str:
    if value == 0:
        return "0"
    return "<0.1 %" if value < 0.001 else f"{100 * value:.1f} %"


def short(rows: Sequence[Row]) -> str:
    """Each repaired statement and the share of checks in which it says something; violations of what is printed."""
    lines = [
        "| statement | violated as printed | violated as repaired | its hypotheses met "
        "| says something (in which families) |",
        "|---|---:|---:|---:|---|",
    ]
    for row in rows:
        if not row.statement.proved:
            continue
        stem, version = row.statement.key.rsplit("-", 1)
        printed = [r for r in rows if r.statement.key.startswith(f"{stem}-") and r.version == "printed"]
        printed = [r for r in printed if r.statement.title == row.statement.title] or printed
        before = " / ".join(_share(each.violated) for each in printed if version == "repaired") or "–"
        cells = (before, _share(row.violated), _share(1 - row.not_met), says_where(row))
        lines.append(f"| {row.statement.title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def chain_table(made: dict[tuple[int, str, str], list[Tuned]]) -> str:
    """A column for each case: α, and the difference to PP in thousandths with its interval; all are one family."""
    gaps = {(case, row.method): row.p for case, rows in made.items() for row in rows if row.method != "pp"}
    fallen = {key for key, falls in zip(gaps, alone_only(list(gaps.values())), strict=True) if falls}
    heads = [f"{total} trajectories, {arms} arms" for total, arms, _ in made]
    plain = [f"{1e3 * _of(rows, 'pp').loss:.1f} (α {_of(rows, 'pp').alpha:.3g})" for rows in made.values()]
    lines = [
        "| lost, ×10³, minus PP's | " + " | ".join(heads) + " |",
        "|---|" + "---|" * len(made),
        "| PP itself loses | " + " | ".join(plain) + " |",
    ]
    for method, label in METHODS.items():
        if method == "pp":
            continue
        cells = []
        for case, rows in made.items():
            row = _of(rows, method)
            estimate, low, high = (_signed(1e3 * x, 1) for x in row.difference)
            mark = " †" if (case, method) in fallen else ""
            cells.append(f"{estimate} ({low} to {high}){mark} (α {row.alpha:.3g})")
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", family_caption(list(gaps.values()))])


def _of(rows: Sequence[Tuned], method: str) -> Tuned:
    return next(row for row in rows if row.method == method)


def comparison_table(rows: Sequence[Comparison]) -> str:
    """Losses by family and method, and SA-PP's paired difference to PP."""
    families = list(dict.fromkeys(row.family for row in rows))
    gaps = [row.p for row in rows if row.method in ("sa", "sa-log")]
    lines = [
        "| family | " + " | ".join(LABELS.values()) + " | SA-PP w − PP | log-min–max − PP |",
        "|---|" + "---|" * (len(LABELS) + 2),
    ]
    for family in families:
        own = {row.method: row for row in rows if row.family == family}
        cells = [f"{own[method].loss:.4f}" for method in LABELS]
        for method in ("sa", "sa-log"):
            low, high = own[method].interval
            cells.append(f"{_signed(own[method].difference, 4)} [{_signed(low, 4)}, {_signed(high, 4)}]")
        lines.append(f"| {family} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", family_caption(gaps)])


if __name__ == "__main__":
    for each in PAGES:
        write_sections(each, sections())
