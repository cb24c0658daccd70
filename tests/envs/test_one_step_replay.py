import h5py
import numpy as np
import pytest
from d4rl_files import SOURCES, STEMS, sample

from sapp.core.errors import SappError
from sapp.envs.locomotion import Locomotion
from sapp.envs.one_step_replay import print_report, replay

ROWS = {"halfcheetah": (2000, 2000), "hopper": (911, 761), "walker2d": (2000, 1419)}


@pytest.mark.parametrize("name", sorted(ROWS))
def test_the_genuine_medium_v2_is_reproduced_to_float32(genuine, name):
    report = replay(genuine / "d4rl" / f"{name}_medium-v2.hdf5")
    assert (report.environment, report.rows, report.tested) == (name, *ROWS[name])
    assert report.errors[0].terminals == 0


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", sorted(ROWS))
def test_medium_v2_is_reproduced_from_its_infos(d4rl_folder, source, name):
    report = replay(sample(source, d4rl_folder, f"{name}_medium-v2"))
    assert report.environment == name
    assert report.state == "infos"
    assert report.tested > 0.5 * report.rows
    restored, plain = report.errors
    assert (restored.physics, plain.physics) == ("d4rl", "v4")
    assert restored.median < 1e-6
    assert restored.largest < 1e-4
    assert restored.reward < 1e-6
    assert restored.terminals == 0
    assert plain.median > 5e-3


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("stem", [stem for stem in STEMS if stem.endswith("v1")])
def test_v1_files_whose_infos_are_not_the_state_are_replayed_from_observations(d4rl_folder, source, stem):
    report = replay(sample(source, d4rl_folder, stem), "d4rl")
    assert report.state == "observations"
    assert report.errors[0].median < 1e-6
    assert report.errors[0].high < 1e-4
    assert report.errors[0].largest < (1e-4 if source == "genuine" else 1e-3)  # from states rounded to float32


OUTCOMES = {
    ("halfcheetah", "d4rl"): [-0.106114, 0.045574, 0.463181, 0.174848, -0.232908, -0.354026, -0.051662, 0.132374,
                              -0.746928, -0.37825, -0.484666, 8.193651, -0.467056, -5.963036, -14.192155, 1.663392,
                              9.086777],
    ("halfcheetah", "v4"): [-0.104413, 0.024769, 0.45865, 0.17284, -0.235291, -0.334561, -0.064463, 0.149882,
                            -0.741613, -0.307017, -0.750607, 8.278355, -0.468618, -5.962795, -13.196743, 2.047155,
                            8.457166],
    ("hopper", "d4rl"): [1.229695, -0.04845, -0.046646, -0.024837, -0.04877, 0.010765, -0.627973, -0.129568,
                         -0.403584, 0.481344, -0.368745],
    ("hopper", "v4"): [1.229686, -0.048063, -0.046359, -0.024338, -0.048065, 0.007554, -0.620931, -0.130755,
                       -0.405303, 0.485258, -0.344587],
    ("walker2d", "d4rl"): [1.230109, -0.056435, -0.020053, -0.075987, -0.037417, -0.079775, 0.006033, 0.374851,
                           -0.127489, -0.552367, -0.542734, -0.913098, 1.041597, 7.669349, 0.448153, -2.82853,
                           0.970711],
    ("walker2d", "v4"): [1.230189, -0.050273, -0.016133, -0.069827, -0.055289, -0.070519, 0.000435, 0.339933,
                         -0.117178, -0.54952, -0.474968, -0.782852, 0.756036, 7.157185, 0.462415, -2.63745, 1.107046],
}  # fmt: skip
"""Where eight steps of fixed actions lead from the first start, in the physics that reproduced the genuine medium-v2
samples to float32, and in today's."""


@pytest.mark.parametrize(("name", "physics"), OUTCOMES)
def test_the_physics_are_still_those_that_reproduced_the_genuine_samples(name, physics):
    env = Locomotion(name, physics, threads=1)
    env.reset(1, 0)
    for step in range(8):
        observation, _, _ = env.step(0.8 * np.sin(1.0 + step + np.arange(env.action_size))[None])
    np.testing.assert_allclose(observation[0], OUTCOMES[name, physics], atol=1e-4)
    other = OUTCOMES[name, "v4" if physics == "d4rl" else "d4rl"]
    assert np.abs(observation[0] - other).max() > 5e-3


@pytest.mark.parametrize("source", SOURCES)
def test_a_file_without_infos_or_successors(d4rl_folder, source, tmp_path):
    small, whole = tmp_path / "hopper.hdf5", sample(source, d4rl_folder, "hopper_medium-v2")
    with h5py.File(whole) as file, h5py.File(small, "w") as target:
        for key in ("observations", "actions", "rewards", "terminals", "timeouts"):
            target[key] = file[key][()]
    report, complete = replay(small, "d4rl"), replay(whole, "d4rl")
    assert report.state == "observations"
    assert complete.tested - 5 < report.tested < complete.tested  # but for the ends of two episodes
    assert report.errors[0].largest < 1e-4


def test_the_table_shows_both(d4rl_folder, capsys):
    report = replay(sample("regenerated", d4rl_folder, "hopper_medium-v2"))
    print_report(report)
    shown = capsys.readouterr().out
    assert "d4rl" in shown
    assert "v4" in shown
    assert f"{report.tested} of {report.rows}" in shown


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
