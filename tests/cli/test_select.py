from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from sapp.cli.main import main
from sapp.runs import checkpoint
from sapp.runs.run import Run, save_checkpoint

QUICK = ["--fit-steps", "40", "--bags", "2", "--fit-hidden", "8"]


@pytest.mark.parametrize("command", [["select"], ["export"], ["data", "check"]], ids=" ".join)
def test_every_help_page_has_an_example(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, "--help"]) == 0
    assert f"Example: sapp {' '.join(command)} " in capsys.readouterr().out


def test_six_episodes_and_forty_steps_are_no_estimate(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["evaluate", str(trained), "--offline", *QUICK, "--json"])
    content = json.loads(capsys.readouterr().out)
    row = content["reports"][0]["policies"][0]
    assert code in (0, 3)
    assert row["verdict"] in ("doubtful", "refused")
    assert "only 6 episodes" in row["diagnosis"]["reasons"][0]["what"]
    assert (row["value"] is None) == (row["verdict"] == "refused") == (code == 3)
    kept = json.loads((trained / "offline.json").read_text())
    assert kept["reports"][0]["policies"][0]["fqe"] == row["fqe"]
    # the card of an export takes it over
    assert main(["export", str(trained), str(tmp_path / "p.onnx"), "--json"]) == 0
    card = json.loads(capsys.readouterr().out)
    assert card["value"]["fqe"] == row["fqe"]
    (trained / "offline.json").unlink()


def test_an_estimate_of_sampled_actions_is_not_kept_for_a_card(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exported policy plays the mode."""
    monkeypatch.setattr("sapp.cli.select._estimate", lambda *_: [])
    main(["evaluate", str(trained), "--offline", "--act", "sample", "--json"])
    assert not (trained / "offline.json").exists()
    main(["evaluate", str(trained), "--offline", "--json"])
    assert json.loads((trained / "offline.json").read_text()) == {"reports": []}
    (trained / "offline.json").unlink()


def test_select_ranks_checkpoints(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["select", str(trained), *QUICK, "--json"])
    content = json.loads(capsys.readouterr().out)
    names = [each["policy"] for each in content["order"]] + [each["policy"] for each in content["refused"]]
    assert len(names) == 2
    assert all(" @ " in name for name in names)
    assert (code == 3) == (not content["order"])


@pytest.mark.parametrize("gone", [[10], [10, 20]])
@pytest.mark.parametrize("moment", ["listed", "opened"])
def test_select_leaves_out_a_checkpoint_that_training_drops_meanwhile(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, gone: list[int],
    moment: str,
) -> None:  # fmt: skip
    """The run goes on between the list of its checkpoints and the reading of one, or while one is being read."""
    run = shutil.copytree(trained, tmp_path / "run")
    folder = run / "checkpoints"
    left = [step for step in (10, 20) if step not in gone]

    _, learners = Run(trained).restore(20)

    def rotate() -> None:
        if not left:
            save_checkpoint(run, 30, learners)
        for step in gone:
            (folder / f"{step:010d}.safetensors").unlink(missing_ok=True)

    if moment == "listed":
        plain = Run.restore
        monkeypatch.setattr(Run, "restore", lambda self, step=None: (rotate(), plain(self, step))[1])
    else:
        read = checkpoint.read_information
        monkeypatch.setattr(checkpoint, "read_information", lambda path: (read(path), rotate())[0])
    code = main(["select", str(run), *QUICK, "--json"])
    output = capsys.readouterr()
    assert code in (0, 3), output.err
    content = json.loads(output.out)
    (name,) = [each["policy"] for each in content["order"] + content["refused"]]
    assert name == f"cql/point-behaviour/0 @ {20 if left else 30}"
    for step in gone:
        assert f"the checkpoint of step {step} is gone (training drops old ones); it was left out" in output.err


def test_a_policy_file_is_judged_on_given_logs(
    point_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    sizes = {"w0": (4, 2), "b0": (4,), "w_mean": (2, 4), "b_mean": (2,), "w_logstd": (2, 4), "b_logstd": (2,)}
    np.savez(tmp_path / "policy.npz", **{key: rng.normal(size=shape) for key, shape in sizes.items()})
    arguments = ["evaluate", str(tmp_path / "policy.npz"), "--offline", *QUICK, "--act", "sample"]
    assert main(arguments) == 2
    assert "give --data" in capsys.readouterr().err
    assert main([*arguments, "--data", str(point_file)]) == 2
    assert "--discount" in capsys.readouterr().err
    assert main([*arguments, "--data", str(point_file), "--discount", "0.9"]) in (0, 3)
    assert "policy" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "x.csv"], "add --offline"),
        (["--offline", "--act", "dance"], "use mode or sample"),
        (["--offline", "--checkpoints", "some"], "use last or all"),
        (["--offline", "--fit-hidden", "wide"], "give layer sizes"),
        (["--offline", "--bags", "1"], "bags is 1"),
        (["--offline", "--columns", "map.toml"], "give that, too"),
        (["--offline", "--discount", "1.5"], "discount is 1.5"),
        (["--offline", "--data", "no.csv"], "no such file"),
    ],
)
def test_wrong_use_is_one_line(
    trained: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", str(trained), *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
