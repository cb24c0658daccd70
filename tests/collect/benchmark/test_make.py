"""Made datasets: the same bytes twice, what Minari makes of them, resuming, and everything that can go wrong."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import minari
import numpy as np
import pytest
from d4rl_files import SOURCES, sample

import sapp
from sapp.cli.main import main
from sapp.collect.benchmark import make as making
from sapp.collect.benchmark import minari_files
from sapp.collect.benchmark.make import load, make, standing
from sapp.core.errors import SappError
from sapp.core.locks import locked
from sapp.data import save_npz
from sapp.envs import make as make_environment


@pytest.fixture
def root(tmp_path, monkeypatch, recordable) -> Path:
    folder = tmp_path / "minari"
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(folder))
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def complaint(text: str) -> str:
    lines = text.strip().splitlines()
    assert len(lines) == 1, text
    return lines[0]


def test_twice_with_one_seed_gives_the_same_bytes(tmp_path, policies, monkeypatch, recordable) -> None:
    monkeypatch.setattr(making, "BLOCK", 400)  # several blocks
    for number in range(2):
        make("hopper-full-replay", transitions=2_500, seed=4, policies=policies, root=tmp_path / str(number),
             threads=number + 1)  # fmt: skip
        time.sleep(1.1 * (1 - number))  # a date would differ
    first, second = files(tmp_path / "0"), files(tmp_path / "1")
    assert first == second
    assert set(first) == {"sapp/namespace_metadata.json", "sapp/hopper/namespace_metadata.json",
                          "sapp/hopper/full-replay-v0/data/main_data.hdf5",
                          "sapp/hopper/full-replay-v0/data/metadata.json"}  # fmt: skip
    make("hopper-full-replay", transitions=2_500, seed=5, policies=policies, root=tmp_path / "2")
    assert files(tmp_path / "2") != first


def test_the_environment_is_recovered_with_its_physics(root) -> None:
    """The recovered environment takes the dataset's states and actions to the dataset's successors."""
    make("halfcheetah-random", transitions=60)
    stored = minari.load_dataset("sapp/halfcheetah/random-v0")
    environment = stored.recover_environment()
    assert environment.spec.max_episode_steps == 1000
    environment.reset(seed=0)
    ours = make_environment("halfcheetah")
    episode = next(iter(stored.iterate_episodes()))
    for time_step in (0, 20, 50):
        observation = episode.observations[time_step].astype(np.float64)
        position, velocity = np.concatenate([[0.0], observation[:8]]), observation[8:]
        environment.unwrapped.set_state(position, velocity)
        theirs, reward, *_ = environment.step(episode.actions[time_step])
        np.testing.assert_allclose(theirs, episode.observations[time_step + 1], atol=5e-5)
        assert reward == pytest.approx(episode.rewards[time_step], abs=5e-5)
    assert ours.model.body_mass.tolist() == environment.unwrapped.model.body_mass.tolist()


def test_medium_expert_is_medium_and_expert(root, policies, monkeypatch) -> None:
    monkeypatch.setattr(making, "BLOCK", 200)
    make("hopper-medium-expert", transitions=1_000, policies=policies)
    both = load("hopper-medium-expert")
    share = making.order("hopper-medium-expert", transitions=1_000, policies=policies).segments[0].transitions
    for quality, rows in (("medium", slice(0, share)), ("expert", slice(share, None))):
        make(f"hopper-{quality}", transitions=len(both.reward[rows]), policies=policies)
        alone = load(f"hopper-{quality}")
        np.testing.assert_array_equal(alone.observation, both.observation[rows])
        np.testing.assert_array_equal(alone.action, both.action[rows])


def test_an_interrupted_generation_goes_on(root, policies, monkeypatch) -> None:
    monkeypatch.setattr(making, "BLOCK", 300)
    make("hopper-full-replay", transitions=2_000, policies=policies, root=root / "whole")
    recorded = []

    def interrupted(block, path):
        if len(recorded) == 4:
            raise KeyboardInterrupt
        recorded.append(path.name)
        return save_npz(block, path)

    monkeypatch.setattr(making, "save_npz", interrupted)
    with pytest.raises(KeyboardInterrupt):
        make("hopper-full-replay", transitions=2_000, policies=policies)
    target = root / "sapp" / "hopper" / "full-replay-v0"
    assert not target.exists()
    assert not minari.list_local_datasets()  # half of one is nothing to Minari
    stands = {each.name: each for each in standing()}["hopper-full-replay"]
    assert (stands.made, stands.begun) == (None, True)
    again = []
    monkeypatch.setattr(making, "save_npz", lambda block, path: again.append(path.name) or save_npz(block, path))
    assert make("hopper-full-replay", transitions=2_000, policies=policies) == target
    assert again
    assert not set(again) & set(recorded)  # what was there was not recorded again
    whole = files(root / "whole" / "sapp")
    shutil.rmtree(root / "whole")
    assert files(root / "sapp") == whole
    # a damaged block is recorded again, blocks of another order are not used
    partial = target.parent / ".full-replay-v0.partial"
    assert not partial.exists()


def test_a_finished_one_is_left_alone_and_never_silently_replaced(root, capfd) -> None:
    assert main(["data", "make", "hopper-random", "--transitions", "200", "-q"]) == 0
    before = files(root)
    assert main(["data", "make", "hopper-random", "--transitions", "200", "-q"]) == 0
    assert files(root) == before
    capfd.readouterr()
    assert main(["data", "make", "hopper-random", "--transitions", "200", "--seed", "1", "-q"]) == 2
    assert "made with seed 0, not 1; give --replace" in complaint(capfd.readouterr().err)
    assert files(root) == before
    assert main(["data", "make", "hopper-random", "--transitions", "200", "--seed", "1", "--replace", "-q"]) == 0
    assert files(root) != before
    assert not [path for path in root.rglob(".*") if path.name != ".lock"]


def test_data_of_an_earlier_recipe_are_refused(root, capfd) -> None:
    """Made of the shipped policies by other shares, as an earlier sapp did: neither loaded nor silently remade."""
    make("hopper-medium-replay", transitions=200)
    make("hopper-medium", transitions=100)
    assert len(load("hopper-medium-replay")) == 200
    path = root / "sapp" / "hopper" / "medium-replay-v0" / "data" / "metadata.json"
    metadata = json.loads(path.read_text())
    assert metadata["sapp"]["recipe"] == 2
    del metadata["sapp"]["recipe"]
    metadata["sapp"]["segments"][1]["transitions"] += 1
    path.write_text(json.dumps(metadata))
    with pytest.raises(SappError, match=r"earlier recipe.*data make hopper-medium-replay --transitions 200 --replace"):
        sapp.load("hopper-medium-replay")
    assert [each.name for each in standing() if each.outdated] == ["hopper-medium-replay"]
    assert main(["data", "make", "hopper-medium-replay", "--transitions", "200"]) == 2
    assert "made by an earlier recipe; give --replace" in complaint(capfd.readouterr().err)
    assert main(["data", "make", "hopper-medium-replay", "--transitions", "200", "--replace", "-q"]) == 0
    assert len(load("hopper-medium-replay")) == 200
    # what the earlier recipe made of the same policies and shares is the same data
    path = root / "sapp" / "hopper" / "medium-v0" / "data" / "metadata.json"
    metadata = json.loads(path.read_text())
    del metadata["sapp"]["recipe"]
    path.write_text(json.dumps(metadata))
    assert len(load("hopper-medium")) == 100


def test_load_makes_what_is_missing(root, monkeypatch) -> None:
    monkeypatch.setitem(making.make.__globals__["Name"].transitions.fget.__globals__["TRANSITIONS"], "walker2d",
                        (150, 1, 1, 1, 1, 2))  # fmt: skip
    data = sapp.load("walker2d-random")
    assert len(data) == 150
    assert (data.observation_size, data.action_size) == (17, 6)
    assert sapp.load("walker2d-random", name="mine").name == "mine"


@pytest.mark.parametrize("source", SOURCES)
def test_from_a_file_of_d4rls(root, d4rl_folder, source, capfd) -> None:
    file = sample(source, d4rl_folder, "hopper_medium-v2")
    command = ["data", "make", "hopper-medium", "--transitions", "1_500", "--policy-from", str(file), "-q"]
    assert main(command) == 0
    data = load("hopper-medium")
    assert 20 < 100 * (data.episode_returns[:-1].mean() + 20.272305) / 3254.57 < 70  # far from random, as it should be
    ours = minari_files.read_metadata("sapp/hopper/medium-v0")["sapp"]
    assert ours["policies"] == {"from": "a file", "file": "hopper_medium-v2.hdf5"}  # its name, not where it lay
    capfd.readouterr()
    assert main(["data", "list", "--json"]) == 0
    assert '"made_from": "hopper_medium-v2.hdf5"' in capfd.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["hopper-mediun"], "did you mean 'hopper-medium'"),
        (["hopper-random", "nothing"], "nothing: no such dataset"),
        (["hopper-medium-v2"], "use hopper-medium"),
        (["hopper-random", "--transitions", "many"], "--transitions 'many': give a whole number"),
        (["hopper-random", "--seed", "-1"], "seed -1 is negative"),
        (["hopper-replay"], "no such dataset"),
        (["hopper-random", "--threads", "0"], "--threads 0"),
    ],
)
def test_bad_orders_leave_nothing(words, message, root, capfd) -> None:
    assert main(["data", "make", *words]) == 2
    assert message in complaint(capfd.readouterr().err)
    assert not root.exists()


def test_wrong_policies_leave_nothing(root, d4rl_folder, capfd, tmp_path) -> None:
    walker, replay = (sample("regenerated", d4rl_folder, stem) for stem in ("walker2d_medium-v2", "hopper_random-v1"))
    for name, file, message in (
        ("hopper-medium", walker, "takes 17 observations and gives 6 actions, but hopper has 11 and 3"),
        ("hopper-medium", replay, "no metadata/policy"),
        ("hopper-medium", tmp_path / "missing.hdf5", "no such policy file"),
        ("hopper-full-replay", walker, "medium or expert only"),
    ):
        assert main(["data", "make", name, "--policy-from", str(file)]) == 2
        assert message in complaint(capfd.readouterr().err)
    assert not root.exists()


def test_a_disk_too_small_and_one_that_fills_up(root, policies, capfd, monkeypatch) -> None:
    root.mkdir()
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("mounting a small disk needs root")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(root)], capture_output=True).returncode:
        pytest.skip("mounting a small disk is not permitted here")
    try:
        assert main(["data", "make", "hopper-random", "--transitions", "5_000"]) == 2
        assert "hopper-random needs" in complaint(capfd.readouterr().err)
        assert not list(root.iterdir())
        # a disk that somebody else fills meanwhile: what is whole stays for the next try, Minari sees nothing
        monkeypatch.setattr(making, "check_disk", lambda *_: None)
        monkeypatch.setattr(making, "BLOCK", 1_000)
        with pytest.raises(SappError, match="No space left") as caught:
            make("hopper-random", transitions=5_000)
        assert "\n" not in str(caught.value)
        assert not (root / "sapp" / "hopper" / "random-v0").exists()
        assert not [path for path in root.rglob("*") if ".tmp" in path.name]
        subprocess.run(["mount", "-o", "remount,size=20m", str(root)], check=True)
        make("hopper-random", transitions=5_000)
        ours = files(root)
    finally:
        subprocess.run(["umount", "-l", str(root)], check=True)
    make("hopper-random", transitions=5_000)
    assert files(root) == ours


def test_a_root_that_cannot_be_written(root, capfd) -> None:
    root.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", str(root)], capture_output=True).returncode:
        pytest.skip("mounting a read-only disk is not permitted here")
    try:
        assert main(["data", "make", "hopper-random", "--transitions", "100"]) == 2
        assert "MINARI_DATASETS_PATH" in complaint(capfd.readouterr().err)
        assert not list(root.iterdir())
    finally:
        subprocess.run(["umount", "-l", str(root)], check=True)


def test_a_root_that_is_a_file(root, capfd) -> None:
    root.write_text("not a folder")
    assert main(["data", "make", "hopper-random", "--transitions", "100"]) == 2
    assert "not a folder that can be written to" in complaint(capfd.readouterr().err)
    assert root.read_text() == "not a folder"


def test_only_one_at_a_time(root, policies) -> None:
    partial = root / "sapp" / "hopper" / ".random-v0.partial"
    partial.mkdir(parents=True)
    with locked(partial / ".lock", "taken"), pytest.raises(SappError, match="another process is making"):
        make("hopper-random", transitions=100)
