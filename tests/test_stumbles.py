"""What a new user gets wrong, or expects: each is answered in one line, or just works."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sapp
from sapp.cli.main import main
from sapp.collect.given_vectors import record
from sapp.core.errors import SappError, did_you_mean
from sapp.data.dataset import Dataset
from sapp.evaluation.online_evaluation import Evaluation
from sapp.hooks import CSVLog


@pytest.fixture
def data() -> Dataset:
    """Sixty steps of noise with three discrete actions."""
    rng = np.random.default_rng(0)
    return sapp.load({
        "observations": rng.normal(size=(60, 2)), "actions": np.arange(60) % 3, "rewards": rng.normal(size=60),
        "terminals": np.arange(60) % 20 == 19,
    })  # fmt: skip


SHORT: dict[str, Any] = {"steps": 2, "eval_every": 0, "progress": False}


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("CQL", "cql"), ("TD3+BC", "td3bc"), ("DiscreteCQL", "discrete-cql"), ("sac_n", "sac-n"), ("cqll", "cql")],
)
def test_names_are_known_in_other_spellings(typed: str, meant: str) -> None:
    with pytest.raises(SappError, match=rf"is unknown \(did you mean '{meant}'\?\)"):
        sapp.preset(typed)


def test_the_first_of_two_names_that_differ_in_spelling_is_meant() -> None:
    assert did_you_mean("sacn", ["sac-n", "SAC-N"]) == " (did you mean 'sac-n'?)"
    assert did_you_mean("quite other", ["sac-n"]) == ""


def test_several_algorithms_in_a_list_are_called_by_their_names(data: Dataset, tmp_path: Path) -> None:
    run = sapp.train(["discrete-bc", sapp.DQN()], data, out=tmp_path / "run", **SHORT)
    assert [str(member) for member in run.members] == ["discrete-bc/dataset/0", "DQN/dataset/0"]
    with pytest.raises(SappError, match="DQN, DQN: give a dictionary"):
        sapp.train([sapp.DQN(), sapp.DQN(lr=1e-3)], data, **SHORT)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 1e3}, "steps is 1000.0: it must be a whole number"),
        ({"steps": "10"}, "steps is '10': it must be a whole number"),
        ({"log_every": 0.5}, "log_every is 0.5: it must be a whole number"),
        ({"hooks": 3}, "hooks: got 3; give objects of classes made from sapp.Hook"),
        ({"hooks": CSVLog}, "hooks: got the class CSVLog, not an object of it"),
    ],
)
def test_wrong_kinds_of_arguments_are_said_before_a_folder_is_made(
    options: dict[str, Any], message: str, data: Dataset, tmp_path: Path
) -> None:
    with pytest.raises(SappError, match=message):
        sapp.train("discrete-bc", data, out=tmp_path / "run", **(SHORT | options))
    assert not (tmp_path / "run").exists()


def test_a_hyper_parameter_of_another_type_is_said_before_a_folder_is_made(data: Dataset, tmp_path: Path) -> None:
    vectors = sapp.load({"observations": data.observation, "actions": data.observation / 9, "rewards": data.reward,
                         "terminals": data.terminal})  # fmt: skip
    with pytest.raises(SappError, match=r"^CQL: hidden is 64; it must be of type tuple"):
        sapp.train(sapp.CQL(hidden=64), vectors, out=tmp_path / "run", **SHORT)  # type: ignore[arg-type]
    assert not (tmp_path / "run").exists()


def test_one_hook_needs_no_list(data: Dataset, tmp_path: Path) -> None:
    run = sapp.train("discrete-bc", data, hooks=CSVLog(), out=tmp_path / "run", **SHORT)
    assert (run.path / "log.csv").is_file()
    for file in run.checkpoints.values():
        file.unlink()
    (run.path / "log.csv").unlink()
    assert sapp.resume(run.path, hooks=CSVLog(), progress=False).step == 2
    assert (run.path / "log.csv").is_file()


def test_a_run_that_is_not_there_is_not_called_damaged(data: Dataset, tmp_path: Path) -> None:
    sapp.train("discrete-bc", data, out=tmp_path / "first", **SHORT)
    with pytest.raises(SappError, match=r"frist: no such run folder \(did you mean 'first'\?\)"):
        sapp.Run(tmp_path / "frist")
    with pytest.raises(SappError, match=r"not a run folder \(it has no config.json\)"):
        sapp.Run(tmp_path)
    with pytest.raises(SappError, match=r"give one: --environment ID, or in Python run.evaluate\(env\)"):
        sapp.Run(tmp_path / "first").evaluate()


def test_what_is_no_vector_is_refused_with_the_way_to_flatten_it(data: Dataset, tmp_path: Path) -> None:
    run = sapp.train("discrete-bc", data, out=tmp_path / "run", **SHORT)
    with pytest.raises(SappError, match=r"vectors of 2 values: flatten parts as gymnasium.spaces.flatten"):
        run.predict((0, np.zeros(2)))  # type: ignore[arg-type]


def test_paths_as_people_write_them(data: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    sapp.save_npz(data, tmp_path / "logs.npz")
    assert sapp.load("~/logs.npz").fingerprint == data.fingerprint
    assert sapp.load(Path("~/logs.npz")).fingerprint == data.fingerprint
    with pytest.raises(SappError, match=r"https://host/logs.csv: is an address; download the file first"):
        sapp.load("https://host/logs.csv")
    with pytest.raises(SappError, match=r"no such file or dataset \(did you mean '.*logs.npz'\?\)"):
        sapp.load(str(tmp_path / "logs.npzz"))
    (tmp_path / "logs.xlsx").touch()
    with pytest.raises(SappError, match=r"unknown file ending '.xlsx'; .*; what pandas or polars can read can be"):
        sapp.load(tmp_path / "logs.xlsx")


@pytest.mark.parametrize("plain", [False, True])
def test_columns_between_tabs(plain: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = ["episode\tobs_0\tobs_1\taction\treward\tdone"]
    rows += [f"{n // 5}\t{n % 7}\t{n % 3}\t{n % 2}\t{n / 2}\t{int(n % 5 == 4)}" for n in range(20)]
    (tmp_path / "logs.tsv").write_text("\n".join(rows))
    if plain:
        monkeypatch.setattr("sapp.data.loaders.parquet_csv.installed", lambda package: False)
    data = sapp.load(tmp_path / "logs.tsv")
    assert (data.num_episodes, data.num_actions, data.observation_size) == (4, 2, 2)
    assert data.episode_returns.tolist() == [5.0, 17.5, 30.0, 42.5]


def test_fields_without_a_column_are_mapped_in_python_too() -> None:
    with pytest.raises(SappError, match=r"map them \(columns=\{'reward': 'NAME'\} or --map reward=NAME\)"):
        sapp.load({"observations": np.zeros((3, 1)), "actions": [0, 1, 0], "gain": [1, 2, 3], "terminals": [0, 0, 1]})


def test_an_array_of_another_length_is_named_with_both_lengths() -> None:
    with pytest.raises(SappError, match="array 'rewards' has 2 rows but observation has 3"):
        sapp.load({"observations": np.zeros((3, 1)), "actions": [0, 1, 0], "rewards": [1, 2], "terminals": [0, 0, 1]})


def test_an_environment_without_a_limit_is_played_as_long_as_it_was_recorded(tmp_path: Path) -> None:
    data = record("CliffWalking-v1", steps=200, max_episode_steps=40)
    assert data.play_limit == 40
    run = sapp.train("discrete-bc", data, steps=2, eval_every=2, eval_episodes=2, out=tmp_path / "run", progress=False)
    assert float(run.evaluations()[0]["length_mean"]) <= 40
    assert max(run.evaluate(episodes=2)[0].lengths) <= 40
    assert max(run.evaluate(episodes=2, max_episode_steps=7)[0].lengths) <= 7
    assert max(run.evaluate("CliffWalking-v1", episodes=2)[0].lengths) <= 40
    fields = ("observation", "action", "reward", "next_observation", "terminal", "timeout")
    bare = sapp.load({key: getattr(data, key) for key in fields})
    assert bare.play_limit == bare.episode_lengths.max()
    with pytest.raises(SappError, match=r"no time limit of its own: give max_episode_steps \(--max-episode-steps\)"):
        record("CliffWalking-v1", steps=20)


def test_a_limit_holds_for_environments_that_have_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = record("Pendulum-v1", steps=200)
    run = sapp.train(sapp.BC(hidden=(4,)), data, out=tmp_path / "run", **SHORT)
    assert run.evaluate(episodes=1)[0].lengths.tolist() == [200]
    assert run.evaluate(episodes=1, max_episode_steps=5)[0].lengths.tolist() == [5]
    assert main(["evaluate", str(run.path), "--episodes", "2", "--max-episode-steps", "6"]) == 0
    shown = capsys.readouterr().out
    assert "score" not in shown  # there are none for Pendulum
    assert next(line for line in shown.splitlines() if "BC/" in line).split("│")[-2].strip() == "6"


def test_a_policy_for_one_observation_is_told_that_it_gets_many() -> None:
    with pytest.raises(SappError, match=r"shape \(\) for 3 observations of CartPole-v1, which takes \(3,\) \(one"):
        sapp.evaluate(lambda seen: 0, "CartPole-v1", episodes=3)


@pytest.mark.parametrize("name", ["FetchReach-v4", "FrankaKitchen-v1", "HandReach-v3"])
def test_robotics_environments_can_be_made(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    if importlib.util.find_spec("gymnasium_robotics") is None:
        pytest.skip("needs gymnasium-robotics")
    data = record(name, steps=3)
    assert data.size == 3
    assert np.isfinite(data.observation).all()
    assert "Adroit" not in capfd.readouterr().err  # what the package says of environments that nobody asked for


def test_the_order_of_words_and_numbers_as_people_write_them(
    data: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sapp.save_npz(data, "logs.npz")
    assert main(["train", "logs.npz", "discrete-bc"]) == 2
    assert "the algorithm comes before the data: sapp train discrete-bc logs.npz" in capsys.readouterr().err
    for number, steps in (("1e1", 10), ("1_2", 12)):
        words = ["train", "discrete-bc", "logs.npz", "--steps", number, "--eval-every", "0", "--out", number, "-q"]
        assert main(words) == 0
        assert sapp.Run(number).step == steps
    assert main(["train", "discrete-bc", "logs.npz", "--steps", "three"]) == 2
    assert "--steps 'three': give a whole number of at least 1, such as 100_000" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["data"], ["theory"]])
def test_no_line_of_help_breaks_off(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--help"]) == 0
    assert "..." not in capsys.readouterr().out.partition("Commands:")[2]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (sapp.DualDICE, r"weights is the class DualDICE: give an object, DualDICE\(\)"),
        (None, "weights is None: give state weights such as sapp.DualDICE"),
        (0.5, "weights is 0.5: give state weights"),
    ],
)
def test_what_are_no_weights_is_said_at_once(given: Any, message: str) -> None:
    with pytest.raises(SappError, match=message):
        sapp.CQL(weights=given)


def test_a_control_of_a_name_is_said_at_once() -> None:
    with pytest.raises(SappError, match=r"of is 'dualdice'; give state weights .*weights='shuffled:dualdice'"):
        sapp.ShuffledWeights("dualdice")  # type: ignore[arg-type]


@pytest.mark.parametrize("seeds", [1.5, "3", True, [0, 1.0], [0, 0], 0])
def test_seeds_are_whole_numbers(seeds: Any, data: Dataset) -> None:
    with pytest.raises(SappError, match="give a count of at least 1, or distinct whole numbers"):
        sapp.train("discrete-bc", data, seeds=seeds, **SHORT)


def test_data_before_the_algorithm(data: Dataset) -> None:
    with pytest.raises(SappError, match="DiscreteBC is given as data: the algorithm comes first"):
        sapp.train(data, sapp.DiscreteBC(), **SHORT)  # type: ignore[arg-type]


def test_a_list_where_a_tuple_belongs(data: Dataset) -> None:
    with pytest.raises(SappError, match=r"\[8, 8\] is a list: give a tuple, \(8, 8\)"):
        sapp.train(sapp.BC(hidden=[8, 8]), data, **SHORT)  # type: ignore[arg-type]


def test_a_column_of_nothing() -> None:
    arrays = {"observations": np.zeros((4, 2)), "actions": np.zeros((4, 1)), "terminals": [0, 0, 0, 1]}
    with pytest.raises(SappError, match="column 'rewards' is empty in every row"):
        sapp.load({**arrays, "rewards": np.array([None] * 4)})


def test_only_classes_are_registered() -> None:
    with pytest.raises(SappError, match="register takes a class"):
        sapp.register(print)  # type: ignore[type-var]


def test_an_evaluation_shows_what_was_found() -> None:
    found = Evaluation(0, np.array([1.0, 3.0]), np.array([5, 5]), None)
    assert repr(found) == "Evaluation(member 0, 2 episodes, return 2 (1 to 3))"
    assert sapp.hooks.CSVLog is CSVLog


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["trian"], "No such command 'trian'. Did you mean 'train'? See: sapp --help"),
        (["data"], "sapp data needs a command: make, list, check, show, replay, convert; see: sapp data --help"),
        (["train", "hopper-medium", "cql"], "the algorithm comes before the data: sapp train cql hopper-medium"),
        (["train", "cql", "td3bc", "x.csv"], "several algorithms are joined by commas: sapp train cql,td3bc DATA"),
    ],
)
def test_the_command_says_what_was_meant(typed: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(typed) == 2
    assert capsys.readouterr().err == f"sapp: error: {said}\n"


def test_help_shows_values_as_people_call_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["select", "--help"]) == 0
    page = capsys.readouterr().out
    assert "Usage: sapp select [OPTIONS] RUN...\n" in page
    assert "--fit-steps N " in page
    assert "<" not in page
