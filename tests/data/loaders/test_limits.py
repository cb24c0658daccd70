"""A stranger's file gives its own data, of a size that fits it, or is refused before anything is read."""

from __future__ import annotations

import gzip
import io
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from sapp.cli.main import main
from sapp.core.errors import SappError
from sapp.data import load
from sapp.data.loaders import limits

ROWS = 20


def arrays() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    done = np.arange(ROWS) % 10 == 9
    actions = rng.uniform(-1, 1, (ROWS, 1)).astype("f4")
    return {"observations": rng.normal(size=(ROWS, 3)).astype("f4"), "actions": actions,
            "rewards": rng.normal(size=ROWS).astype("f4"), "terminals": done}  # fmt: skip


def log(path: Path, change: Callable[[h5py.File], None]) -> Path:
    with h5py.File(path, "w") as file:
        for key, value in arrays().items():
            file[key] = value
        del file["rewards"]
        change(file)
    return path


def link(file: h5py.File) -> None:
    file["rewards"] = h5py.ExternalLink("secret.hdf5", "rewards")


def inside_a_group(file: h5py.File) -> None:
    file["rewards"] = np.zeros(ROWS, "f4")
    file.create_group("infos")["qpos"] = h5py.ExternalLink("secret.hdf5", "rewards")


def storage(file: h5py.File) -> None:
    file.create_dataset("rewards", (ROWS,), "f4", external=[("secret.txt", 0, 4 * ROWS)])


def virtual(file: h5py.File) -> None:
    layout = h5py.VirtualLayout((ROWS,), "f4")
    layout[:] = h5py.VirtualSource("secret.hdf5", "rewards", (ROWS,))
    file.create_virtual_dataset("rewards", layout)


@pytest.mark.parametrize(
    ("change", "words"),
    [(link, "is a link into another file"), (inside_a_group, "'infos/qpos' is a link into another file"),
     (storage, "is stored in another file"), (virtual, "is put together from other files")],
)  # fmt: skip
def test_hdf5_reads_no_other_file(tmp_path: Path, change: Callable[[h5py.File], None], words: str) -> None:
    (tmp_path / "secret.txt").write_bytes(bytes(4 * ROWS))
    with h5py.File(tmp_path / "secret.hdf5", "w") as file:
        file["rewards"] = np.zeros(ROWS, "f4")
    with pytest.raises(SappError, match=words):
        load(log(tmp_path / "log.hdf5", change))


def bomb_hdf5(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("observations", (1 << 30, 3), "f4", chunks=(1 << 20, 3))
        for key in ("actions", "rewards", "terminals"):
            file[key] = np.zeros(3)


def bomb_npz(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("observations.npy", "w") as member:
        np.lib.format.write_array_header_1_0(member, {"descr": "<f4", "fortran_order": False, "shape": (1 << 25, 3)})
        for _ in range(3 << 7):
            member.write(bytes(1 << 20))


def bomb_csv(path: Path) -> None:
    with gzip.open(path, "wb", 9) as file:
        file.write(b"observation,action,reward,terminal\n")
        for _ in range(300):
            file.write(b"0,0,0,0\n" * (1 << 17))


def bomb_parquet(path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    zeros = pa.DictionaryArray.from_arrays(pa.array(np.zeros(1 << 22, "i1")), pa.array([0.0]))
    table = pa.table({name: pa.chunked_array([zeros] * 4) for name in ("observation", "action", "reward", "terminal")})
    pyarrow.parquet.write_table(table, path)


@pytest.mark.parametrize(
    ("name", "make"),
    [("b.hdf5", bomb_hdf5), ("b.npz", bomb_npz), ("b.csv.gz", bomb_csv), ("b.parquet", bomb_parquet)],
)
def test_what_unfolds_without_end_is_refused_before_it_does(
    tmp_path: Path, name: str, make: Callable[[Path], None]
) -> None:
    file = tmp_path / name
    make(file)
    assert file.stat().st_size < 2_000_000
    tracemalloc.start()
    with pytest.raises(SappError, match=r"would unfold from .* more than 200 times its size"):
        load(file)
    assert tracemalloc.get_traced_memory()[1] < 100_000_000
    tracemalloc.stop()


def test_an_array_that_announces_more_than_there_is_is_refused(tmp_path: Path) -> None:
    content = io.BytesIO()
    np.lib.format.write_array_header_1_0(content, {"descr": "<f8", "fortran_order": False, "shape": (1 << 40,)})
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("observations.npy", content.getvalue() + bytes(80))
    with pytest.raises(SappError, match=r"'observations\.npy' is cut short"):
        load(tmp_path / "a.npz")


def test_what_compresses_well_but_is_small_is_read(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", **{**arrays(), "rewards": np.zeros(ROWS, "f4")})
    assert load(tmp_path / "a.npz").size == ROWS
    limits.check_size(tmp_path / "a.npz", limits.FREE)


def test_names_in_files_do_not_steer_the_terminal(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a\x1b[2J.npz"
    np.savez(file, **arrays(), **{"infos\x1b]0;x\x07": np.zeros(ROWS)})
    assert load(file).name == "a\\x1b[2J"
    assert main(["data", "check", str(file)]) == 0
    assert main(["data", "show", str(file)]) == 0
    assert main(["train", "cql", str(tmp_path / "\x1b[2Jnowhere.npz")]) == 2
    told = capfd.readouterr()
    assert "\x1b[2J" not in told.out + told.err
    assert "\x1b]0" not in told.out + told.err


@pytest.mark.parametrize(("told", "cut"), [(100, False), (150, True)])
def test_an_array_of_an_archive_that_says_it_is_larger_is_cut_short(tmp_path: Path, told: int, cut: bool) -> None:
    """By more than its header is long: 150 numbers of four bytes, where there are a hundred."""
    text = io.BytesIO()
    np.lib.format.write_array_header_1_0(text, {"descr": "<f4", "fortran_order": False, "shape": (told,)})
    with zipfile.ZipFile(tmp_path / "log.npz", "w") as archive:
        archive.writestr("rewards.npy", text.getvalue() + bytes(400))
    if cut:
        with pytest.raises(SappError, match=r"'rewards.npy' is cut short"):
            limits.check_npz(tmp_path / "log.npz")
    else:
        limits.check_npz(tmp_path / "log.npz")
