"""`sapp collect`: what is refused."""

from __future__ import annotations

from sapp.cli.main import main


def test_bad_commands_are_one_line(capfd, tmp_path) -> None:
    for words, message in (
        ([], "collect needs an environment"),
        (["hoper"], "did you mean 'hopper'"),
        (["point", "--steps", "none"], "--steps 'none': give a whole number"),
        (["point", "--alpha", "3"], "SAC has no hyper-parameter 'alpha'"),
        (["point", "--resume", str(tmp_path)], "leave environments and hyper-parameters out"),
        (["--resume", str(tmp_path)], "not a run folder"),
        (["CartPole-v1"], "has 2 discrete actions, SAC learns real-valued ones"),
    ):
        assert main(["collect", *words, "--quiet"]) == 2
        error = capfd.readouterr().err.strip()
        assert message in error
        assert "\n" not in error
    assert not list(tmp_path.iterdir())
