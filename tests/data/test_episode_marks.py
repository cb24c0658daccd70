"""Episodes that no id tells apart: several act by turns, a counter starts again, a column has an unknown name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from sapp.data import Ledger, load_vectors
from sapp.data.ledger import Kind

LENGTHS = [[7, 4, 9], [5, 8, 7]]
"""Steps of the episodes of two copies of an environment, 20 rows each; the second of each ends its task."""
FLAT = [*LENGTHS[0], *LENGTHS[1]]


def turns(keys: tuple[str, ...]) -> tuple[dict[str, np.ndarray], list[np.ndarray]]:
    """Rows of two copies by turns, and the observations of each episode, copy by copy."""
    parts, truth = [], []
    for copy, lengths in enumerate(LENGTHS):
        at = np.concatenate([np.arange(n) for n in lengths])
        number = np.repeat(range(len(lengths)), lengths)
        last = np.append(number[1:] != number[:-1], True)
        seen = np.column_stack([1000 * copy + 100 * number + at, number])
        truth += [seen[number == each] for each in range(len(lengths))]
        parts.append({
            "obs": seen, "next_obs": seen + np.array([1, 0]), "action": np.zeros((20, 1)), "reward": np.ones(20),
            "terminated": last & (number == 1), "truncated": last & (number != 1), "done": last,
            "episode": number, "step": at, "env_id": np.full(20, copy), "agent": np.full(20, "red" if copy else "blue"),
        })  # fmt: skip
    mixed = {key: np.stack([part[key] for part in parts], 1) for key in keys}
    return {key: value.reshape(40, *value.shape[2:]) for key, value in mixed.items()}, truth


@pytest.mark.parametrize(
    ("keys", "options"),
    [
        (("terminated", "truncated", "env_id"), {}),
        (("terminated", "truncated", "episode", "env_id"), {}),  # both count their episodes from 0
        (("done", "agent"), {}),
        (("terminated", "truncated", "episode", "step", "agent"), {}),
        (("terminated", "truncated", "env_id"), {"last_step": "drop"}),
    ],
)
def test_those_who_act_by_turns_are_told_apart(keys: tuple[str, ...], options: dict[str, Any]) -> None:
    known = ("next_obs",) if not options else ()
    table, truth = turns(("obs", "action", "reward", *known, *keys))
    data = load_vectors(table, **options)
    cut = [0 if options == {} else int(length != 4 and length != 8) for length in FLAT]
    assert sorted(data.episode_lengths.tolist()) == sorted(
        length - less for length, less in zip(FLAT, cut, strict=True)
    )
    for start, end in zip(data.episode_starts, data.episode_ends, strict=True):
        (mine,) = (each for each in truth if each[0, 0] == data.observation[start, 0])
        np.testing.assert_allclose(data.observation[start : end + 1], mine[: end + 1 - start], rtol=1e-6)
        np.testing.assert_allclose(data.next_observation[start:end, 0], mine[1 : end + 1 - start, 0])
    ledger = Ledger.of(data)
    assert {each.name: each.use for each in ledger.used}[keys[-1]] == "who acts"
    assert any(f"column {keys[-1]!r} changes within episodes: 2 act by turns" in line for line in ledger.lines())
    assert ledger.rows - ledger.dropped == data.size


def test_a_mapping_that_names_all_is_not_overruled_but_told() -> None:
    table, _ = turns(("obs", "action", "reward", "next_obs", "done", "env_id"))
    columns = {
        "observation": "obs",
        "action": "action",
        "reward": "reward",
        "next_observation": "next_obs",
        "done": "done",
    }
    data = load_vectors(table, columns=columns)
    (warning,) = Ledger.of(data).lines(Kind.WARNING)
    assert (
        "'env_id' changes within episodes: 2 act by turns, and the mapping does not use it: if several act at once"
        in warning
    )
    assert Ledger.of(load_vectors(table, columns={**columns, "ignore": "env_id"})).lines(Kind.WARNING) == []


def test_who_acts_is_nothing_where_each_has_its_own_episodes() -> None:
    table, _ = turns(("obs", "action", "reward", "next_obs", "done", "env_id"))
    order = np.argsort(table["env_id"], kind="stable")
    data = load_vectors({key: value[order] for key, value in table.items()})
    assert data.episode_lengths.tolist() == FLAT
    assert "who acts" not in [each.use for each in Ledger.of(data).used]


def test_a_hand_over_within_an_episode_is_no_turn() -> None:
    """The operator changes while the task goes on: successors tell, or that no time occurs twice."""
    table = one_after_the_other()
    table |= {"episode": np.repeat(range(6), FLAT), "actor": np.where(table["step"] < 3, "human", "autopilot")}
    data = load_vectors(table)
    assert data.episode_lengths.tolist() == FLAT
    (warning,) = Ledger.of(data).lines(Kind.WARNING)
    assert "'actor' changes within episodes: 2 act by turns, and every time occurs once, so episodes go on" in warning
    table.pop("step")
    data = load_vectors(table)
    assert data.episode_lengths.tolist() == FLAT
    assert Ledger.of(data).lines(Kind.WARNING) == []


def one_after_the_other() -> dict[str, np.ndarray]:
    table, _ = turns(("obs", "action", "reward", "terminated", "step", "env_id", "next_obs"))
    order = np.argsort(table.pop("env_id"), kind="stable")
    return {key: value[order] for key, value in table.items()}


def test_a_counter_that_starts_again_begins_an_episode() -> None:
    table = one_after_the_other()
    data = load_vectors(table)
    assert data.episode_lengths.tolist() == FLAT
    assert np.flatnonzero(data.terminal).tolist() == [10, 32]
    assert data.timeout.sum() == 4
    assert {each.name: each.use for each in Ledger.of(data).used}["step"] == "where episodes begin"
    # with the successors inferred, nothing follows the last steps of the four that stop
    table.pop("next_obs")
    assert load_vectors(table, last_step="drop").episode_lengths.tolist() == [6, 4, 8, 4, 8, 6]


def test_a_flag_on_first_rows_begins_an_episode() -> None:
    table = one_after_the_other()
    table["is_first"] = table.pop("step") == 0
    data = load_vectors(table)
    assert data.episode_lengths.tolist() == FLAT
    assert {each.name: each.use for each in Ledger.of(data).used}["is_first"] == "where episodes begin"
    assert any("'is_first' marks 6 first rows of episodes, 3 of them after rows" in x for x in Ledger.of(data).lines())


def test_a_counter_that_is_none_is_warned_of() -> None:
    table = one_after_the_other()
    table["step"] = table["step"] % 5 + np.arange(40) // 20  # falls back to 1, too
    (warning,) = Ledger.of(load_vectors(table)).lines(Kind.WARNING)
    assert "column 'step' does not go on in" in warning
    assert "--map episode=NAME" in warning


def test_columns_are_known_by_what_they_hold(tmp_path: Path) -> None:
    table = one_after_the_other()
    table.pop("step")
    path = tmp_path / "log.parquet"
    after, ids = table.pop("next_obs"), np.repeat(["a7", "c1", "b9", "d0", "f4", "e2"], FLAT)
    shown = {key: list(value) if value.ndim == 2 else value for key, value in {**table, "s_prime": after}.items()}
    pa.parquet.write_table(pa.table({**shown, "run_no": ids, "phase": ["on", "off"] * 20}), path)
    warnings = Ledger.of(load_vectors(path, last_step="drop")).lines(Kind.WARNING)
    assert warnings == [
        "column 's_prime' is not used, but holds the next row's observation in most rows: is it next_observation? map "
        "it, or list it in ignore",
        "column 'run_no' is not used, but keeps one value over runs of rows and changes where no end is marked: is it "
        "episode? map it, or list it in ignore",
    ]
    data = load_vectors(path, columns={"episode": "run_no", "next_observation": "s_prime"})
    assert data.episode_lengths.tolist() == FLAT
    assert Ledger.of(data).lines(Kind.WARNING) == []


def test_episodes_of_one_row_and_ignored_columns_are_left_alone() -> None:
    table, _ = turns(("obs", "action", "reward", "env_id"))
    data = load_vectors(table, columns={"one_row_episodes": True, "scale": "none"})
    assert data.num_episodes == data.terminal.sum() == 40
    assert "who acts" not in [each.use for each in Ledger.of(data).used]
    table = one_after_the_other()
    table["is_first"] = table.pop("step") == 0
    known = {"observation": "obs", "action": "action", "terminal": "terminated", "next_observation": "next_obs"}
    begins = {each.name: each.use for each in Ledger.of(load_vectors(table)).columns}
    assert begins["is_first"] == "where episodes begin"
    named_all, ignored = {**known, "reward": "reward"}, {"ignore": "is_first"}
    for columns, use in ((named_all, "kept beside the steps as 'is_first'"), (ignored, None)):
        data = load_vectors(table, columns=columns)
        assert {each.name: each.use for each in Ledger.of(data).columns}["is_first"] == use


@pytest.mark.parametrize("kind", ["words", "gaps", "pairs"])
def test_a_counter_in_words_with_gaps_or_of_pairs_tells_nothing(kind: str) -> None:
    table = one_after_the_other()
    step = table["step"]
    made = {
        "words": np.array([f"t{at}" for at in step], object), "gaps": np.where(step == 2, np.nan, step),
        "pairs": np.column_stack([step, step]),
    }  # fmt: skip
    plain = Ledger.of(load_vectors({key: value for key, value in table.items() if key != "step"}))
    data = load_vectors({**table, "step": made[kind]})
    assert data.episode_lengths.tolist() == FLAT
    assert Ledger.of(data).lines() == plain.lines()
    assert [each.name for each in Ledger.of(data).unused] == ["step"]


def test_an_episode_that_begins_late_after_a_marked_end_is_said_though_its_counter_goes_up() -> None:
    rows = np.arange(12.0)
    table = {
        "obs": rows, "next_obs": rows + 1, "action": np.zeros(12), "reward": rows, "done": np.tile([0, 0, 1], 4),
        "step": np.array([0, 1, 2, 30, 31, 32, 0, 1, 2, 0, 1, 2]),
    }  # fmt: skip
    (said,) = Ledger.of(load_vectors(table)).lines(Kind.WARNING)
    assert said.startswith("1 of 4 episodes begin at step 30 or later, the others at 0")
