"""`sapp algorithms`."""

from __future__ import annotations

import json

from sapp.cli.main import main


def test_algorithms_fit_one_screen_and_say_what_each_takes(capsys):
    assert main(["algorithms"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) < 24  # and a line to type on
    assert max(len(line.rstrip()) for line in lines) <= 80
    blank = lines.index("")
    middle = lines[0].index("algorithm", 1)
    takes = {}
    for part in (slice(0, middle), slice(middle, None)):
        where = {name: lines[0][part].index(name) for name in ("cont.", "discr.", "images", "weights")}
        for half in [line[part] for line in lines[1:blank] if line[part].strip()]:
            takes[half.split()[0]] = {name for name, start in where.items() if half[start : start + 3] == "yes"}
    assert takes["cql"] == {"cont.", "weights"}
    assert takes["discrete-cql"] == {"discr.", "images", "weights"}
    assert takes["bcq"] == {"cont."}
    names = {line.split()[0] for line in lines[blank + 1 :]}
    assert {"dualdice", "occupancy", "constant:NUMBER", "shuffled:WEIGHTS"} <= names
    assert main(["algorithms", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(takes) == {name for name, fact in found["algorithms"].items() if "--weights" not in fact["about"]}
    assert found["algorithms"]["rem"] == {
        "about": "random ensemble mixture, 200 heads", "continuous": False, "discrete": True, "images": True,
        "weights": False,
    }  # fmt: skip


def test_algorithms_lists_hyper_parameters(capsys):
    assert main(["algorithms", "cql", "--weights", "shuffled:occupancy"]) == 0
    assert "weights.of.successor" in capsys.readouterr().out
    assert main(["algorithms", "sa-cql", "--data", "walker2d-expert-v2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["alpha"] == 5.0
    assert (found["weights.f.b0"], found["weights.f.b1"]) == (0.5, 5.0)
