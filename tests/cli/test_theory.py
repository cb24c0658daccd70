"""``sapp theory``: tables that fit a terminal, figures, and one clear line for bad arguments."""

from __future__ import annotations

from pathlib import Path

import pytest

from sapp.cli.main import main


def test_audit_prints_every_statement_and_draws(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["theory", "audit", "--mdps", "5", "--plot", str(tmp_path / "audit.png")]) == 0
    shown = capsys.readouterr().out
    for name in ("Lemma 1", *(f"Theorem {number}" for number in range(1, 8))):
        assert name in shown
    assert "…" not in shown  # nothing is cut off at 80 columns
    assert (tmp_path / "audit.png").stat().st_size > 10_000


def test_a_counterexample_is_replayed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["theory", "audit", "--replay", "theorem4-printed/feeder/6/cql/0.001/0.9/paper"]) == 0
    assert "violated" in capsys.readouterr().out


def test_chain_shows_the_ratio_of_coverages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["theory", "chain", "--left", "20", "--right", "80", "--plot", str(tmp_path / "chain.png")]) == 0
    shown = capsys.readouterr().out
    assert "w(ℓ)/w(r) = 4" in shown
    assert "…" not in shown
    assert (tmp_path / "chain.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["audit", "--mdps", "0"], "mdps is 0"),
        (["audit", "--replay", "theorem9"], "an ID reads"),
        (["audit", "--replay", "theorem9-printed/arms/0/kl/1/0.9/paper"], "theorem9"),
        (["chain", "--divergence", "js"], "divergence 'js'"),
        (["chain", "--left", "0"], "left is 0"),
        (["chain", "--divergence", "kl", "--plot", "x.png"], "infinite"),
    ],
)
def test_bad_arguments_get_one_line(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["theory", *arguments]) == 2
    error = capsys.readouterr().err.strip()
    assert error.startswith("sapp: error:")
    assert words in error
    assert "\n" not in error
    assert not list(tmp_path.iterdir())
