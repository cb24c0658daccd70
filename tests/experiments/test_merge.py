"""Rows are put together where they are whole and the study's; anything else is refused, and twice is once."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path

import pytest
from made_rows import made_rows

from sapp.core.errors import SappError
from sapp.experiments import text_store
from sapp.experiments.merge import merge
from sapp.runs.members import MemberId
from studies.table1.page import standing
from studies.table1.part import STUDY

HOPPER = [MemberId("SA-CQL", "hopper-medium", seed) for seed in (0, 1, 2)]


def score(member: MemberId) -> float:
    """Of made-up runs."""
    return 60.0 + member.seed


def test_rows_that_are_not_whole_or_not_the_studys_are_refused(tmp_path: Path) -> None:
    member = HOPPER[:1]
    rows = tmp_path / "rows"

    def refused(words: str) -> None:
        with pytest.raises(SappError, match=words):
            merge(STUDY, [tmp_path / "part"], rows, say=lambda _: None)
        assert not rows.exists()
        shutil.rmtree(tmp_path / "part")

    def changed(name: str, old: str, new: str) -> None:
        text_store.add(made_rows(STUDY, member, score), tmp_path / "part")
        file = tmp_path / "part" / f"{name}.csv"
        before = file.read_text()
        assert old in before
        file.write_text(before.replace(old, new))

    text_store.add(made_rows(STUDY, member, score, last=950_000), tmp_path / "part")
    refused("SA-CQL/hopper-medium/0: not whole, evaluated at 19 of 20 steps")
    changed("runs", '""alpha"": 5.0', '""alpha"": 4.0')
    refused("trained with other settings, or not in precision mixed")
    changed("runs", '""mixed""', '""float32""')
    refused("not in precision mixed")
    changed("runs", "data-hopper-medium", "other-hopper-medium")
    refused("is none that table1 would train today")
    changed("runs", "999906", "999905")
    refused("999,905 transitions")
    changed("cells", "table1,paper,", "table1,small,")
    refused(r"is of table1 \(small\), not of table1")
    changed("cells", "SA-CQL,0", "SA-CQL,1")
    refused("its run is of hopper-medium, seed 0")
    (tmp_path / "part").mkdir()
    refused("holds no rows of an experiment")


def test_rows_merged_twice_change_nothing_and_a_run_that_is_there_stays(tmp_path: Path) -> None:
    rows, said = tmp_path / "rows", []
    text_store.add(made_rows(STUDY, HOPPER[:2], score), tmp_path / "part" / "rows")
    assert merge(STUDY, [tmp_path / "part"], rows, say=said.append) == 2
    before = {file.name: file.read_bytes() for file in rows.iterdir()}
    assert merge(STUDY, [tmp_path / "part"], rows, say=said.append) == 0
    assert said == [
        f"{tmp_path / 'part'}: 2 new runs, 0 there before", f"{tmp_path / 'part'}: 0 new runs, 2 there before",
    ]  # fmt: skip
    assert {file.name: file.read_bytes() for file in rows.iterdir()} == before
    text_store.add(made_rows(STUDY, HOPPER, lambda _: 7.0), tmp_path / "again" / "rows")
    assert merge(STUDY, [tmp_path / "again"], rows, say=said.append) == 1
    kept = text_store.read(rows).rows["evaluations"]
    assert {row for row in text_store.read(tmp_path / "part" / "rows").rows["evaluations"]} < set(kept)
    assert len({row[0] for row in kept}) == 3


def test_data_of_other_bits_are_taken_and_named(tmp_path: Path) -> None:
    said: list[str] = []
    for number, bits in enumerate(("data", "others")):
        text_store.add(made_rows(STUDY, [HOPPER[number]], score, bits=bits), tmp_path / bits)
    merge(STUDY, [tmp_path / "data", tmp_path / "others"], tmp_path / "both", say=said.append)
    assert any("hopper-medium: made by the same recipe, but with other bits" in line for line in said)
    assert "other bits on hopper-medium" in standing(STUDY, tmp_path / "both")


def test_an_archive_is_read_and_what_was_stopped_gives_way_to_what_is_whole(tmp_path: Path) -> None:
    part, rows, said = tmp_path / "part" / "rows", tmp_path / "rows", []
    text_store.add(made_rows(STUDY, HOPPER[:1], score), part)
    text_store.add_unfinished(made_rows(STUDY, HOPPER[1:], score, last=500_000), part)
    with tarfile.open(tmp_path / "part1.tgz", "w:gz") as archive:
        archive.add(tmp_path / "part", "part")
    assert merge(STUDY, [tmp_path / "part1.tgz"], rows, say=said.append) == 1
    stopped = text_store.read(rows / text_store.UNFINISHED)
    assert {row[5] for row in stopped.rows["cells"]} == {1, 2}
    text_store.add(made_rows(STUDY, HOPPER[1:], score), tmp_path / "whole")
    assert merge(STUDY, [tmp_path / "whole"], rows, say=said.append) == 2
    assert not (rows / text_store.UNFINISHED).exists()
    (tmp_path / "broken.tgz").write_bytes(b"nothing")
    with pytest.raises(SappError, match="neither a folder nor an archive"):
        merge(STUDY, [tmp_path / "broken.tgz"], rows)
