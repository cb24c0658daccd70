"""One member per method, dataset and seed, and what is told of the others."""

from __future__ import annotations

from recorded import member

from sapp.report.records import told_apart, unique


def test_the_newest_of_two_counts_wherever_it_stands_and_it_is_said() -> None:
    old, new = member(run="old", stamp=1.0, scores=(5.0,)), member(run="new", stamp=2.0, scores=(7.0,))
    for order in ((old, new), (new, old)):
        kept, notes = unique([*order, member(seed=1)])
        assert [each.run for each in kept] == ["new", "CQL/hopper-medium/1"]
        assert notes == ["CQL on hopper-medium, seed 0, is there more than once: the newest counts (new, not old)."]
    kept, _ = unique([member(run="first"), member(run="last")])
    assert [each.run for each in kept] == ["last"]


def test_one_name_for_other_hyper_parameters_is_two_methods() -> None:
    first = member(run="a: CQL/hopper-medium/0", algorithm={"alpha": 1.0})
    second = member(run="b: CQL/hopper-medium/0", algorithm={"alpha": 5.0})
    other = member("SA-CQL", run="b: SA-CQL/hopper-medium/0")
    elsewhere = member(dataset="walker2d-medium", run="b: CQL/walker2d-medium/0", algorithm={"alpha": 9.0})
    found, notes = told_apart([first, second, other, elsewhere])
    assert [each.variant for each in found] == ["CQL [a]", "CQL [b]", "SA-CQL", "CQL [b]"]
    assert notes == ["CQL has other hyper-parameters in other runs: these are separate rows."]


def test_one_name_for_other_data_is_two_datasets() -> None:
    found, notes = told_apart([member(facts={"fingerprint": "abcdefgh"}), member(facts={"fingerprint": "12345678"})])
    assert [each.dataset for each in found] == ["hopper-medium #abcdef", "hopper-medium #123456"]
    assert len(notes) == 1
    assert "fingerprints" in notes[0]


def test_settings_that_differ_by_dataset_are_one_method() -> None:
    members = [member(algorithm={"alpha": 1.0}), member(dataset="walker2d-medium", algorithm={"alpha": 5.0})]
    assert told_apart(members) == (members, [])
