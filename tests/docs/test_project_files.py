"""Files for those who cite, contribute or run the project's checks agree with the project."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from sapp.core.version import __version__

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TARGETS = set(re.findall(r"(?m)^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8")))


def test_the_citation_is_of_this_version_and_licence() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == __version__
    assert citation["license"] == PROJECT["license"]
    assert [author["name"] for author in citation["authors"]] == [author["name"] for author in PROJECT["authors"]]


def test_the_workflow_runs_what_the_makefile_has_on_three_pythons() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    assert set(workflow["jobs"]) == {"lint", "tests", "docs", "wheel"}
    commands = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    called = {word for line in commands if line.startswith("make ") for word in line.split()[1:]}
    assert called == {"lint", "types", "test", "docs", "notebooks"}
    assert called <= TARGETS
    pythons = workflow["jobs"]["tests"]["strategy"]["matrix"]["python"]
    assert len(pythons) == 3
    assert {f"Programming Language :: Python :: {python}" for python in pythons} <= set(PROJECT["classifiers"])


def test_hooks_before_a_commit_run_what_is_installed_here() -> None:
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    assert repository["repo"] == "local"
    assert all(hook["entry"].startswith(".venv/bin/") for hook in repository["hooks"])
    for hook in repository["hooks"]:
        for word in hook["entry"].split():
            assert not word.startswith("tests/") or (ROOT / word).is_file()


def test_the_changelog_keeps_to_its_headings() -> None:
    headings = re.findall(r"(?m)^(#{2,3}) (.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    assert headings[0] == ("##", "[Unreleased]")
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert all(text in kinds if level == "###" else re.match(r"\[", text) for level, text in headings)


def test_contributing_names_targets_and_files_that_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = {word for line in re.findall(r"(?m)^make ([\w -]+?)\s*(?:#|$)", text) for word in line.split()}
    assert named >= {"install", "test", "lint", "types", "docs", "notebooks"}
    assert named <= TARGETS
    files = re.findall(r"`((?:tests|sapp)/[\w/]+\.py)`", text)
    assert files
    assert [file for file in files if not (ROOT / file).is_file()] == []
