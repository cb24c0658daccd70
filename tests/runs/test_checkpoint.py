"""Checkpoints: the same bits back, or a refusal that says why."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from sapp import CQL, DualDICE, SappError, resume
from sapp.core import files
from sapp.core.spec import Spec
from sapp.runs import checkpoint, metric_tables
from sapp.runs.run import Run

SPEC = Spec(3, 2, jnp.zeros(3), jnp.ones(3))


@pytest.fixture(scope="module")
def tree() -> list:
    """What a run saves, and values that text or a careless cast would change."""
    algorithm = CQL(hidden=(8, 8), weights=DualDICE(hidden=(8,)))
    state = jax.jit(lambda key: (algorithm.init(key, SPEC), algorithm.weights.init(key, SPEC)))(jax.random.PRNGKey(0))
    odd = {"odd": jnp.asarray([np.nan, -0.0, np.inf, 1e-45, 1 / 3], jnp.float32), "count": jnp.int32(2**31 - 1)}
    return [*state, odd, {"flag": jnp.asarray([True, False])}]


@pytest.fixture
def file(tmp_path: Path, tree: list) -> Path:
    path = tmp_path / "0000000007.safetensors"
    checkpoint.save(path, tree, {"step": 7})
    return path


def bits(tree: object) -> list[bytes]:
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(tree)]


def test_roundtrip_keeps_every_bit(file: Path, tree: list) -> None:
    loaded = checkpoint.load(file, tree)
    assert jax.tree.structure(loaded) == jax.tree.structure(tree)
    assert bits(loaded) == bits(tree)
    assert [x.dtype for x in jax.tree.leaves(loaded)] == [x.dtype for x in jax.tree.leaves(tree)]
    assert checkpoint.read_information(file)["step"] == 7


def test_loads_into_abstract_shapes(file: Path, tree: list) -> None:
    like = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), tree)
    assert bits(checkpoint.load(file, like)) == bits(tree)


def test_nothing_is_left_beside_the_file(file: Path) -> None:
    assert [each.name for each in file.parent.iterdir()] == [file.name]


def test_a_changed_byte_is_found_and_its_array_named(file: Path, tree: list) -> None:
    content = bytearray(file.read_bytes())
    content[-5] ^= 0x10
    file.write_bytes(content)
    with pytest.raises(SappError, match=rf"{file.name}: array .+ is damaged \(checksum differs\); delete it"):
        checkpoint.load(file, tree)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.999])
def test_a_truncated_file_is_refused_by_name(file: Path, tree: list, share: float) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: int(share * len(content))])
    with pytest.raises(SappError, match=rf"{file.name}: damaged.*delete it"):
        checkpoint.load(file, tree)


def test_another_format_is_refused(file: Path, tree: list) -> None:
    arrays = load_file(file)
    save_file(arrays, file, metadata={"sapp": json.dumps({"format": checkpoint.FORMAT + 1, "crc32": {}})})
    with pytest.raises(SappError, match=rf"format {checkpoint.FORMAT + 1}, this version reads {checkpoint.FORMAT}"):
        checkpoint.load(file, tree)


def test_a_safetensors_file_of_somebody_else_is_refused(file: Path, tree: list) -> None:
    save_file({"x": np.zeros(3, np.float32)}, file)
    with pytest.raises(SappError, match="not one of sapp's checkpoints"):
        checkpoint.load(file, tree)


def test_a_missing_file_is_named(tmp_path: Path, tree: list) -> None:
    with pytest.raises(SappError, match="no such checkpoint"):
        checkpoint.load(tmp_path / "none.safetensors", tree)


def test_wrong_structure_is_refused(file: Path, tree: list) -> None:
    with pytest.raises(SappError, match="does not fit this run's configuration"):
        checkpoint.load(file, tree[:-1])
    with pytest.raises(SappError, match=r"does not fit.*'more'"):
        checkpoint.load(file, [*tree[:-1], tree[-1] | {"more": jnp.zeros(2)}])


def test_wrong_shape_and_dtype_are_refused(file: Path, tree: list) -> None:
    with pytest.raises(SappError, match=r"\['flag'\] is bool\[2\].*wants bool\[3\]"):
        checkpoint.load(file, [*tree[:-1], {"flag": jnp.zeros(3, bool)}])
    with pytest.raises(SappError, match=r"is bool\[2\].*wants float32\[2\]"):
        checkpoint.load(file, [*tree[:-1], {"flag": jnp.zeros(2)}])


def test_a_failed_write_leaves_the_old_file_and_says_so(file: Path, tree: list) -> None:
    before = file.read_bytes()
    with pytest.raises(SappError, match="cannot write"):
        checkpoint.save(file / "inside-a-file", tree, {})
    assert file.read_bytes() == before


def test_what_a_checkpoint_says_of_itself_is_under_the_checksum(file: Path, tree: list) -> None:
    """Metrics not yet in a row would otherwise be changed unseen."""
    content = file.read_bytes()
    changed = content.replace(b'\\"step\\": 7', b'\\"step\\": 8')
    assert changed != content
    file.write_bytes(changed)
    with pytest.raises(SappError, match=r"its information is damaged \(checksum differs\)"):
        checkpoint.load(file, tree)


def test_a_checkpoint_is_of_the_step_that_it_says_not_of_its_name(trained: Path, tmp_path: Path) -> None:
    run = Run(shutil.copytree(trained, tmp_path / "run"))
    *_, before, last = run.checkpoints.values()
    before.replace(last)
    with pytest.raises(SappError, match=rf"{last.name}: is the checkpoint of step {int(before.stem)}, whatever"):
        run.restore()
    with pytest.raises(SappError, match="whatever its name"):
        resume(run.path, progress=False)


def test_tables_are_on_the_disk_before_the_checkpoint(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(shutil.copytree(trained, tmp_path / "run"))
    step, learners = run.restore()
    order: list[str] = []
    for module in (metric_tables, files):
        monkeypatch.setattr(module, "sync", lambda path: order.append(path.name))
    run.save(step, learners)
    assert order[:2] == ["metrics.csv", "evaluations.csv"]
    assert order[-1] == "checkpoints"


@pytest.mark.parametrize("name", [".lock", "data", "metrics.csv", "videos"])
def test_nothing_is_written_through_a_link(trained: Path, tmp_path: Path, name: str) -> None:
    run, own = Path(shutil.copytree(trained, tmp_path / "run")), tmp_path / "own"
    (own / "d").mkdir(parents=True)
    (own / "f").write_text("mine")
    (own / "d" / ".x.tmp").write_text("mine")
    (run / name).unlink(missing_ok=True)
    (run / name).symlink_to(own / ("d" if name in ("data", "videos") else "f"))
    max(Run(run).checkpoints.values()).unlink()
    with pytest.raises(SappError, match=f"{name}: is a link, and a run is written through none"):
        resume(run, progress=False)
    with pytest.raises(SappError):
        metric_tables.Table(run / name, ("step",)).append([{"step": 1}])
    assert (own / "f").read_text() == (own / "d" / ".x.tmp").read_text() == "mine"


def test_other_random_numbers_are_refused_and_other_versions_said(
    trained: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = Path(shutil.copytree(trained, tmp_path / "run"))
    max(Run(run).checkpoints.values()).unlink()
    environment = {**os.environ, "JAX_DEFAULT_PRNG_IMPL": "rbg"}
    command = [sys.executable, "-m", "sapp", "resume", str(run), "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "set JAX_DEFAULT_PRNG_IMPL=threefry2x32" in done.stderr
    config = json.loads((run / "config.json").read_text())
    config["versions"]["optax"] = "0.0.1"
    (run / "config.json").write_text(json.dumps(config))
    resume(run, progress=False)
    assert "optax 0.0.1 is now" in capfd.readouterr().err
