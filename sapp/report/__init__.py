"""The report: one self-contained page, and its tables and figures as files."""

from sapp.report.build import report

__all__ = ["report"]
