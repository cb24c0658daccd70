"""What is installed: the wheel and the source archive, the names they go by, and what works without any extra."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import numpy as np
import pytest

from sapp.core.extras import DISTRIBUTION, EXTRAS
from sapp.core.version import __version__

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BLOCKED = """
import sys
names = {names!r}
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in names:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
"""
"""A sitecustomize that hides packages, as in an installation without extras."""


def run(*command: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)  # type: ignore[call-overload]


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel and a source archive of what is committed here, built without a network."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    listed = run("git", "ls-files", "-co", "--exclude-standard", cwd=ROOT)
    if listed.returncode:
        pytest.skip("needs git, to know which files belong to the project")
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file() and name.startswith(("sapp/", "pyproject.toml", "README.md", "LICENSE")):
            target = source / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((ROOT / name).read_bytes())
    for kind in ("sdist", "wheel"):
        backend = f"from setuptools import build_meta; import sys; build_meta.build_{kind}(sys.argv[1])"
        built = run(sys.executable, "-c", backend, out, cwd=source)
        if "No module named 'setuptools'" in built.stderr:
            pytest.skip("needs setuptools to build")
        assert built.returncode == 0, built.stderr[-2000:]
    return out


def test_both_archives_hold_every_file_of_the_package(archives: Path) -> None:
    listed = run("git", "ls-files", "sapp", cwd=ROOT).stdout.splitlines()
    wanted = {name for name in listed if (ROOT / name).is_file()}
    (wheel,) = archives.glob(f"sapp_rl-{__version__}-*.whl")
    (source,) = archives.glob(f"sapp_rl-{__version__}.tar.gz")
    assert wanted <= set(zipfile.ZipFile(wheel).namelist())
    with tarfile.open(source) as opened:
        assert wanted <= {name.partition("/")[2] for name in opened.getnames()}


@pytest.fixture(scope="module")
def installed(archives: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of commands of an environment with the wheel, in which no package of an extra can be imported."""
    place = tmp_path_factory.mktemp("installed")
    venv.create(place, with_pip=False, symlinks=True)
    site = Path(run(place / "bin" / "python", "-c", "import site; print(site.getsitepackages()[0])").stdout.strip())
    (wheel,) = archives.glob("*.whl")
    got = run(sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--target", site, wheel)
    assert got.returncode == 0, got.stderr
    scripts = site / "bin"
    # the base's dependencies come from here; this checkout does not, as an editable installation's hook would add it
    own = [path for path in sys.path if path.endswith("site-packages")]
    (site / "base.pth").write_text("\n".join(own) + "\n")
    (site / "sitecustomize.py").write_text(BLOCKED.format(names=sorted(EXTRAS)))
    command = scripts / "sapp"
    text = command.read_text().split("\n", 1)[1]
    command.write_text(f"#!{place / 'bin' / 'python'}\n{text}")
    return scripts


def sapp(installed: Path, folder: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    return run(installed / "sapp", *words, cwd=folder, env=clean())


def clean() -> dict[str, str]:
    """The environment without this checkout on Python's path."""
    return {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {"JAX_PLATFORMS": "cpu"}


def test_the_command_trains_without_any_extra(installed: Path, tmp_path: Path) -> None:
    shown = sapp(installed, tmp_path, "--version")
    assert shown.stdout.split() == ["sapp", __version__], shown.stderr
    rng = np.random.default_rng(0)
    np.savez(
        tmp_path / "logs.npz", observations=rng.normal(size=(60, 2)), actions=rng.uniform(-1, 1, (60, 1)),
        rewards=rng.normal(size=60), terminals=np.arange(60) % 20 == 19,
    )  # fmt: skip
    python = installed.parents[3] / "bin" / "python"
    where = run(python, "-c", "import sapp; print(sapp.__file__)", cwd=tmp_path, env=clean())
    assert "site-packages" in where.stdout
    assert str(ROOT) not in where.stdout
    rows = [f"{n // 9},{n % 9},{n % 5},{n % 3 / 2},1,{int(n % 9 == 8)}" for n in range(54)]
    (tmp_path / "logs.csv").write_text("\n".join(["episode,observation_0,observation_1,action,reward,terminal", *rows]))
    done = sapp(
        installed, tmp_path, "train", "cql", "logs.csv", "--steps", "2", "--hidden", "4", "--batch-size", "8",
        "--action-samples", "1", "--out", "run", "--quiet",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for words, extra in (
        (("train", "cql", "logs.parquet"), "tables"),
        (("export", "run", "policy.onnx"), "onnx"),
        (("data", "show", "logs.npz", "--plot", "a.png"), "plot"),
        (("evaluate", "run", "--environment", "hopper"), "mujoco"),
        (("train", "cql", "minari:own/logs-v0"), "minari"),
    ):
        refused = sapp(installed, tmp_path, *words)
        assert refused.returncode == 2, words
        assert refused.stderr.strip().splitlines()[-1].count(f"pip install '{DISTRIBUTION}[{extra}]'") == 1, words
        assert "Traceback" not in refused.stderr


def test_every_package_of_an_extra_is_in_that_extra() -> None:
    assert PROJECT["name"] == DISTRIBUTION
    spelled = {"PIL": "pillow", "mlflow": "mlflow-skinny"}
    for package, extra in EXTRAS.items():
        names = [re.split(r"[\[><=]", each)[0] for each in PROJECT["optional-dependencies"][extra]]
        assert spelled.get(package, package.replace("_", "-")) in names, package


def test_install_lines_name_the_distribution_and_an_extra_that_is_there() -> None:
    names = run("git", "ls-files", "*.py", "*.md", "Makefile", cwd=ROOT).stdout.splitlines()
    for name in names:
        path = ROOT / name
        if not path.is_file() or path == Path(__file__):
            continue
        text = path.read_text(encoding="utf-8")
        assert re.search(r"\binstall (-\S+ )*['\"]?sapp(?![\w.-]|/)", text) is None, name  # another project's
        for found, extra in re.findall(r"pip install '(sapp[\w-]*)\[(\w+)\]'", text):
            assert found == DISTRIBUTION, name
            assert extra in PROJECT["optional-dependencies"], f"{name}: {extra}"


def test_no_extra_is_imported_with_a_module() -> None:
    """Only inside functions, where ``require`` has been asked first, or for type checkers."""
    for path in sorted((ROOT / "sapp").rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            for part in [node] if isinstance(node, ast.Import | ast.ImportFrom) else []:
                modules = [part.module or ""] if isinstance(part, ast.ImportFrom) else [one.name for one in part.names]
                assert not {module.partition(".")[0] for module in modules} & set(EXTRAS), path
