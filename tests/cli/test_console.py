"""How the command prints."""

from __future__ import annotations

from sapp.cli.main import main


def test_tables_keep_names_whole_where_there_is_no_terminal(point_file, tiny, short, tmp_path, capsys):
    """Such a name can be pasted into --member."""
    out, name = tmp_path / "run", "a-name-that-is-a-good-deal-longer-than-a-column-of-a-table-of-eighty-columns"
    data = tmp_path / f"{name}.npz"
    assert main(["data", "convert", str(point_file), str(data), "--name", name]) == 0
    argv = ["train", "cql", str(data), *tiny, "--alpha", "1,2", *short, "--eval-every", "0", "--out", str(out)]
    assert main(argv) == 0
    capsys.readouterr()
    members = [f"cql[alpha={alpha}]/{name}/0" for alpha in (1, 2)]
    assert main(["evaluate", str(out), "--episodes", "2"]) == 0
    page = capsys.readouterr().out
    assert all(member in page for member in members)
    assert main(["evaluate", str(out), "--episodes", "2", "--member", members[1]]) == 0
    assert members[0] not in capsys.readouterr().out
    # all of them, for --member
    assert main(["export", str(out), str(tmp_path / "policy.onnx")]) == 2
    line = capsys.readouterr().err
    assert line == f"sapp: error: {out}: has 2 policies; choose one with --member: {', '.join(members)}\n"
