import h5py
import numpy as np
import pytest

from sapp.core.errors import SappError
from sapp.envs.one_step_replay import print_report, replay

ROWS = {"halfcheetah": (2000, 2000), "hopper": (911, 761), "walker2d": (2000, 1419)}


@pytest.mark.parametrize("name", sorted(ROWS))
def test_medium_v2_is_reproduced_to_float32(genuine, name):
    report = replay(genuine / "d4rl" / f"{name}_medium-v2.hdf5")
    assert (report.environment, report.rows, report.tested) == (name, *ROWS[name])
    assert report.state == "infos"
    restored, plain = report.errors
    assert (restored.physics, plain.physics) == ("d4rl", "v4")
    assert restored.median < 1e-6
    assert restored.largest < 1e-4
    assert restored.reward < 1e-6
    assert restored.terminals == 0
    assert plain.median > 5e-3


@pytest.mark.parametrize("name", sorted(ROWS))
@pytest.mark.parametrize("kind", ["medium_replay-v1", "random-v1"])
def test_v1_files_whose_infos_are_not_the_state_are_replayed_from_observations(genuine, name, kind):
    report = replay(genuine / "d4rl" / f"{name}_{kind}.hdf5", "d4rl")
    assert report.state == "observations"
    assert report.errors[0].median < 1e-6
    assert report.errors[0].largest < 1e-4


def test_a_file_without_infos_or_successors(genuine, tmp_path):
    small = tmp_path / "hopper.hdf5"
    with h5py.File(genuine / "d4rl" / "hopper_medium-v2.hdf5") as source, h5py.File(small, "w") as target:
        for key in ("observations", "actions", "rewards", "terminals", "timeouts"):
            target[key] = source[key][()]
    report = replay(small, "d4rl")
    assert report.state == "observations"
    assert 700 < report.tested < 761
    assert report.errors[0].largest < 1e-4


def test_the_table_shows_both(genuine, capsys):
    print_report(replay(genuine / "d4rl" / "hopper_medium-v2.hdf5"))
    shown = capsys.readouterr().out
    assert "d4rl" in shown
    assert "v4" in shown
    assert "761 of 911" in shown


def test_bad_files_are_named(tmp_path):
    with pytest.raises(SappError, match="no such file"):
        replay(tmp_path / "hopper.hdf5")
    text = tmp_path / "hopper-text.hdf5"
    text.write_text("no")
    with pytest.raises(SappError, match="not a readable HDF5"):
        replay(text)
    nameless = tmp_path / "mine.hdf5"
    with h5py.File(nameless, "w") as file:
        file["observations"] = np.zeros((3, 4))
        file["actions"] = np.zeros((3, 2))
    with pytest.raises(SappError, match="cannot tell the environment"):
        replay(nameless)
    with pytest.raises(SappError, match="no field rewards, terminals"):
        replay(nameless, environment="hopper")
    with h5py.File(nameless, "a") as file:
        file["rewards"], file["terminals"] = np.zeros(3), np.zeros(3)
    with pytest.raises(SappError, match="not those of hopper"):
        replay(nameless, environment="hopper")
    with pytest.raises(SappError, match="ant"):
        replay(nameless, environment="ant")
