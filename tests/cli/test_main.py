from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sapp.cli.main import main

COMMANDS = (
    ["demo"],
    ["train"],
    ["resume"],
    ["evaluate"],
    ["algorithms"],
    ["data", "show"],
    ["data", "replay"],
    ["data", "convert"],
)


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_help_and_version_import_little(argument):
    """Three times as many modules as Python has by itself; JAX alone brings ten times as many."""
    code = f"""if True:
        import sys
        had = len(sys.modules)
        from sapp.cli.main import main
        assert main(["{argument}"]) == 0
        print(had, len(sys.modules))
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    had, has = map(int, done.stdout.splitlines()[-1].split())
    assert has < had + 250


def test_help_imports_nothing_heavy():
    shown = "print(sorted({'jax', 'numpy', 'rich'} & set(sys.modules)))"
    code = f"import sys, sapp.cli.main; sapp.cli.main.main(['train', '--help']); {shown}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_help_page_has_an_example(command, capsys):
    assert main([*command, "--help"]) == 0
    page = capsys.readouterr().out
    assert "Example" in page
    assert f"sapp {' '.join(command)} " in page


def test_train_help_names_the_algorithms(capsys):
    from sapp.algorithms.registry import ABOUT, ALGORITHMS, PAPER
    from sapp.weights import registry

    assert list(ABOUT) == list(ALGORITHMS)
    assert [name.partition(":")[0] for name in registry.ABOUT] == list(registry.WEIGHTS)
    assert main(["train", "sa-cql", "--help"]) == 0
    page = capsys.readouterr().out
    assert all(f"  {name} " in page for name in (*ALGORITHMS, *PAPER, *registry.ABOUT))
    assert all(f"  {name}:WEIGHTS " in page for name in registry.CONTROLS)
    assert "sapp algorithms NAME" in page


def test_version(capsys):
    import sapp

    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"sapp {sapp.__version__}\n"


def test_nothing_asked_shows_help(capsys):
    assert main([]) == 0
    assert "Commands:" in capsys.readouterr().out


def test_help_lists_commands_as_one_meets_them(capsys):
    assert main(["--help"]) == 0
    lines = capsys.readouterr().out.partition("Commands:\n")[2].partition("\n\n")[0].splitlines()
    first = ("demo", "train", "resume", "evaluate", "select", "export", "report", "experiment", "data", "collect")
    assert [line.split()[0] for line in lines] == [*first, "algorithms", "theory"]


def test_the_page_of_the_command_names_every_command_and_option():
    import typer

    from sapp.cli.main import app

    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    parts = {part.split()[1]: part for part in page.split("\n## ")[1:] if part.startswith("sapp ")}
    missing = []
    for name, command in typer.main.get_command(app).commands.items():
        for key, each in getattr(command, "commands", {"": command}).items():
            options = [text for one in each.params for text in one.opts if text.startswith("--")]
            options.remove("--config")  # all have it, and the page says so once
            wanted = [*(f"`{text}`" for text in options), f"sapp {name} {key}".strip()]
            missing += [(name, key, text) for text in wanted if text not in parts.get(name, "")]
    assert missing == []
    assert "`--config FILE.toml`" in page


def test_a_setting_of_jax_that_there_is_not_is_one_line(point_file: Path) -> None:
    changed = {**os.environ, "JAX_DEFAULT_PRNG_IMPL": "evil"}
    command = [sys.executable, "-m", "sapp", "train", "bc", str(point_file), "--steps", "2"]
    done = subprocess.run(command, env=changed, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert done.stderr == "sapp: error: JAX_DEFAULT_PRNG_IMPL=evil: JAX has no such setting; unset it, or correct it\n"
