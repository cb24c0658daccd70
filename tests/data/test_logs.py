"""Logs in the shapes that others write, each made here; what was once silently wrong is right, or is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from log_sources import frame, in_form, parquet, steps

from sapp.core.errors import SappError
from sapp.data import Dataset, Ledger, load, load_vectors
from sapp.data.check import check
from sapp.data.ledger import Kind


def accounted(data: Dataset) -> Ledger:
    """The ledger, which must account for every row."""
    ledger = Ledger.of(data)
    assert ledger.rows - ledger.dropped == len(data)
    return ledger


def test_rllib_names_are_known(tmp_path: Path) -> None:
    lengths = [7, 5, 9, 4]
    table = frame(lengths)
    path = parquet(
        tmp_path / "log.parquet",
        {
            "obs": table["obs"], "actions": table["action"], "rewards": table["reward"], "dones": table["last"],
            "eps_id": table["episode"] * 1000, "new_obs": table["next_obs"], "unroll_id": table["episode"],
        },
    )  # fmt: skip
    data = load_vectors(path)
    assert data.episode_lengths.tolist() == lengths
    assert data.terminal.sum() == 4
    np.testing.assert_array_equal(data.next_observation, table["next_obs"].astype(np.float32))
    uses = {each.name: each.use for each in accounted(data).columns}
    assert uses["eps_id"] == "episode"
    assert uses["new_obs"] == "next_observation 0 to 1"
    assert uses["unroll_id"] is None


@pytest.mark.parametrize(("column", "role"), [("epis_id", "episode"), ("next_obss", "next_observation")])
def test_a_column_that_looks_like_a_field_is_never_passed_over(tmp_path: Path, column: str, role: str) -> None:
    table = frame([7, 5])
    table["terminal"] = table.pop("last")
    table[column] = table.pop({"episode": "episode", "next_observation": "next_obs"}[role])
    path = parquet(tmp_path / "log.parquet", table | ({"step2": table.pop("step")} if role == "episode" else {}))
    with pytest.raises(SappError, match=rf"unknown column '{column}', which looks like {role} .did you mean"):
        load(path)
    data = load_vectors(path, columns={role: column})
    assert data.episode_lengths.tolist() == [7, 5]
    ignored = load_vectors(path, columns={"ignore": [column, "step2"]})
    assert [each.note for each in Ledger.of(ignored).unused if each.name == column] == ["ignored, as asked"]


def test_with_a_mapping_it_is_warned_of(tmp_path: Path) -> None:
    table = frame([7, 5])
    table["terminal"] = table.pop("last")
    path = parquet(tmp_path / "log.parquet", table)
    columns = {"observation": "obs", "action": "action", "terminal": "terminal", "scale": "none"}
    data = load_vectors(path, columns=columns)
    warned = accounted(data).lines(Kind.WARNING)
    assert [line.split("'")[1] for line in warned] == ["episode", "step", "next_obs"]
    assert warned == check(path, columns).findings[:3]


OUTCOME = "patient,visit,heart,dose,outcome\n" + "\n".join(
    f"{p},{t},{0.1 * t},{0.25 * (t % 4)},{1 if t == 3 else 0}" for p in range(20) for t in range(4)
)


def test_an_outcome_on_the_last_row_is_not_dropped_in_silence(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(OUTCOME + "\n")
    columns = {
        "episode": "patient", "time": "visit", "observation": "heart", "action": "dose", "reward": "outcome",
        "scale": "none",
    }  # fmt: skip
    with pytest.raises(SappError, match=r"log\.csv: the last rows of 20 .* 100 % of the reward; .*last_step = 'end'"):
        load(path, columns=columns)
    data = load_vectors(path, columns={**columns, "last_step": "end"})
    assert (len(data), data.num_episodes, data.reward.sum(), data.terminal.sum()) == (80, 20, 20, 20)
    dropped = load_vectors(path, columns={**columns, "last_step": "drop"})
    assert dropped.reward.sum() == 0
    (entry,) = (each for each in accounted(dropped).entries if each.kind is Kind.DROPPED)
    assert (entry.rows, entry.episodes, entry.reward, entry.asked) == (20, 20, 1.0, True)


def test_little_may_be_dropped_and_is_said(tmp_path: Path) -> None:
    table = frame([300, 300])
    table["timeout"] = table.pop("last")
    table["terminal"] = np.zeros(600, bool)
    del table["next_obs"]
    data = load_vectors(parquet(tmp_path / "log.parquet", table))
    assert accounted(data).dropped == 2
    assert data.episode_lengths.tolist() == [299, 299]


@pytest.mark.parametrize("form", ["parquet", "dictionary", "npz"])
def test_done_at_the_step_limit_is_a_timeout(tmp_path: Path, form: str) -> None:
    lengths = [20] * 20 + [13]
    table = frame(lengths)
    arrays = {
        "observations": table["obs"], "actions": table["action"], "rewards": table["reward"], "dones": table["last"],
        "next_observations": table["next_obs"],
    }  # fmt: skip
    source: Any = arrays
    if form == "parquet":
        source = parquet(tmp_path / "log.parquet", arrays)
    elif form == "npz":
        np.savez(tmp_path / "log.npz", **arrays)
        source = tmp_path / "log.npz"
    data = load_vectors(source, max_episode_steps=20)
    assert data.episode_lengths.tolist() == lengths
    assert (data.terminal.sum(), data.timeout.sum()) == (1, 20)
    assert "20 rows marked done are time-outs" in accounted(data).lines(Kind.CHANGED)[0]


def test_the_opposite_of_an_end_is_refused_in_every_format(tmp_path: Path) -> None:
    table = frame([9, 4])
    rows = {key: table[key] for key in ("obs", "action", "reward", "episode")} | {"masks": 1 - table["last"]}
    for source in (rows, parquet(tmp_path / "log.parquet", rows)):
        with pytest.raises(SappError, match="column 'masks' looks like the opposite of terminal"):
            load(source)
        load(source, columns={"ignore": "masks"}, last_step="drop")


def test_time_outs_that_are_all_terminal_are_warned_of() -> None:
    table = frame([9] * 6)
    rows = {key: table[key] for key in ("obs", "next_obs", "action", "reward")}
    rows |= {"terminal": table["last"], "timeout": table["last"]}
    (warning,) = Ledger.of(load_vectors(rows)).lines(Kind.WARNING)
    assert "all 6 time-outs are marked as terminal, too, so none is left" in warning
    data = load_vectors(rows, columns={"done": "terminal"})
    assert (data.terminal.sum(), data.timeout.sum()) == (0, 6)
    assert Ledger.of(data).lines(Kind.WARNING) == []


def test_done_beside_terminal_gives_the_timeouts() -> None:
    table = frame([5, 6, 7])
    terminal = table["last"] & (table["episode"] == 1)
    data = load_vectors(
        {
            "obs": table["obs"], "next_obs": table["next_obs"], "action": table["action"], "reward": table["reward"],
            "terminal": terminal, "done": table["last"],
        }
    )  # fmt: skip
    assert np.flatnonzero(data.terminal).tolist() == [10]
    assert np.flatnonzero(data.timeout).tolist() == [4, 17]


NAMES = {
    "RLlib": ("obs", "actions", "rewards", "terminateds", "truncateds", "new_obs"),
    "D4RL": ("observations", "actions", "rewards", "terminals", "timeouts", "next_observations"),
    "Minari": ("observations", "actions", "rewards", "terminations", "truncations", "next_observations"),
    "Gymnasium": ("obs", "action", "reward", "terminated", "truncated", "next_obs"),
    "Tianshou": ("obs", "act", "rew", "terminated", "truncated", "obs_next"),
    "Textbook": ("state", "action", "reward", "terminal", "timeout", "next_state"),
}


@pytest.mark.parametrize("names", NAMES)
@pytest.mark.parametrize("form", ["dictionary", "npz", "parquet", "csv", "pandas", "polars", "arrow"])
def test_one_set_of_names_for_every_format(tmp_path: Path, names: str, form: str) -> None:
    table = frame([7, 5, 9])
    terminal = table["last"] & (table["episode"] != 1)
    values = (table["obs"], table["action"], table["reward"], terminal, table["last"] & ~terminal, table["next_obs"])
    arrays = dict(zip(NAMES[names], values, strict=True))
    data = load_vectors(in_form(arrays, form, tmp_path))
    assert np.flatnonzero(data.terminal).tolist() == [6, 20]
    assert np.flatnonzero(data.timeout).tolist() == [11]
    np.testing.assert_array_equal(data.observation, table["obs"].astype(np.float32))
    np.testing.assert_array_equal(data.next_observation, table["next_obs"].astype(np.float32))
    np.testing.assert_array_equal(data.reward, table["reward"].astype(np.float32))
    np.testing.assert_array_equal(data.action[:, 0], table["action"].astype(np.float32))
    assert [each.name for each in accounted(data).unused] == []


def test_features_in_words_become_ones_and_zeros(tmp_path: Path) -> None:
    path = parquet(tmp_path / "log.parquet", steps(obs=None, ward=["icu", "er"] * 6, heart=np.arange(12.0)) | {
        "obs": np.arange(12.0), "next_obs": np.arange(12.0)})  # fmt: skip
    columns = {"observation": ["heart", "ward"], "action": "action", "terminal": "terminal", "episode": "episode"}
    with pytest.raises(SappError, match=r"'ward' is 'icu' at row 0, not a number; .*one_hot = \['ward'\]"):
        load(path, columns=columns)
    data = load_vectors(path, columns={**columns, "one_hot": "ward", "scale": "none"})
    assert data.observation[:2].tolist() == [[0, 0, 1], [1, 1, 0]]
    assert {each.name: each.use for each in Ledger.of(data).used}["ward"] == "observation 1 to 2"


def test_one_row_episodes(tmp_path: Path) -> None:
    """As in logs of recommendations: a context, a choice, its probability, a click."""
    rng = np.random.default_rng(0)
    table = {
        "context_0": rng.normal(size=50), "context_1": rng.normal(size=50), "item": rng.integers(0, 4, 50),
        "click": rng.integers(0, 2, 50), "pscore": np.full(50, 0.25),
    }  # fmt: skip
    columns = {"observation": ["context_0", "context_1"], "action": "item", "reward": "click", "scale": "none"}
    path = parquet(tmp_path / "log.parquet", table)
    with pytest.raises(SappError, match="one_row_episodes = true if every row is an episode"):
        load(path, columns=columns)
    data = load_vectors(path, columns={**columns, "one_row_episodes": True, "probability": "pscore"})
    assert (data.num_episodes, data.terminal.sum(), data.num_actions) == (50, 50, 4)
    np.testing.assert_allclose(data.extras["log_prob"], np.log(0.25))
    assert data.reward.sum() == table["click"].sum()
    assert {each.name for each in accounted(data).columns} == set(table)


def test_probabilities_are_no_log_probabilities(tmp_path: Path) -> None:
    table = steps(action=np.array([0, 1] * 6), chance=np.full(12, 0.5))
    with pytest.raises(SappError, match="at most 0; if these are probabilities, map them as probability"):
        load(table, columns={"log_prob": "chance"})
    data = load_vectors(table, columns={"probability": "chance"})
    np.testing.assert_allclose(data.extras["log_prob"], np.log(0.5))
    with pytest.raises(SappError, match=r"'chance' is -1\.5 at row 0, but probabilities are above 0"):
        load({**table, "chance": np.full(12, -1.5)}, columns={"probability": "chance"})


def test_cells_with_line_breaks(tmp_path: Path) -> None:
    remark = "two\nlines" * 2_000  # more than a block of the reader in all
    lines = [f'{i // 5},{i},{0.5},{i},{int(i % 5 == 4)},"{remark}"' for i in range(200)]
    (tmp_path / "log.csv").write_text("episode,obs_0,action,reward,terminal,remark\n" + "\n".join(lines) + "\n")
    data = load_vectors(tmp_path / "log.csv")
    assert data.reward.tolist() == list(range(200))
    assert "some cells in quotes hold line breaks: read as such" in Ledger.of(data).lines()


def test_columns_count_for_dictionaries() -> None:
    table = steps()
    table["gain"] = -table["reward"]
    data = load_vectors(table, columns={"reward": "gain"})
    np.testing.assert_array_equal(data.reward, -table["reward"].astype(np.float32))


def test_a_reward_that_is_one_everywhere_can_be_learned_from() -> None:
    table = frame([9, 4])
    data = {"obs": table["obs"], "next_obs": table["next_obs"], "action": table["action"], "reward": np.ones(13),
            "terminal": table["last"]}  # fmt: skip
    page = " ".join(check(data).findings)
    assert "nothing to learn" not in page
    assert "what differs is how long episodes last: that is all there is to learn" in page
    page = " ".join(check({**data, "terminal": np.zeros(13)}).findings)
    assert "nothing can be learned from it" in page


def test_d4rls_ant_asks_for_no_physics(tmp_path: Path) -> None:
    import h5py

    table = frame([5, 6])
    with h5py.File(tmp_path / "ant_medium-v2.hdf5", "w") as file:
        for key, value in {"observations": table["obs"], "actions": table["action"], "rewards": table["reward"],
                           "terminals": table["last"], "next_observations": table["next_obs"]}.items():  # fmt: skip
            file[key] = value
    data = load_vectors(tmp_path / "ant_medium-v2.hdf5")
    assert (data.name, data.physics) == ("ant-medium-v2", None)


def test_discounts_that_are_zero_mark_ends() -> None:
    table = {key: value for key, value in steps(discount=1.0 - steps()["terminal"]).items() if key != "terminal"}
    with pytest.raises(SappError, match="'discount' looks like the opposite of terminal"):
        load_vectors(table)
    assert load_vectors({**table, "discount": np.full(12, 0.99)}).terminal.sum() == 0


def test_first_rows_that_are_missing_are_said() -> None:
    table = {key: value[2:] for key, value in frame([6, 6, 6, 6]).items() if key != "last"}
    for columns in ({}, {"ignore": "episode", "done": "done"}):
        marked = {**table, "done": np.append(table["step"][1:] == 0, True)} if columns else table
        (said,) = Ledger.of(load_vectors(marked, columns=columns)).lines(Kind.WARNING)
        assert said.startswith("1 of 4 episodes begin at step 2 or later, the others at 0: their first rows are ")


def test_numbers_that_seven_digits_blur_are_said() -> None:
    table = steps()
    table["obs"][:, 0] = 1.7e9 + np.arange(12)
    table["reward"] = 5e8 + np.arange(12) / 10
    said = Ledger.of(load_vectors(table)).lines(Kind.WARNING)
    assert [line.split(" is so large")[0] for line in said] == ["observation 0", "reward"]
    assert "(1700000000 to 1700000011)" in said[0]


def test_one_hot_is_refused_where_nearly_every_value_differs() -> None:
    table = {**steps(), "note": [f"n{row}" for row in range(12)]}
    table = {key: np.concatenate([value] * 10) for key, value in table.items()}
    table["note"], table["episode"] = np.array([f"n{row}" for row in range(120)]), np.repeat(np.arange(20), 6)
    with pytest.raises(SappError, match="'note' of one_hot holds 120 different values in 120 rows"):
        load_vectors(table, columns={"one_hot": "note"})


def test_done_alone_is_said_to_count_as_the_end_of_the_task() -> None:
    table = {("done" if key == "terminal" else key): value for key, value in steps().items()}
    said = "done marks every end, and nothing tells time-outs from others: every one counts as terminal"
    assert said in Ledger.of(load_vectors(table)).lines()
    assert said not in Ledger.of(load_vectors(table, max_episode_steps=6)).lines()


def test_columns_named_like_a_vector_that_are_no_part_of_it_are_said() -> None:
    table = {**steps(), "obs_0": np.arange(12.0), "obs_1": np.ones(12), "obs_theta": np.ones(12)}
    table["observer"] = table["obs_1"]
    del table["obs"], table["next_obs"]
    (said,) = Ledger.of(load_vectors(table, last_step="drop")).lines(Kind.WARNING)
    assert said.startswith("column 'obs_theta' is named like observation, but is no part of it")
    assert not Ledger.of(load_vectors(table, columns={"ignore": "obs_theta"}, last_step="drop")).lines(Kind.WARNING)


@pytest.mark.parametrize(("more", "said"), [("dones", 1), ("same", 0)])
def test_two_columns_of_ends_that_differ_are_said(more: str, said: int) -> None:
    table = {("done" if key == "terminal" else key): value for key, value in steps().items()}
    table["dones"] = table["done"] if more == "same" else np.zeros(12, bool)
    found = Ledger.of(load_vectors(table)).lines(Kind.WARNING)
    assert len(found) == said
    assert all(each.startswith("columns 'done' and 'dones' are both named like done and differ") for each in found)


@pytest.mark.parametrize(
    ("scale", "far", "why"),
    [
        (None, True, "one is of size 1e+06"),
        ("auto", True, "one is of size 1e+06"),
        ("auto", False, None),
        ("standard", True, "the column mapping asks for it"),
        ("standard", False, "the column mapping asks for it"),
        ("none", True, None),
    ],
)
def test_features_are_standardised_where_they_are_far_from_unit_size_or_it_is_asked_for(
    scale: str | None, far: bool, why: str | None
) -> None:
    table = steps()
    table["obs"] = np.random.default_rng(0).normal(size=(12, 2)) * ([1e6, 1.0] if far else [1.0, 1.0])
    table["obs"][:, 0] /= table["obs"][:, 0].std() / (1e6 if far else 1.0)
    table["next_obs"] = table["obs"] + 1
    columns = {"observation": "obs", "episode": "episode", **({} if scale is None else {"scale": scale})}
    data = load_vectors(table, columns=columns)
    said = [each for each in Ledger.of(data).entries if "standardised" in each.what]
    assert len(said) == (why is not None)
    np.testing.assert_allclose(data.raw(data.observation), table["obs"], rtol=1e-5, atol=1e-5)
    if why is None:
        assert data.observation_offset is None
        return
    assert f"({why})" in said[0].what
    assert (said[0].rows, said[0].asked) == (12, scale == "standard")
    np.testing.assert_allclose(data.observation.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(data.observation.std(0), 1, rtol=1e-5)


@pytest.mark.parametrize(
    ("role", "value", "refused"),
    [
        ("probability", 1.0, False), ("probability", 1 + 5e-7, False), ("probability", 1 + 2e-6, True),
        ("probability", 0.0, True), ("probability", 1e-9, False),
        ("log_prob", 0.0, False), ("log_prob", 5e-7, False), ("log_prob", 2e-6, True), ("log_prob", -9.0, False),
    ],
)  # fmt: skip
def test_how_far_probabilities_may_be_rounded(role: str, value: float, refused: bool) -> None:
    table = steps(action=np.array([0, 1] * 6), chance=np.r_[np.full(11, 0.5 if role == "probability" else -1.0), value])
    if refused:
        with pytest.raises(SappError, match=r"'chance' is .* at row 11, but"):
            load(table, columns={role: "chance"})
        return
    density = load_vectors(table, columns={role: "chance"}).extras["log_prob"]
    assert density[-1] == pytest.approx(np.log(value) if role == "probability" else value, abs=1e-7)


@pytest.mark.parametrize(("step", "said"), [(4.0, 1), (2000.0, 0), (0.0, 0)])
def test_numbers_that_move_enough_for_seven_digits_or_not_at_all_are_no_matter(step: float, said: int) -> None:
    """Near 2²⁷ float32 holds every sixteenth number: numbers are off by up to 8."""
    table = steps()
    table["reward"] = 2.0**27 + step * np.arange(12)
    assert len(Ledger.of(load_vectors(table)).lines(Kind.WARNING)) == said


def test_columns_that_are_used_or_ignored_are_not_kept_beside_the_steps_and_others_are() -> None:
    table = steps(heat=np.arange(12.0), wind=np.arange(12.0), note=["calm", "storm"] * 6)
    data = load_vectors(table, columns={"ignore": "wind"})
    assert set(data.extras) == {"heat"}
    np.testing.assert_array_equal(data.extras["heat"], np.arange(12.0))
    uses = {each.name: each.use for each in Ledger.of(data).columns}
    assert (uses["heat"], uses["wind"], uses["note"]) == ("kept beside the steps as 'heat'", None, None)
