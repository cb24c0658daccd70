from __future__ import annotations

import io
import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from d4rl_files import SOURCES, sample
from frame_logs import make_log
from rich.console import Console

from sapp.core.errors import SappError
from sapp.data import Dataset, load
from sapp.data.dataset_summary import Quantiles, _count, _pictures, _short, plot_summary, print_summary, summarise


def test_summary_by_hand(small: Dataset) -> None:
    summary = summarise(small)
    assert (summary.transitions, summary.episodes, summary.terminals, summary.timeouts) == (6, 3, 2, 1)
    assert summary.returns == Quantiles(6, 6, 6, 7.5, 9, 7)
    assert summary.lengths == Quantiles(1, 1.5, 2, 2.5, 3, 2)
    assert (summary.rewards.minimum, summary.rewards.maximum, summary.rewards.mean) == (1, 6, 3.5)
    assert summary.rewards.std == pytest.approx(np.sqrt(35 / 12))
    assert len(summary.observation) == 2
    assert summary.action[1].minimum == small.action[:, 1].min()
    assert summary.action[2].std == pytest.approx(small.action[:, 2].astype(np.float64).std())
    assert summary.normalized_score is None
    assert summary.extras == {"log_prob": 1}
    assert json.loads(json.dumps(asdict(summary)))["returns"]["median"] == 6


@pytest.mark.parametrize("source", SOURCES)
def test_scores_of_a_d4rl_file(d4rl_folder: Path, source: str) -> None:
    data = load(sample(source, d4rl_folder, "hopper_medium-v2"))
    highest = 1465.1845 if source == "genuine" else data.episode_returns.max()
    score = summarise(data).normalized_score
    assert score is not None
    assert score.maximum == pytest.approx(100 * (highest + 20.272305) / (3234.3 + 20.272305), abs=1e-3)


def test_printed_summary_states_numbers_and_units(small: Dataset) -> None:
    text = io.StringIO()
    print_summary(summarise(small), Console(file=text, width=120))
    printed = text.getvalue()
    for words in (
        "small",
        "Small-v0",
        "2 end terminal, 1 time out",
        "return (sum of rewards)",
        "length (steps)",
        "action 2",
        "-1 to 1",
        "7.5",
    ):
        assert words in printed


def test_names_are_not_taken_for_markup(small: Dataset) -> None:
    text = io.StringIO()
    print_summary(summarise(load(small, name="[red]x[/red]")), Console(file=text, width=120))
    assert "[red]x[/red]" in text.getvalue()


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_plot(small: Dataset, tmp_path: Path, ending: str) -> None:
    path = plot_summary(small, tmp_path / "new" / f"out.{ending}")
    head = path.read_bytes()[:300]
    assert head.startswith(b"\x89PNG") if ending == "png" else b"<svg" in head or b"<?xml" in head
    assert [each.name for each in path.parent.iterdir()] == [f"out.{ending}"]


def test_plot_of_one_row(tmp_path: Path) -> None:
    data = Dataset([[0.0]], [[0.0]], [1.0], [[0.0]], [True], [False])
    assert plot_summary(data, tmp_path / "one.png").stat().st_size > 1000


def test_plot_of_unknown_kind(small: Dataset, tmp_path: Path) -> None:
    with pytest.raises(SappError, match=r"out\.xyz: a figure is not written as '\.xyz'"):
        plot_summary(small, tmp_path / "out.xyz")


def test_eight_frames_have_white_borders_and_are_evenly_spread() -> None:
    from matplotlib.figure import Figure

    data = make_log([5, 6, 11], [True, False, True])
    axis = Figure().add_subplot()
    _pictures(axis, data)
    (image,) = axis.images
    shown = np.asarray(image.get_array()).reshape(2, 6, 4, 6).swapaxes(1, 2).reshape(8, 6, 6)
    assert image.get_clim() == (0, 255)
    np.testing.assert_array_equal(shown[:, 1:-1, 1:-1], data.frames[[0, 3, 6, 9, 12, 15, 18, 21]])
    for border in (shown[:, 0], shown[:, -1], shown[:, :, 0], shown[:, :, -1]):
        np.testing.assert_array_equal(border, 255)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"), (-3.0, "-3"), (12_345.0, "12,345"), (999_999.0, "999,999"), (1e6, "1,000,000"), (2e7, "2e+07"),
        (999.96, "1000"), (1000.4, "1,000"), (-1234.5678, "-1,235"), (9_999_999.5, "10,000,000"), (12.34567, "12.35"),
        (0.000123456, "0.0001235"), (1.5e7 + 0.5, "1.5e+07"),
    ],
)  # fmt: skip
def test_numbers_are_shortened_but_no_digit_before_the_point_is_lost(value: float, text: str) -> None:
    assert _short(value) == text


def test_one_is_singular() -> None:
    assert [_count(number, "step") for number in (0, 1, 2_000)] == ["0 steps", "1 step", "2,000 steps"]
