"""Conditions of the machine, the terminal and the folder: one line that says what is wrong, and nothing is touched."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest
from forked import Command, Fault, Forked
from kit import SHORT, TINY, copies
from test_faults import contents, leftovers

TRAIN = ["train", "bc", "point.npz", *TINY, *SHORT, "--out", "new"]
OFFLINE = ["--offline", "--fit-steps", "2", "--bags", "2", "--fit-hidden", "4"]


@pytest.fixture
def place(forked: Forked, kit: Path, tmp_path: Path) -> Path:
    """A folder with logs and a finished run."""
    return copies(forked, kit, tmp_path / "place", "run", "point.npz", "log.csv")


def refused(forked: Forked, folder: Path, command: Command, *, before: str = "", **options: object) -> str:
    """The one line of a command that changes nothing."""
    was = contents(folder)
    done = forked.run(folder, command, before=before, **options)  # type: ignore[arg-type]
    assert done.code == 2, (command, done)
    assert done.err[0].count("\n") == 1, done.err
    assert done.err[0].startswith("sapp: error: ")
    assert contents(folder) == was
    assert leftovers(folder) == []
    return done.err[0]


@pytest.mark.parametrize("command", [["evaluate", "run", "--episodes", "1"], TRAIN])
def test_a_device_that_is_not_there(forked: Forked, place: Path, command: list[str]) -> None:
    line = refused(forked, place, command, before="import jax\njax.config.update('jax_platforms', 'cuda')",
                   env={"JAX_PLATFORMS": "cuda"})  # fmt: skip
    assert "JAX_PLATFORMS=cuda: there is no such device here" in line
    assert "restore it" not in line


def test_a_setting_of_jax_that_sapp_cannot_work_with(forked: Forked, place: Path) -> None:
    strict = "import jax\njax.config.update('jax_numpy_dtype_promotion', 'strict')"
    assert "DTYPE_PROMOTION=strict: sapp needs" in refused(forked, place, TRAIN, before=strict)


@pytest.mark.parametrize("command", ["data list", "train bc hopper-medium-v2", "data show ~/x.npz"])
def test_an_account_without_a_home_folder(forked: Forked, place: Path, command: str) -> None:
    nobody = "import os, pwd\nos.environ.pop('HOME', None)\npwd.getpwuid = lambda _: {}['nobody']"
    assert "no home folder; set HOME" in refused(forked, place, command.split(), before=nobody)


def test_a_terminal_of_ascii_shows_escapes(forked: Forked, place: Path) -> None:
    (place / "point.npz").rename(place / "pünkt.npz")
    ascii_ = "import sys\nfor each in (sys.stdout, sys.stderr):\n    each.reconfigure(encoding='ascii')"
    done = forked.run(place, ["data", "show", "pünkt.npz"], before=ascii_)
    assert done.code == 0, done.err
    assert done.out[0].isascii()
    assert "\\xfcnkt" in refused(forked, place, ["data", "show", "nünkt.npz"], before=ascii_).replace("n\\", "\\")


@pytest.mark.parametrize("closed", [(1,), (1, 2), (0, 1, 2)])
def test_closed_streams(forked: Forked, place: Path, closed: tuple[int, ...]) -> None:
    """What is printed is lost; no file takes the number of a closed stream, so nothing is printed into it."""
    close = "import os, sys\n" + "".join(
        f"os.close({number})\nsys.{('stdin', 'stdout', 'stderr')[number]} = None\n" for number in closed
    )
    done = forked.run(place, ["data", "convert", "point.npz", "copy.npz"], before=close)
    assert (done.code, done.err[0]) == (0, "")
    straight = forked.run(place, ["data", "convert", "point.npz", "other.npz"])
    assert straight.code == 0
    assert (place / "copy.npz").read_bytes() == (place / "other.npz").read_bytes()


@pytest.mark.parametrize(
    "words",
    [
        "train bc point.npz --steps", "train bc point.npz --eval-seed", "evaluate run --episodes",
        "export run a.onnx --samples", "collect point --steps", "collect point --rows", "theory audit --mdps",
        "theory chain --arm", "theory chain --left", "demo --seeds", "demo --steps", "select run --bags",
        "evaluate run --offline --fit-steps", "evaluate run --seed", "experiment table1 --steps",
        "data make hopper-medium --seed",
    ],
)  # fmt: skip
def test_numbers_of_64_bits_are_refused_at_once(forked: Forked, place: Path, words: str) -> None:
    for number in (2**63, -(2**63) - 1, 10**30):
        line = refused(forked, place, [*words.split(), str(number)], env={"MINARI_DATASETS_PATH": "minari"})
        assert words.rsplit(maxsplit=1)[-1] in line


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("evaluate run --bags 3", "--bags is for estimates from logs"),
        ("evaluate run --act sample", "--act is for estimates from logs"),
        ("evaluate run --offline --episodes 3", "--episodes says how policies are played"),
        ("evaluate run --offline --video", "--video says how policies are played"),
        ("collect point --policy uniform --capacity 5", "--capacity is for learning"),
        ("collect point --policy uniform --algorithm dqn", "--algorithm is for learning"),
        ("collect point --epsilon 0.5", "--epsilon is for --policy"),
        ("collect point --temperature 2", "--temperature is for --policy"),
        ("collect point --epsilon-decay 5", "--epsilon-decay is for --algorithm dqn"),
        ("collect catch --algorithm dqn --snapshots 3", "--snapshots is for --algorithm sac"),
        ("collect --resume run --steps 30", "--steps was settled when the run began"),
        ("train bc point.npz --eval-max-steps 5", "eval_max_steps cuts episodes of games"),
        ("train bc point.npz --stream", "stream leaves frames on the host"),
        ("theory audit --replay x --mdps 3", "--mdps is for the whole audit"),
        ("demo --steps 0", "greater than or equal to 3"),
        ("experiment random-ratio --time-limit nan", "give seconds above 0"),
        ("experiment random-ratio --methods ,", "--methods ',': name some"),
        ("experiment random-ratio --store run", "run: is a folder"),
        ("experiment random-ratio --rows point.npz", "name another for --rows"),
    ],
)
def test_options_that_would_be_ignored_are_refused(forked: Forked, place: Path, words: str, says: str) -> None:
    assert says in refused(forked, place, words.split())


@pytest.mark.parametrize(
    "words",
    ["train bc nowhere.npz --luck 3", "train bc nowhere.npz --hidden x", "train bc nowhere.npz --seeds 1,1",
     "train bc nowhere.npz --steps 9000000000", "train bc nowhere.npz --out run"],
)  # fmt: skip
def test_options_are_checked_before_data_are_loaded(forked: Forked, place: Path, words: str) -> None:
    assert "nowhere.npz" not in refused(forked, place, words.split())


@pytest.mark.parametrize("command", [["resume", "run", "--quiet"], ["evaluate", "run"]])
def test_checkpoints_that_cannot_be_listed(forked: Forked, place: Path, command: list[str]) -> None:
    """An unmounted disk is not a run without checkpoints: nothing is rewound."""
    (place / "run" / "checkpoints").rename(place / "elsewhere")
    refused(forked, place, command)


@pytest.mark.parametrize("name", ["run/config.json", "run/metrics.csv", "run/checkpoints/0000000020.safetensors"])
def test_what_may_not_be_read_is_not_called_damaged(forked: Forked, place: Path, name: str) -> None:
    forbid = "import jax\njax.config.update('jax_enable_compilation_cache', False)\n"
    if os.geteuid() == 0:
        forbid += "import os\nos.setgroups([])\nos.setgid(65534)\nos.setuid(65534)"
    folder = place.rename(Path(tempfile.gettempdir()) / f"{place.parent.name}-{os.getpid()}")  # where others may come
    try:
        folder.chmod(0o755)
        (folder / name).chmod(0)
        command = ["report", "run"] if "metrics" in name else ["evaluate", "run"]
        done = forked.run(folder, command, before=forbid)
    finally:
        shutil.rmtree(folder)
    assert done.code == 2
    (line,) = done.err[0].splitlines()
    assert "Permission denied" in line
    assert "damaged" not in line
    assert "delete" not in line


@pytest.mark.parametrize("number", [1, 4, 9, 14, 23])
def test_ctrl_c_works_from_the_first_moment(forked: Forked, place: Path, number: int) -> None:
    done = forked.run(place, TRAIN, fault=Fault("read", number, -int(signal.SIGINT)))
    assert done.hit
    if done.code == 0:  # it came too late
        assert forked.run(place, ["resume", "new", "--quiet"]).code == 0
        return
    assert done.code == 130, (done.code, done.err)
    assert done.err[0].count("\n") == 1
    if (place / "new" / "config.json").exists():
        assert forked.run(place, ["resume", "new", "--quiet"]).code == 0
    else:
        assert not (place / "new").exists() or not any(
            each.suffix in (".csv", ".json", ".safetensors") for each in (place / "new").rglob("*")
        )


EVIL = "from pathlib import Path\nPath('ran').touch()\nimport gymnasium\n"


def test_names_of_environments_in_files_import_nothing(forked: Forked, place: Path) -> None:
    (place / "evil.py").write_text(EVIL)
    config = place / "run" / "config.json"
    config.write_text(config.read_text().replace('"environment": "point"', '"environment": "evil:Env-v0"'))
    assert "evil:Env-v0" in config.read_text()
    change = "import numpy as np\nfound = dict(np.load('point.npz'))\nnp.savez('evil.npz', **{**found, **{" \
             "'environment': np.array('evil:Env-v0')}})"  # fmt: skip
    assert forked.run(place, change).code == 0
    here = "import sys\nsys.path.insert(0, '')"
    assert forked.run(place, ["data", "check", "evil.npz"], before=here).code in (0, 2)
    for command in (
        ["data", "show", "evil.npz"], ["train", "bc", "evil.npz", *TINY, *SHORT, "--out", "new"],
        ["evaluate", "run"], ["report", "run"], ["resume", "run"],
    ):  # fmt: skip
        forked.run(place, command, before=here)
        assert not (place / "ran").exists(), command
    typed = ["evaluate", "run", "--environment", "evil:Env-v0"]  # what the user types is the user's
    assert forked.run(place, typed, before=here).code == 2
    assert (place / "ran").exists()


ESCAPES = "\x1b]0;gone\x07\u202e\x9b2J"


@pytest.mark.parametrize(
    "words",
    [
        "data show X/point.npz", "data check X/point.npz", "data check X/point.npz --json",
        "data convert X/point.npz X/copy.npz", "data show point.npz --plot X/f.png", "evaluate X/run --episodes 1",
        "report X/run --out X/r.html", "resume X/run", "export X/run X/p.onnx --samples 5",
        "collect point --policy uniform --steps 50 --quiet --out X/given", "train X point.npz", "algorithms X",
        "train cql point.npz --weights X", "experiment random-ratio --methods X", "experiment X.py",
        "evaluate run --member X", "report X.csv", "train bc point.npz --log-to X",
    ],
)  # fmt: skip
def test_names_are_shown_without_control_characters(forked: Forked, place: Path, words: str) -> None:
    folder = place / ESCAPES
    folder.mkdir()
    shutil.copy(place / "point.npz", folder)
    shutil.copytree(place / "run", folder / "run")
    done = forked.run(place, [word.replace("X", ESCAPES) for word in words.split()])
    assert done.code in (0, 2), done.err
    told = done.out[0] + done.err[0]
    assert told
    assert not set(told) & {"\x1b", "\x07", "\u202e", "\x9b"}, repr(told)


def test_columns_labels_and_settings_of_files_are_shown_without_control_characters(
    forked: Forked, place: Path
) -> None:
    rows = [f"{i},{'up' if i % 2 else ESCAPES},1,{int(i % 10 == 9)},{i // 10},0" for i in range(100)]
    head = f"observation_0,action,reward,terminal,episode,{ESCAPES}"
    (place / "log.csv").write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    train = ["train", "discrete-cql", "log.csv", "--hidden", "8", "--batch-size", "8", "--steps", "4",
             "--eval-every", "0", "--out", "new"]  # fmt: skip
    for command in (["data", "show", "log.csv"], ["data", "check", "log.csv"], train, ["export", "new", "n.onnx"]):
        done = forked.run(place, command)
        assert done.code == 0, (command, done.err)
        assert not set(done.out[0] + done.err[0]) & {"\x1b", "\x07", "\u202e", "\x9b"}, command
    config = place / "run" / "config.json"
    config.write_text(config.read_text().replace('"jax": "', '"jax": "\\u001b'))
    max((place / "run" / "checkpoints").iterdir()).unlink()
    assert "not names and texts" in refused(forked, place, ["resume", "run", "--quiet"])


def test_an_export_of_a_damaged_run_leaves_nothing(forked: Forked, place: Path) -> None:
    file = max((place / "run" / "checkpoints").iterdir())
    content = bytearray(file.read_bytes())
    content[-9] ^= 1
    file.write_bytes(content)
    refused(forked, place, ["export", "run", "policy.onnx", "--samples", "10"])
    file.write_bytes(b"")
    (place / "run" / "evaluations.csv").write_text("step\nx\n")
    refused(forked, place, ["export", "run", "policy.onnx", "--samples", "10"])


def test_a_store_made_on_a_full_disk_is_not_there(forked: Forked, place: Path) -> None:
    make = "from sapp.experiments.store import Store\nfrom sapp.cli.main import main\nStore('s.sqlite', create=True)"
    for number in (1, 3, 7):
        done = forked.run(place, make, fault=Fault("write", number, errno.ENOSPC, again=True))
        assert done.hit
        assert not (place / "s.sqlite").exists()
        assert done.err[0].startswith("sapp: error: s.sqlite: cannot write (")
    assert forked.run(place, make).code == 0
