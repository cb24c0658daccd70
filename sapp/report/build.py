"""From stores and run folders to the page, and to tables and figures as files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sapp.core.errors import SappError
from sapp.core.files import check_replaceable, distinct, write_text
from sapp.report.content import Content, content
from sapp.report.figures import draw
from sapp.report.page import page
from sapp.report.report_tables import slug, write_all
from sapp.report.sources import read


def report(
    sources: Sequence[str | Path], out: str | Path = "report.html", figures: str | Path | None = None,
    title: str = "Results", force: bool = False,
) -> Path:  # fmt: skip
    """Write the page of some results stores or run folders.

    Args:
        sources: results stores, run folders, or folders that hold either.
        out: the HTML file.
        figures: a folder for the charts (PNG, SVG) and the tables (Markdown, LaTeX).
        title: of the page.
        force: replace a file that is not a report; what the report is made from never is.
    """
    path = Path(out)
    if any(path.resolve() == Path(source).resolve() or _is_part(path, Path(source)) for source in sources):
        raise SappError(f"{path}: the report is made from it; name another file to write")
    check_replaceable(path, _is_report, "a report", force)
    contents = [content(experiment) for experiment in read(sources)]
    write_text(path, page(contents, title))
    if figures is not None:
        for number, each in enumerate(contents):
            export(each, Path(figures) / f"{number + 1}-{slug(each.experiment.name)}")
    return path


def _is_part(path: Path, source: Path) -> bool:
    """Whether a file is in a folder that is read, or beside a store that is, and is not a page."""
    if source.is_file():
        return path.resolve() == source.resolve().with_name(f"{source.stem}-timings.csv")
    inside = source.is_dir() and path.exists() and path.resolve().is_relative_to(source.resolve())
    return inside and path.suffix.lower() not in (".html", ".htm")


def _is_report(content: bytes) -> bool:
    """Whether a file's beginning is that of a page written here."""
    return b'<meta name="generator" content="sapp ' in content


def export(each: Content, folder: Path) -> list[Path]:
    """Tables and charts of an experiment as files."""
    markdown, latex = write_all(list(each.tables.values()))
    write_text(folder / "tables.md", markdown)
    write_text(folder / "tables.tex", latex)
    written = [folder / "tables.md", folder / "tables.tex"]
    charts = [(f"curve-{slug(name)}", chart) for name, chart in each.curves]
    charts += [(f"ratio-{slug(chart.title)}", chart) for _, chart in each.diagnostics]
    charts += [("profile", each.profile)] if each.profile is not None else []
    for name, (_, chart) in zip(distinct([name for name, _ in charts]), charts, strict=True):
        written += draw(chart, folder / name)
    return written
