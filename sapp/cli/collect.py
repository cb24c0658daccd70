"""``sapp collect``: policies and true replay buffers of your own environments; one call into ``sapp.collect``."""

from __future__ import annotations

from collections.abc import Sequence
from json import loads as load_json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sapp.cli.console import console, say
from sapp.cli.options import OPEN, refuse_given, split_options, whole_number
from sapp.core.errors import SappError
from sapp.core.seeds import parse_seeds

if TYPE_CHECKING:
    from sapp.collect.online_dqn import DQNRun

Wanted = tuple[str, int, Path | None]
"""An environment, a seed and the folder of its run."""

_COLLECT = """Train SAC online and keep what offline learning needs: policy snapshots and the true replay buffer.

ENV is hopper, halfcheetah or walker2d (with D4RL's physics), point, or any Gymnasium id with real-valued observations
and actions; several train at once, as one compiled population, with all seeds of each.

The run folder holds snapshots/ (policies spread over training, denser early), buffers/ (every step that was taken),
evaluations.csv (returns of each snapshot, stochastic and deterministic), metrics.csv, and datasets/: the replay buffer
of each member as a file that 'sapp train' and 'sapp data show' read.

SAC's hyper-parameters are options: --critic-lr 1e-3 --hidden 64,64 --batch-size 128.

With --algorithm dqn, ENV is an Atari game such as ALE/Pong-v5 (or catch), and the folder holds replay_logs/ (everything
that was played, in DQN-Replay's layout), the final network and metrics.csv. DQN's hyper-parameters are options, too:
--lr 2.5e-4 --optimiser rmsprop.

With --policy nothing is learned: a given policy plays (uniform, an npz file, or the folder of a training run; for
images also that of an online DQN), for equally many steps at each --epsilon. Games are logged in DQN-Replay's layout,
everything else goes into data.npz, or into a Minari dataset with --minari.

\b
Examples:
  sapp collect Pendulum-v1 --steps 10_000 --hidden 64,64 --out runs/pendulum
  sapp collect hopper --steps 1_000_000 --seeds 3
  sapp collect ALE/Pong-v5 --algorithm dqn --steps 1_000_000
  sapp collect ALE/Pong-v5 --policy runs/dqn-pong --epsilon 0.01,0.1,0.3,1 --steps 500_000
  sapp collect CartPole-v1 --policy uniform --steps 20_000 --minari cartpole/random-v0
  sapp collect --resume runs/pendulum
"""


Words = Annotated[list[str] | None, typer.Argument(metavar="ENV...", show_default=False)]
Algorithm = Annotated[str, typer.Option("--algorithm", help="sac, or dqn for images.")]
Steps = Annotated[str, typer.Option("--steps", help="Environment steps per seed.")]
Seeds = Annotated[str, typer.Option("--seeds", help="How many (0, 1, ...), or which: 3,7,11.")]
RandomSteps = Annotated[
    str | None, typer.Option("--random-steps", help="Uniform actions at the start [sac: 5_000, dqn: 20_000].")
]
Decay = Annotated[
    str, typer.Option("--epsilon-decay", help="dqn: steps over which random actions fall from 1 to 0.01.")
]
Policy = Annotated[
    Path | None, typer.Option("--policy", help="Play this policy instead: uniform, a file, or a run's folder.")
]
Epsilon = Annotated[
    str | None,
    typer.Option("--epsilon", help="With --policy: chance of a random action [images: 0.01]; several share the steps."),
]
MinariId = Annotated[str | None, typer.Option("--minari", help="With --policy: write a Minari dataset of this id.")]
Temperature = Annotated[
    float, typer.Option("--temperature", help="With --policy: of a file's softmax; lower is more decided.")
]
Capacity = Annotated[str, typer.Option("--capacity", help="dqn: steps in the replay buffer.")]
UpdatePeriod = Annotated[int, typer.Option("--update-period", help="dqn: steps per update.")]
Snapshots = Annotated[int, typer.Option("--snapshots", help="Policies to keep per seed.")]
Rows = Annotated[
    int | None, typer.Option("--rows", help="Parallel environments per seed [sac: 16, dqn: 64].")
]
Chunk = Annotated[
    int, typer.Option("--chunk", help="Steps, and as many updates, between changes of the acting policy.")
]
Episodes = Annotated[int, typer.Option("--eval-episodes", help="Episodes per snapshot (0 = off).")]
Record = Annotated[
    str | None, typer.Option("--record", help="Also record this many transitions with each seed's best snapshot.")
]
StepLimit = Annotated[int | None, typer.Option("--max-episode-steps", help="Step limit, for environments without one.")]
TimeLimit = Annotated[
    float | None, typer.Option("--time-limit", help="Save and stop after this many seconds; --resume continues.")
]
Threads = Annotated[int | None, typer.Option("--threads", help="Simulator threads [cores - 1].")]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="Run folder; default runs/sac-ENV-TIME.")]
Resume = Annotated[Path | None, typer.Option("--resume", help="Continue this run instead.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, no table at the end.")]


def add_command(app: typer.Typer) -> None:
    """Add ``collect`` to ``sapp``."""
    app.command(
        help=_COLLECT, short_help="Make data: learn online, or play a given policy.", context_settings=OPEN,
        options_metavar="[OPTIONS] [--HYPER-PARAMETER VALUE]...",
    )(collect)  # fmt: skip


_GIVEN, _DQN = ("epsilon", "temperature"), ("decay", "capacity", "update_period")
_SAC = ("snapshots", "chunk", "record")
_PLANNED = ("steps", "seeds", "random_steps", *_DQN, "snapshots", "rows", "chunk", "limit", "out")


def _check_options(context: typer.Context, given: bool, resumed: bool, dqn: bool) -> None:
    """Refuse options that what is asked for has no use for."""
    if given:
        refuse_given(context, (*_DQN, *_SAC, "algorithm", "random_steps", "eval_episodes", "time_limit"),
                     "is for learning, and --policy learns nothing")  # fmt: skip
        return
    refuse_given(context, _GIVEN, "is for --policy")
    if resumed:
        refuse_given(context, _PLANNED, "was settled when the run began, and --resume continues it")
    elif dqn:
        refuse_given(context, (*_SAC, "limit"), "is for --algorithm sac")
    else:
        refuse_given(context, _DQN, "is for --algorithm dqn")


def collect(
    context: typer.Context,
    words: Words = None,
    algorithm: Algorithm = "sac",
    steps: Steps = "1_000_000",
    seeds: Seeds = "1",
    random_steps: RandomSteps = None,
    decay: Decay = "250_000",
    policy: Policy = None,
    epsilon: Epsilon = None,
    minari: MinariId = None,
    temperature: Temperature = 1.0,
    capacity: Capacity = "1_000_000",
    update_period: UpdatePeriod = 4,
    snapshots: Snapshots = 20,
    rows: Rows = None,
    chunk: Chunk = 256,
    eval_episodes: Episodes = 10,
    record: Record = None,
    limit: StepLimit = None,
    time_limit: TimeLimit = None,
    threads: Threads = None,
    out: Out = None,
    resume: Resume = None,
    quiet: Quiet = False,
) -> None:
    """``sapp.collect.train(environments, ...)``, then ``evaluate_snapshots`` and ``save_datasets``."""
    from sapp.data.environment_names import typed_environment

    named, changes = split_options(words or [])
    environments = [typed_environment(name) for name in named]
    _check(environments, changes, algorithm, policy, minari, resume)
    _check_options(context, policy is not None, resume is not None, algorithm == "dqn")
    recorded = None if record is None else whole_number("--record", record)
    running: dict[str, Any] = {"threads": threads, "time_limit": time_limit, "progress": not quiet}
    if resume is not None:
        if _is_dqn(resume):
            _resume_dqn(resume, running)
        else:
            _resume_sac(resume, running, eval_episodes, recorded)
        return
    count = whole_number("--steps", steps)
    if policy is not None:
        given: dict[str, Any] = {"steps": count, "rows": rows or 64, "epsilon": _chances(epsilon)}
        of_images = {"temperature": temperature, "threads": threads}
        _play(_runs(environments, parse_seeds(seeds), out), policy, given, of_images, limit, minari, quiet)
    elif algorithm == "dqn":
        from sapp.collect.online_dqn import Exploration

        schedule = Exploration(
            whole_number("--random-steps", random_steps or "20_000"), whole_number("--epsilon-decay", decay)
        )
        options = running | {
            "steps": count, "rows": rows or 64, "update_period": update_period, "exploration": schedule,
            "capacity": whole_number("--capacity", capacity),
        }  # fmt: skip
        _collect_dqn(_runs(environments, parse_seeds(seeds), out), changes, options, eval_episodes, quiet)
    else:
        options = running | {
            "seeds": parse_seeds(seeds), "steps": count, "rows": rows or 16, "chunk": chunk, "snapshots": snapshots,
            "random_steps": whole_number("--random-steps", random_steps or "5_000"), "max_episode_steps": limit,
            "out": out,
        }  # fmt: skip
        _collect_sac(environments, changes, options, eval_episodes, recorded)


def _check(
    environments: Sequence[str],
    changes: dict[str, Any],
    algorithm: str,
    policy: Path | None,
    minari: str | None,
    resume: Path | None,
) -> None:
    """Refuse options that contradict each other, before anything is made."""
    from sapp.envs import is_frames

    if resume is None and not environments:
        raise SappError("collect needs an environment, as in: sapp collect hopper --steps 100_000")
    if resume is not None and (environments or changes):
        raise SappError("--resume continues a run as it was planned; leave environments and hyper-parameters out")
    if policy is not None and (resume is not None or changes):
        raise SappError("--policy learns nothing: leave --resume and hyper-parameters out")
    if minari is not None and policy is None:
        raise SappError("--minari is for what a given policy plays: add --policy, such as --policy uniform")
    if algorithm not in ("sac", "dqn"):
        raise SappError(f"--algorithm {algorithm!r} is unknown: use sac, or dqn for images")
    images = [name for name in environments if is_frames(name)]
    if images and minari is not None:
        raise SappError("--minari is for environments whose observations are vectors")
    if images and policy is None and algorithm == "sac":
        raise SappError(f"{images[0]} has images for observations and discrete actions: add --algorithm dqn")


def _runs(environments: Sequence[str], seeds: int | Sequence[int], out: Path | None) -> list[Wanted]:
    """Game by game and seed by seed; where there are several, each has a folder of its own in ``out``."""
    numbers = range(seeds) if isinstance(seeds, int) else seeds
    several = len(environments) * len(numbers) > 1
    return [
        (name, seed, out / f"{name.replace('/', '-')}-{seed}" if out is not None and several else out)
        for name in environments
        for seed in numbers
    ]


def _play(
    wanted: Sequence[Wanted],
    policy: Path,
    options: dict[str, Any],
    of_images: dict[str, Any],
    limit: int | None,
    minari: str | None,
    quiet: bool,
) -> None:
    """A given policy in each environment and seed: games into their own layout, all else into a file or Minari."""
    from sapp.envs import is_frames

    if any(is_frames(environment) for environment, *_ in wanted):
        _play_given(wanted, policy, options | of_images, quiet)
    else:
        _record_given(wanted, policy, options | {"max_episode_steps": limit}, minari, quiet)


def _collect_sac(
    environments: Sequence[str], changes: dict[str, Any], options: dict[str, Any], episodes: int, recorded: int | None
) -> None:
    """``sapp.collect.train(environments, ...)``, and what a finished run gets."""
    from sapp.algorithms.config import override
    from sapp.algorithms.sac import SAC
    from sapp.collect import online_training as online

    run = online.train(environments, algorithm=override(SAC(), changes), **options)
    _finish_sac(run, episodes, recorded, quiet=not options["progress"])


def _resume_sac(folder: Path, running: dict[str, Any], episodes: int, recorded: int | None) -> None:
    """``sapp.collect.online_training.resume(folder)``, and what a finished run gets."""
    from sapp.collect import online_training as online

    _finish_sac(online.resume(folder, **running), episodes, recorded, quiet=not running["progress"])


def _finish_sac(run: Any, episodes: int, recorded: int | None, *, quiet: bool) -> None:
    """Evaluate the snapshots and write the datasets; of a run that was stopped, say how to go on."""
    from sapp.collect.snapshot_evaluation import evaluate_snapshots

    if run.step < run.plan.steps:
        say(
            f"Run: {run.path}, at step {run.step:,} of {run.plan.steps:,}; "
            f"continue with: sapp collect --resume {run.path}"
        )
        return
    found = evaluate_snapshots(run, episodes=episodes) if episodes else []
    files = run.save_datasets(recorded)
    if not quiet:
        if found:
            _print(run, found)
        for file in files:
            say(f"Data: {file}")
    say(f"Run: {run.path}")


def _resume_dqn(folder: Path, running: dict[str, Any]) -> None:
    """``sapp.collect.online_dqn.resume(folder)``."""
    from sapp.collect import online_dqn

    _print_dqn(online_dqn.resume(folder, **running), 0)


def _collect_dqn(
    wanted: Sequence[Wanted], changes: dict[str, Any], options: dict[str, Any], episodes: int, quiet: bool
) -> None:
    """``sapp.collect.online_dqn.train(environment, ...)`` for each environment and seed."""
    from sapp.algorithms.config import override
    from sapp.collect import online_dqn as dqn

    algorithm = override(dqn.dopamine_dqn(), changes)
    for environment, seed, folder in wanted:
        run = dqn.train(environment, algorithm=algorithm, seed=seed, out=folder, **options)
        _print_dqn(run, 0 if quiet else episodes)


def _is_dqn(folder: Path) -> bool:
    """Whether a folder's config.json says that it is an online DQN's."""
    try:
        content = load_json((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False  # whoever opens it next says so
    return isinstance(content, dict) and content.get("kind") == "online dqn"


def _print_dqn(run: DQNRun, episodes: int) -> None:
    """What there is now, and how to go on where it was stopped."""
    if not run.finished:
        say(f"Run: {run.path}, at step {run.steps:,} of {run.config['steps']:,}; its log so far: {run.log}")
        say(f"Go on with: sapp collect --resume {run.path}")
        return
    if episodes:
        found = run.play(episodes).returns
        say(f"Return of the last network: {found.mean():.1f} over {episodes} episodes, epsilon 0.001")
    say(f"Data: {run.log}")
    say(f"Run: {run.path}")


def _play_given(wanted: Sequence[Wanted], policy: Path, options: dict[str, Any], quiet: bool) -> None:
    """``sapp.collect.given.log_given(environment, policy, ...)`` for each environment and seed."""
    from sapp.collect.given import log_given
    from sapp.envs import is_frames
    from sapp.runs.progress import Silent, Terminal

    if other := [environment for environment, *_ in wanted if not is_frames(environment)]:
        raise SappError(f"{other[0]} has no frames and {wanted[0][0]} may: record them one by one")
    options["epsilon"] = 0.01 if options["epsilon"] is None else options["epsilon"]
    steps = options["steps"]
    for environment, seed, folder in wanted:
        with Silent() if quiet else Terminal(steps, 1) as view:

            def show(step: int, view: Any = view) -> None:
                view.update(min(step, steps), "playing")

            log = log_given(environment, policy, seed=seed, out=folder, progress=show, **options)
        say(f"Data: {log}")


def _record_given(
    wanted: Sequence[Wanted], policy: Path, options: dict[str, Any], minari: str | None, quiet: bool
) -> None:
    """``sapp.collect.given_vectors.record(environment, policy, ...)`` per environment and seed, to a file or Minari."""
    from sapp.collect.given_vectors import record
    from sapp.collect.minari_export import check_identity, save_minari
    from sapp.data import save_npz
    from sapp.data.loaders.arrays import check_target
    from sapp.runs.folders import new_folder

    if minari is not None and len(wanted) > 1:
        raise SappError("--minari names one dataset: give one environment and one seed")
    if minari is not None:
        check_identity(minari)
    options["epsilon"] = options["epsilon"] or 0.0
    for _, _, folder in wanted:
        if folder is not None:
            check_target(folder / "data.npz", forcible=False)
    for environment, seed, folder in wanted:
        data = record(environment, policy, seed=seed, name=f"{environment}-{policy.name}", **options)
        if minari is not None:
            say(f"Data: {save_minari(data, minari)}")
        else:
            out = folder if folder is not None else new_folder(f"given-{environment.replace('/', '-')}")
            out.mkdir(parents=True, exist_ok=True)
            say(f"Data: {save_npz(data, out / 'data.npz')}")
        if not quiet:
            mean = data.episode_returns.mean()
            say(f"{data.size:,} transitions, {data.num_episodes:,} episodes, mean return {mean:.1f}")


def _chances(text: str | None) -> list[float] | float | None:
    if text is None:
        return None
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        raise SappError(f"--epsilon {text!r}: give a chance such as 0.1, or several: 0.01,0.1,1") from None
    return found if len(found) > 1 else found[0]


def _print(run: Any, found: list[dict[str, Any]]) -> None:
    """The last and the best snapshot of each member."""
    from rich.table import Table

    score = all("stochastic_score" in row for row in found)
    table = Table(title="Returns of snapshots", title_justify="left", caption_justify="left")
    table.caption = "best: by stochastic actions, chosen by these very episodes, so a little flattered"
    for heading in ("member", "snapshot", "step", "stochastic", "deterministic", *(("score",) if score else ())):
        table.add_column(heading, justify="left" if heading in ("member", "snapshot") else "right")
    for name in run.plan.names:
        rows = [row for row in found if row["member"] == name]
        best = max(rows, key=lambda row: row["stochastic_mean"])
        for kind, row in (("best", best), ("last", rows[-1])):
            cells = [f"{row['step']:,}", f"{row['stochastic_mean']:.1f}", f"{row['deterministic_mean']:.1f}"]
            table.add_row(name, kind, *cells, *((f"{row['stochastic_score']:.1f}",) if score else ()))
    console().print(table)
