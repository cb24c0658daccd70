"""The demonstration: where knowing the state must help, exactly and learned, and the way of a policy into use."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sapp.cli.demo_problem import (
    ALPHAS,
    CASES,
    EVEN,
    UNEVEN,
    VARIANTS,
    Sizes,
    actions_of,
    algorithm,
    exact_regrets,
    learned_regrets,
    learning_worlds,
)  # fmt: skip
from sapp.core.comparisons import family_told
from sapp.core.errors import SappError
from sapp.core.statistics import Interval, mean, student

if TYPE_CHECKING:
    from rich.console import Console

    from sapp.algorithms import Algorithm
    from sapp.runs.run import Run
    from sapp.tabular.uneven_coverage import Floats, World

PROBLEM = (
    "CQL learns from logs and distrusts actions that are rare there; SA-CQL does so most in states that its policy "
    "visits more often than the logs do. When does that help?\n"
    "An episode begins with one decision at the entrance; the rest of it is spent in a hall. Half of a policy's "
    "discounted value is decided at the entrance. Where coverage is uneven that is one logged row in 25 (in the even "
    "case, one in two): too few to know the best action there, plenty in the hall."
)
READING = (
    "Regret in percent of a random policy's (lower is better); in brackets, 95 % intervals over problems; differences "
    "are paired by problem. Each method has the penalty strength that was best on other problems. 'shuffled' has "
    "SA-CQL's weights at the wrong states: what it gains or loses is not due to knowing the states."
)
SIZES = "demo.json"


@dataclass(frozen=True)
class Shown:
    """What a demonstration has found.

    Attributes:
        path: its folder: the run in ``run/``, demo.png, policy.onnx and the policy's card.
        run: of the networks.
        exact: regret [worlds] by case and variant, of the exact minimiser.
        learned: the same of the networks.
    """

    path: Path
    run: Run
    exact: Mapping[str, Mapping[str, Floats]]
    learned: Mapping[str, Mapping[str, Floats]]


def demo(
    out: str | Path | None = None,
    sizes: Sizes | None = None,
    *,
    progress: bool = True,
    console: Console | None = None,
) -> Shown:
    """Solve and learn the demonstration's problems, print tables, draw the figure, export a policy.

    Args:
        out: folder; by default ``runs/demo-<time>``. A demonstration that it holds goes on as it began, whatever
            ``sizes`` says, and is shown.
        sizes: how much is computed.
        progress: show a progress bar.
        console: where to print; by default stdout.
    """
    from rich.console import Console

    from sapp.cli.demo_figure import draw

    console = console or Console()
    began = time.perf_counter()
    folder, sizes, found = _begun(out, sizes or Sizes())
    _say(console, found or PROBLEM)
    exact = {case: exact_regrets(case, sizes.exact_worlds) for case in CASES}
    console.print(table("Solved exactly, with the true state ratio", exact))
    worlds = learning_worlds(sizes.worlds)
    run = _learn(folder, sizes, worlds, progress)
    learned = learned_regrets(run, worlds)
    console.print(table("Learned by networks, with DualDICE's ratio", learned))
    _say(console, READING)
    _say(console, "")
    _judge(run, worlds, console)
    _export(run, folder, console)
    try:
        _say(console, f"Figure: {draw(worlds[f'{UNEVEN}-0'][1], exact, learned, folder / 'demo.png')}")
    except SappError as error:  # matplotlib is an extra; what was computed is there all the same
        _say(console, f"No figure: {error}")
    _say(console, f"Run: {run.path}  ({time.perf_counter() - began:.0f} s)")
    _say(console, "Next, with logs of your own: sapp data check logs.csv. Without: sapp train td3bc hopper-medium")
    return Shown(folder, run, exact, learned)


def _begun(out: str | Path | None, sizes: Sizes) -> tuple[Path, Sizes, str]:
    """The folder, the sizes it began with, and what to say if it did; another folder's content is left alone."""
    from sapp.core.files import write_text
    from sapp.runs.folders import new_folder

    folder = Path(out) if out is not None else new_folder("demo")
    file = folder / SIZES
    if file.exists():
        try:
            kept = json.loads(file.read_text(encoding="utf-8"))
            sizes = Sizes(**kept | {"hidden": tuple(kept["hidden"])})
        except (OSError, ValueError, TypeError, KeyError):
            raise SappError(f"{file}: not the sizes of a demo; choose another --out") from None
        return (
            folder,
            sizes,
            f"Continuing the demo in {folder}, as it began: {sizes.worlds} problems, {sizes.steps:,} steps.",
        )
    own = f".{SIZES}."  # what a start that was killed left is cleared by the next that writes the sizes
    if folder.exists() and not (folder.is_dir() and all(each.name.startswith(own) for each in folder.iterdir())):
        raise SappError(f"{folder}: holds files, and they are not a demo's; choose another --out")
    folder.mkdir(parents=True, exist_ok=True)
    write_text(file, json.dumps(asdict(sizes)) + "\n")
    return folder, sizes, ""


def _learn(folder: Path, sizes: Sizes, worlds: Mapping[str, tuple[str, World]], progress: bool) -> Run:
    """The networks' run: trained, taken up again, or there already."""
    from sapp.core.errors import Interrupted
    from sapp.runs.folders import CONFIG
    from sapp.runs.phases import sa_protocol
    from sapp.training.train import resume, train

    path = folder / "run"
    try:
        if (path / CONFIG).exists():
            return resume(path, progress=progress)
        return train(
            {name: partial(_of_dataset, name, sizes, worlds) for name in VARIANTS},
            [replace(world.data, name=name) for name, (_, world) in worlds.items()],
            phases=sa_protocol(sizes.steps, max(1, sizes.steps // 3), max(1, sizes.steps // 3)),
            out=path,
            eval_every=0,
            checkpoint_every=max(1, sizes.steps // 3),
            log_every=max(1, sizes.steps // 3),
            progress=progress,
        )
    except Interrupted:
        raise Interrupted(f"interrupted; saved. Continue with: sapp demo --out {folder}") from None


def _of_dataset(variant: str, sizes: Sizes, worlds: Mapping[str, tuple[str, World]], dataset: str) -> Algorithm:
    """A variant with the strength for a dataset's case."""
    return algorithm(variant, ALPHAS[worlds[dataset][0]][variant], sizes.hidden)


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def table(title: str, regret: Mapping[str, Mapping[str, Floats]]) -> Any:
    """Regret of every variant in both cases, and its difference from CQL's."""
    from rich.table import Table

    out = Table(title=f"{title}: regret", title_justify="left")
    out.add_column("coverage:")
    for case in (UNEVEN, EVEN):
        out.add_column(case, justify="right", no_wrap=True)
        out.add_column("minus CQL", justify="right", no_wrap=True)
    for name in VARIANTS:
        cells = []
        for case in (UNEVEN, EVEN):
            own, cql = regret[case][name], regret[case]["CQL"]
            cells += [f"{own.mean():.1f} %", "" if name == "CQL" else _interval(student(own - cql).interval())]
        out.add_row(name, *cells)
    p = [student(of[name] - of["CQL"]).p for of in regret.values() for name in VARIANTS if name != "CQL"]
    out.caption, out.caption_justify = family_told(p), "left"
    return out


def _interval(found: Interval) -> str:
    return f"{found.estimate:+.1f} ({found.low:+.1f} to {found.high:+.1f})"


def _judge(run: Run, worlds: Mapping[str, tuple[str, World]], console: Console) -> None:
    """What the logs say that a policy is worth, beside the truth."""
    from sapp.ope.estimators import Settings
    from sapp.ope.offline import evaluate_offline
    from sapp.ope.targets import from_actor

    index = run.member_index(f"SA-CQL/{UNEVEN}-0/0")
    member, (_, world) = run.members[index], worlds[f"{UNEVEN}-0"]
    policy = from_actor(str(member), run.actors[index], discrete=True)
    found = evaluate_offline([policy], world.data, Settings(discount=CASES[UNEVEN].discount, exact=True))
    row = found.row(0)
    truth = float((world.occupancy * (world.reward * actions_of(run, member, world)).sum(1)).sum())
    own = mean(world.data.reward)
    asked = f"From the logs alone (sapp evaluate --offline): {member}"
    if row["value"] is None:
        answer = "no estimate deserves trust"
    else:
        answer = f"{row['value']:.3f} ({row['value_low']:.3f} to {row['value_high']:.3f}) per step, {row['verdict']}"
    _say(console, f"{asked}: {answer}. The truth: {truth:.3f}; the logs' own mean reward: {own:.3f}.")


def _export(run: Run, folder: Path, console: Console) -> None:
    """The same policy as an ONNX file with its card."""
    from sapp.export import export_policy

    try:
        card = export_policy(run, folder / "policy.onnx", member=f"SA-CQL/{UNEVEN}-0/0")
    except SappError as error:  # onnx is an extra
        _say(console, f"No ONNX file: {error}")
        return
    _say(
        console,
        f"Exported: {folder / 'policy.onnx'}, acts as the trained policy on {card['check']['inputs']:,} inputs; its "
        f"card: {folder / 'policy.md'}",
    )
