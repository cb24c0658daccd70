"""``sapp evaluate``: play a run's policies, or estimate from logs what they are worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sapp.cli.console import new_table, plain, print_json, print_table, say
from sapp.cli.options import Environment, Json, RunFolder, refuse_given
from sapp.cli.select import ActAs, Bags, ColumnsFile, Discount, FitHidden, FitSteps, Kept, OfflineData
from sapp.core.errors import SappError

if TYPE_CHECKING:
    from rich.table import Table

    from sapp.evaluation.online_evaluation import Evaluation
    from sapp.runs.members import MemberId
    from sapp.runs.run import Run


def add_command(app: typer.Typer) -> None:
    """Add ``evaluate`` to ``sapp``."""
    app.command(
        short_help="Play a run's policies, or estimate their value from logs.",
        epilog="Example: sapp evaluate runs/first --episodes 100",
        help="Play the newest checkpoint of a run's members, all at once, and print returns and normalised scores; or, "
        "with --offline, estimate from logs alone what they are worth (exit code 3 where no estimate deserves trust).",
    )(evaluate)


_PLAYED = ("episodes", "environment", "physics", "max_episode_steps", "video")
_OFFLINE = ("fit_steps", "bags", "fit_hidden", "act", "checkpoints")


def evaluate(
    context: typer.Context,
    path: RunFolder,
    episodes: Annotated[int, typer.Option("--episodes", help="Episodes per member.")] = 10,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the start states.")] = 0,
    member: Annotated[
        list[str] | None, typer.Option("--member", help="Only this one, such as cql/hopper-medium-v2/0; repeatable.")
    ] = None,
    environment: Environment = None,
    physics: Annotated[
        str | None, typer.Option("--physics", help="d4rl or v4, for hopper, halfcheetah and walker2d.")
    ] = None,
    max_episode_steps: Annotated[
        int | None, typer.Option("--max-episode-steps", help="Cut episodes there [the environment's own limit].")
    ] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Estimate from logs; RUN may be a policy file.")] = False,
    data: OfflineData = None,
    columns: ColumnsFile = None,
    discount: Discount = None,
    fit_steps: FitSteps = 20_000,
    bags: Bags = 8,
    fit_hidden: FitHidden = "256,256",
    act: ActAs = "mode",
    checkpoints: Kept = "last",
    video: Annotated[
        bool, typer.Option("--video", help="Also write an animated picture of one episode per member: RUN/videos/.")
    ] = False,
    json: Json = False,
) -> None:
    """``sapp.evaluation.online_evaluation.play(run, ...)``, or ``sapp.ope.offline.evaluate_offline(...)``."""
    if offline:
        refuse_given(context, _PLAYED, "says how policies are played, and --offline plays none")
        from sapp.cli.select import evaluate_offline

        code = evaluate_offline(
            path, data=data, columns=columns, members=member, discount=discount, steps=fit_steps, bags=bags,
            hidden=fit_hidden, act=act, checkpoints=checkpoints, seed=seed, json=json,
        )  # fmt: skip
        raise typer.Exit(code)
    if data is not None or columns or discount is not None:
        raise SappError("--data, --columns and --discount are for estimates from logs; add --offline")
    refuse_given(context, _OFFLINE, "is for estimates from logs, which need --offline")
    from sapp.evaluation.online_evaluation import play
    from sapp.runs.run import Run

    run = Run(path)
    if video:
        from sapp.evaluation.video import record

        for file in record(run, member, seed=seed, environment=environment, physics=physics,
                           max_episode_steps=max_episode_steps):  # fmt: skip
            say(f"Video: {file}", error=True)
    found = play(
        run, episodes=episodes, seed=seed, members=member, environment=environment, physics=physics,
        max_episode_steps=max_episode_steps,
    )  # fmt: skip
    rows = [_measured(str(run.members[one.member]), one) for one in found]
    step = found[0].step  # the run may be training, and have a newer checkpoint by now
    if json:
        print_json({"run": str(path), "step": step, "seed": seed, "members": rows})
    else:
        print_table(_score_table(f"{path}, step {step:,}", rows))


def print_last_evaluation(run: Run) -> None:
    """Say where the results are, and the scores of the last evaluation."""
    from sapp.runs.members import MemberId

    last = [row for row in run.evaluations() if int(row["step"]) == run.total_steps]
    if last:
        rows = [
            {
                "member": str(MemberId.of(row)),
                "return": float(row["return_mean"]),
                "score": float(row["score_mean"]) if row["score_mean"] else None,
                "length": float(row["length_mean"]),
            }
            | _intervals([float(value) for value in row["returns"].split(";")], run, MemberId.of(row))
            for row in last
        ]
        print_table(_score_table(f"Last evaluation, step {run.total_steps:,}", rows))
        for found in run.final_and_best():
            if run.plan.problems[run.plan.members[run.member_index(found["member"])].dataset].frame is not None:
                say(
                    f"{found['member']}: final {found['final']:.1f}, best {found['best']:.1f} at {found['best_step']:,}"
                )
    say(f"Run: {run.path}")
    played = all(problem.environment is not None for problem in run.plan.problems)
    say(f"Next: sapp evaluate {run.path} {'--episodes 100' if played else '--offline'}; sapp report {run.path}")


def _intervals(returns: Sequence[float], run: Run, member: MemberId) -> dict[str, Any]:
    import numpy as np

    problem = run.plan.problems[run.plan.members[run.member_index(member)].dataset]
    values = np.asarray(returns)
    scores = problem.scores(values)
    return _bounds("return", values) | ({} if scores is None else _bounds("score", scores))


def _bounds(what: str, values: Any) -> dict[str, float | None]:
    from sapp.core.statistics import student

    interval = student(values).interval()
    low, high = (interval.low, interval.high) if interval.known else (None, None)
    return {f"{what}_low": low, f"{what}_high": high}


def _measured(name: str, one: Evaluation) -> dict[str, Any]:
    """One member's evaluation as plain data; intervals (95 %) are over its episodes; a single one has none."""
    row: dict[str, Any] = {"member": name, "return": float(one.returns.mean()), **_bounds("return", one.returns)}
    row["score"] = None if one.scores is None else float(one.scores.mean())
    if one.scores is not None:
        row |= _bounds("score", one.scores)
    row["length"] = float(one.lengths.mean())
    return row | {"returns": one.returns.tolist(), "lengths": one.lengths.tolist()}


def _score_table(title: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    scored = any(row.get("score") is not None for row in rows)
    score = ("score", "95 % interval") if scored else ()
    table = new_table("member", "return", "95 % interval", *score, "length", title=title)
    table.caption = "intervals are over episodes (Student's)"
    table.caption += "; score: 0 random, 100 expert" if scored else ""
    for row in rows:
        cells = _cells(row, "score") if scored else ()
        table.add_row(plain(row["member"]), *_cells(row, "return"), *cells, f"{row['length']:.0f}")
    return table


def _cells(row: Mapping[str, Any], what: str) -> tuple[str, str]:
    if row.get(what) is None:
        return "", ""
    low, high = row[f"{what}_low"], row[f"{what}_high"]
    return f"{row[what]:.1f}", "" if low is None else f"{low:.1f} to {high:.1f}"
