"""The chain printed and drawn."""

from __future__ import annotations

import io

from rich.console import Console

from sapp.theory.chain_show import plot_chain, print_chain


def test_print_and_plot(tmp_path) -> None:
    stream = io.StringIO()
    console = Console(file=stream, width=160)
    print_chain(console)
    assert "w(ℓ)/w(r) = 9" in stream.getvalue()
    print_chain(console, "kl")
    assert "∞" in stream.getvalue()
    plot_chain(tmp_path / "chain.png", "mmd", 0.05, left=8, right=12)
    assert (tmp_path / "chain.png").stat().st_size > 10_000
