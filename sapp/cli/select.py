"""``sapp select`` and ``sapp evaluate --offline``: what logs say that policies are worth."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sapp.cli.console import console, plain, print_json, say
from sapp.cli.options import Columns
from sapp.core.errors import SappError

if TYPE_CHECKING:
    from sapp.ope.offline import Offline
    from sapp.ope.run_policies import Candidates
    from sapp.ope.selection import Selection

ALL_REFUSED = 3
"""Exit code where no estimate deserves trust: nothing is wrong with the input, but there is no answer."""

OfflineData = Annotated[
    str | None, typer.Option("--data", help="Evaluate on these logs [the run's own]; needs --offline.")
]
ColumnsFile = Columns
Discount = Annotated[float | None, typer.Option("--discount", help="γ of the value [the run's own].")]
FitSteps = Annotated[int, typer.Option("--fit-steps", help="Gradient steps of the offline estimators.")]
Bags = Annotated[int, typer.Option("--bags", help="Bootstrap resamples of the episodes, each with its own networks.")]
FitHidden = Annotated[str, typer.Option("--fit-hidden", help="Layer sizes of the estimators' networks.")]
ActAs = Annotated[str, typer.Option("--act", help="mode: as played and exported; sample: draw from the policy.")]
Kept = Annotated[str, typer.Option("--checkpoints", help="last, or all that were kept.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of the estimators.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


def add_command(app: typer.Typer) -> None:
    """Add ``select`` to ``sapp``."""
    app.command(
        short_help="Rank policies by what logs say they are worth.",
        epilog="Example: sapp select runs/alphas runs/td3bc --checkpoints all",
        help="Rank the policies of runs by what logs say they are worth; say how sure that is, and what it may cost.",
    )(select)


def evaluate_offline(
    path: Path, *, data: str | None, columns: list[str] | None, members: list[str] | None, discount: float | None,
    steps: int, bags: int, hidden: str, act: str, checkpoints: str, seed: int, json: bool,
) -> int:  # fmt: skip
    """``sapp.ope.offline.evaluate_offline(...)`` on a run's members, or on a policy file."""
    estimates = _estimate([path], data, columns, members, discount, steps, bags, hidden, act, checkpoints, seed)
    reports, contents = [report for report, _ in estimates], [_content(*each) for each in estimates]
    if path.is_dir() and act == "mode":  # what is exported plays the mode, and its card quotes this
        _remember(path, contents)
    if json:
        print_json({"path": str(path), "act": act, "reports": contents})
    else:
        for report in reports:
            _print_report(report, act)
    refused = all(each.verdict == "refused" for report in reports for each in report.diagnoses)
    return ALL_REFUSED if refused else 0


def select(
    paths: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders.", show_default=False)],
    checkpoints: Kept = "all",
    data: Annotated[str | None, typer.Option("--data", help="Evaluate on these logs [the runs' own].")] = None,
    columns: ColumnsFile = None,
    by: Annotated[str, typer.Option("--by", help="value, or low: the lower end of the interval.")] = "value",
    act: ActAs = "mode",
    discount: Discount = None,
    steps: FitSteps = 20_000,
    bags: Bags = 8,
    hidden: FitHidden = "256,256",
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """``sapp.ope.selection.select(report)``."""
    from sapp.ope.selection import select as choose

    if by not in ("value", "low"):
        raise SappError(f"--by {by!r}: use value or low")
    estimates = _estimate(paths, data, columns, None, discount, steps, bags, hidden, act, checkpoints, seed)
    reports = [report for report, _ in estimates]
    if len(reports) > 1:
        names = ", ".join(report.data for report in reports)
        raise SappError(f"the runs were trained on different logs ({names}); give one with --data")
    selection = choose(reports[0], by)  # type: ignore[arg-type]
    if json:
        print_json({"data": reports[0].data, "discount": reports[0].settings.discount, **selection.to_json()})
    else:
        _print_selection(reports[0], selection)
    if not selection.order:
        raise typer.Exit(ALL_REFUSED)


def _estimate(
    paths: list[Path], data: str | None, columns: list[str] | None, members: list[str] | None, discount: float | None,
    steps: int, bags: int, hidden: str, act: str, checkpoints: str, seed: int,
) -> list[tuple[Offline, list[int | None]]]:  # fmt: skip
    """Reports, each with the steps of its policies' checkpoints."""
    if act not in ("mode", "sample"):
        raise SappError(f"--act {act!r}: use mode or sample")
    if checkpoints not in ("last", "all"):
        raise SappError(f"--checkpoints {checkpoints!r}: use last or all")
    if columns and data is None:
        raise SappError("--columns maps the columns of --data; give that, too")
    try:
        sizes = tuple(int(part) for part in hidden.split(","))
    except ValueError:
        raise SappError(f"--fit-hidden {hidden!r}: give layer sizes such as 256,256") from None
    from sapp.data import Ledger, load_vectors
    from sapp.data.ledger import Kind
    from sapp.ope.estimators import Settings
    from sapp.ope.offline import evaluate_offline as judge
    from sapp.ope.run_policies import gather

    logs = None if data is None else load_vectors(data, columns=columns or None)
    if logs is not None:
        for line in Ledger.of(logs).lines(Kind.WARNING):
            _note(f"{logs.name}: {line}")
    how: dict[str, Any] = {"checkpoints": checkpoints, "act": act, "say": _note}
    groups: list[Candidates] = gather(paths, data=logs, members=members, discount=discount, **how)
    reports = []
    for group in groups:
        settings = Settings(discount=group.discount, steps=steps, bags=bags, hidden=sizes, seed=seed)
        with _Bar(f"{len(group.policies)} policies on {group.data.name}") as bar:
            reports.append((judge(group.policies, group.data, settings, progress=bar), group.steps))
    return reports


def _note(line: str) -> None:
    say(line, error=True)


class _Bar:
    """A progress bar on stderr where that is a terminal, else nothing."""

    def __init__(self, text: str) -> None:
        self._text, self._bar, self._task = text, None, None

    def __enter__(self) -> _Bar:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import Progress

            bar: Any = Progress(console=Console(stderr=True), transient=True)
            bar.start()
            self._bar, self._task = bar, bar.add_task(f"{self._text}: compiling")
        return self

    def __exit__(self, *_: Any) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, done: int, total: int) -> None:
        if self._bar is not None:
            doing = "intervals" if done == total else "fitting"
            self._bar.update(self._task, completed=done, total=total, description=f"{self._text}: {doing}")


def _content(report: Offline, steps: list[int | None]) -> dict[str, Any]:
    """A report as plain data that says which checkpoint each policy is of."""
    content = report.to_json()
    rows = [{"policy": row["policy"], "step": step} | row for row, step in zip(content["policies"], steps, strict=True)]
    return {**content, "policies": rows}


def _remember(path: Path, reports: list[dict[str, Any]]) -> None:
    """Keep the estimates in the run folder, for the policy's card."""
    import json

    from sapp.core.files import write_text

    write_text(path / "offline.json", json.dumps({"reports": reports}, indent=1, ensure_ascii=False) + "\n")


def _print_report(report: Offline, act: str) -> None:
    from rich.table import Table
    from rich.text import Text

    from sapp.ope.diagnostics import explain

    page = console()
    table = Table(title=Text(f"Estimates from {report.data}"), title_justify="left", caption_justify="left")
    for heading in ("policy", "verdict", "value", "95 % interval", "discounted return", "95 % interval", "by"):
        table.add_column(heading, overflow="fold")
    for policy in range(len(report.names)):
        row = report.row(policy)
        table.add_row(
            Text(row["policy"]), row["verdict"], *_cells(row, "value"), *_cells(row, "discounted_return"),
            row["estimator"],
        )  # fmt: skip
    own = report.behaviour
    table.add_section()
    table.add_row(
        "the logs themselves", "", f"{own.estimate:.4g}", f"{own.low:.4g} to {own.high:.4g}",
        f"{own.estimate * report.gain:.4g}", f"{own.low * report.gain:.4g} to {own.high * report.gain:.4g}", "",
    )  # fmt: skip
    table.caption = (
        f"γ = {report.settings.discount:g}, policies act by {act}. value: (1−γ) × discounted return, reward per step; "
        "the task counts as going on after a time-out"
    )
    page.print(table)
    for policy, name in enumerate(report.names):
        page.print(plain(f"{name}:"))
        for line in explain(report.diagnoses[policy]):
            page.print(plain(f"  {line}"))
    for policy, name in enumerate(report.names):
        if report.diagnoses[policy].verdict == "refused":
            reasons = "; ".join(map(str, report.diagnoses[policy].reasons))
            page.print(plain(f"No estimate for {name}: {reasons}. Its figures are in --json, for what they are worth."))


def _cells(row: dict[str, Any], what: str) -> tuple[str, str]:
    if row[what] is None:
        return "none", ""
    return f"{row[what]:.4g}", f"{row[f'{what}_low']:.4g} to {row[f'{what}_high']:.4g}"


def _print_selection(report: Offline, selection: Selection) -> None:
    from rich.table import Table
    from rich.text import Text

    page = console()
    gain = selection.gain
    table = Table(title=Text(f"Candidates on {report.data}"), title_justify="left", caption_justify="left")
    headings = ("", "policy", "verdict", "discounted return", "95 % interval", "best with", "behind the first by")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for place, each in enumerate(selection.order, 1):
        behind = "" if place == 1 else f"{each.behind.estimate * gain:.4g} ({each.behind.low * gain:.4g} to "
        behind += "" if place == 1 else f"{each.behind.high * gain:.4g})"
        interval = f"{each.value.low * gain:.4g} to {each.value.high * gain:.4g}"
        table.add_row(
            str(place), Text(each.name), each.verdict, f"{each.value.estimate * gain:.4g}", interval,
            f"{each.best:.0%}", behind,
        )  # fmt: skip
    table.caption = f"γ = {report.settings.discount:g}, by {selection.estimator}; differences by common replicates"
    if selection.order:
        page.print(table)
    for name, reason in selection.refused:
        page.print(plain(f"Left out: {name}: {reason}"))
    if not selection.order:
        page.print("No candidate has an estimate that deserves trust: none is recommended.")
        return
    first = selection.order[0]
    page.print(
        plain(
            f"Choose {first.name}: best of {len(selection.order)} with probability {first.best:.0%}. Expected regret "
            f"{selection.regret * gain:.3g} of discounted return (95 %: at most {selection.regret_high * gain:.3g})."
        )
    )
    if first.verdict != "trusted":
        reasons = "; ".join(map(str, report.diagnoses[first.policy].reasons))
        page.print(plain(f"Its estimate is {first.verdict}: {reasons}."))
