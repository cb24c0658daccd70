"""Parts of a study: what they cost, that they train what is missing, and go on where time was over."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from tiny_experiment import tiny_grid

from sapp.core.errors import SappError
from sapp.experiments import parts, text_store
from sapp.experiments.grid import Grid, Scale
from sapp.experiments.parts import Block, Costs, Part, Study, command, done, listing, make_data, seconds, train
from sapp.runs.members import MemberId

COSTS = Costs(step=0.5, plain=2.0, learning=3.0, ratio=1.0, start=10.0, job=7.0)


def grid(scale: Scale) -> Grid:
    """The tiny experiment at any scale, on two datasets."""
    return replace(tiny_grid(), scale=scale, datasets=("point-6", "point-8"))


@pytest.fixture
def study(tmp_path: Path) -> Study:
    two = Part((Block(("CQL", "SA-CQL"), ("point-6",), (0, 1)), Block(("SA-CQL",), ("point-8",), (1,))))
    rest = Part((Block(("SA-CQL", "matched"), ("point-6",), (0,)),))
    return Study(tmp_path / "study", grid, tiny_grid().scale, (two, rest), COSTS, precision="float32")


def test_a_part_is_its_blocks(study: Study) -> None:
    first = study.part(1)
    assert first.members == {
        *(MemberId(method, "point-6", seed) for method in ("CQL", "SA-CQL") for seed in (0, 1)),
        MemberId("SA-CQL", "point-8", 1),
    }
    assert first.datasets == ("point-6", "point-8")
    with pytest.raises(SappError, match="part 3: give 1 to 2"):
        study.part(3)


def test_time_is_counted_by_phases_and_what_is_shared_once(study: Study) -> None:
    """Three pairs share 10 steps of the algorithm and 10 of the ratio; five members take 20 steps together."""
    shared, ratio, joint = 10 * (0.5 + 3 * 2.0), 10 * (0.5 + 3 * 1.0), 20 * (0.5 + 5 * 3.0)
    assert seconds(study, study.part(1)) == pytest.approx(10.0 + 7.0 + shared + ratio + joint)


def test_a_part_trains_what_is_missing_and_says_what_is_done(study: Study, tmp_path: Path) -> None:
    assert train(study, study.part(1), tmp_path / "one") == 0
    assert done(tmp_path / "one" / "rows", study.whole()) == study.part(1).members
    elsewhere = replace(study.whole(), scale=replace(study.scale, name="other"))
    assert done(tmp_path / "one" / "rows", elsewhere) == set(), "runs of another scale"
    command(study, ["merge", str(tmp_path / "one")])
    assert [(number, count) for number, _, count, _ in listing(study)] == [(1, 5), (2, 1)]
    assert train(study, study.part(2), tmp_path / "two") == 0
    assert len(list((tmp_path / "two" / "runs").glob("cql-*"))) == 1
    found = text_store.read(tmp_path / "two" / "rows")
    assert len(found.rows["runs"]) == 6, "the committed five and the one that was missing"
    command(study, ["merge", str(tmp_path / "two")])
    assert done(study.rows, study.whole()) == study.part(1).members | study.part(2).members


def test_a_part_whose_time_is_over_says_so_by_its_status_and_goes_on(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ["run", "2", "--out", str(tmp_path / "out")]
    with monkeypatch.context() as patch:
        patch.setattr(parts, "SAVING", 600.0)  # a second is left
        patch.setattr("sapp.experiments.driver.Clock.share", lambda _: 1e-3)
        with pytest.raises(SystemExit) as caught:
            command(study, [*run, "--minutes", "1"])
    assert caught.value.code == 3
    command(study, run)
    assert len(done(tmp_path / "out" / "rows", study.whole())) == 2


def test_time_to_save_is_kept_back(study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = []

    def run(*_: object, time_limit: float | None, **__: object) -> nullcontext[None]:
        limits.append(time_limit)
        return nullcontext()

    monkeypatch.setattr(parts, "run_experiment", run)
    for minutes in (10.0, 0.1, None):
        assert train(study, study.part(2), tmp_path / "out", minutes=minutes) == 2
    assert limits == [600.0 - parts.SAVING, 1.0, None]


def test_runs_in_another_arithmetic_are_not_begun(study: Study, tmp_path: Path) -> None:
    with pytest.raises(SappError, match="precision mixed; this machine has no GPU"):
        train(replace(study, precision="mixed"), study.part(1), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_datasets_of_a_part_are_made_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    make_data(Part((Block(("CQL",), ("hopper-random", "walker2d-random"), (0,)),)), rehearse=True)
    assert {path.parts[-2] for path in tmp_path.glob("sapp/*/random-v0")} == {"hopper", "walker2d"}
    with pytest.raises(SappError, match="hopper-perfect: could not be made"):
        make_data(Part((Block(("CQL",), ("hopper-perfect",), (0,)),)))


def test_the_list_says_what_each_part_is(study: Study, capsys: pytest.CaptureFixture[str]) -> None:
    command(study, ["list"])
    first, second = capsys.readouterr().out.splitlines()
    assert "0 of 5 done" in first
    assert first.endswith("CQL, SA-CQL on point-6, seeds 0, 1; SA-CQL on point-8, seed 1")
    assert second.endswith("SA-CQL, matched on point-6, seed 0")
    with pytest.raises(SystemExit):
        command(study, ["run", "1"])
