"""Sentences are made from rows, charts carry their limits."""

from __future__ import annotations

from recorded import experiment, member

from sapp.report.content import content


def lead(*leads: float):
    members = []
    for place, gain in enumerate(leads):
        dataset = f"plant{place}"
        for seed in range(3):
            members.append(member("SA-CQL", dataset, seed, (10.0 + gain + seed * 0.1,)))
            members.append(member("CQL", dataset, seed, (10.0 - seed * 0.1,)))
    return experiment(*members)


def test_sentences_follow_the_rows() -> None:
    up, down = content(lead(50.0, 50.0)).sentences, content(lead(-50.0, 50.0)).sentences
    assert up[0].startswith("SA-CQL scores 60.1 (95 % interval ")
    assert up[1].startswith("SA-CQL against CQL: higher on 2 of 2 datasets; on average +50.2 (95 % interval ")
    assert up[1].endswith("): higher.")
    assert up[2] == (
        "Of 2 differences by dataset, 2 are significant at the 5 % level before Holm's correction (0.1 expected by "
        "chance) and 2 after it."
    )
    assert down[1].startswith("SA-CQL against CQL: lower on 1, higher on 1 of 2 datasets; on average +0.2 (95 % ")
    assert down[1].endswith("): no significant difference.")


def test_the_smoke_scale_is_said_by_the_scale_not_by_a_title() -> None:
    assert "smoke scale" in content(experiment(member(), scale="smoke")).sentences[-1]
    assert not any("smoke" in each for each in content(experiment(member(), scale="small")).sentences)


def test_the_limit_of_values_is_a_line_in_their_chart() -> None:
    def metrics(limit: float):
        return {"critic/value": [(1, 5.0), (2, 6.0)], "critic/value_limit": [(1, 6.0), (2, limit)]}

    same = content(experiment(member(metrics=metrics(9.0)), member("SA-CQL", metrics=metrics(9.0))))
    (chart,) = [chart for _, chart in same.diagnostics if "mean value" in chart.title]
    assert [(each.label, each.value, each.variant) for each in chart.references] == [("limit", 9.0, "")]
    differing = content(experiment(member(metrics=metrics(9.0)), member("SA-CQL", metrics=metrics(7.0))))
    (chart,) = [chart for _, chart in differing.diagnostics if "mean value" in chart.title]
    assert [(each.label, each.value) for each in chart.references] == [("limit of CQL", 9.0), ("limit of SA-CQL", 7.0)]
    assert "beyond" not in same.tables
