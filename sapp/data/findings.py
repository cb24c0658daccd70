"""Questions asked of a dataset before anything is trained on it: what was found, how sure that is, and what to do."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from sapp.data.dataset import Dataset
from sapp.data.finding import Finding, Sure
from sapp.data.ledger import Ledger
from sapp.data.repair import MANY_CODES, labels_advice, needs_scaling
from sapp.data.value_findings import bare_ends, codes_of_missing, names_alike, never_filled

FEW_EPISODES = 30
RARE_ACTION = 0.01
FEW_ROWS = 1_000
"""Rows from which on something can be learned of an action, however small their share."""
_SAMPLE = 200_000
"""Rows that the slower questions look at."""


def findings(data: Dataset) -> list[Finding]:
    """Everything there is to say, most serious questions first."""
    return [found for question in QUESTIONS for found in question(data)]


def _auto_reset(data: Dataset) -> Iterator[Finding]:
    """Loggers of vector environments write the next episode's start where the last state belongs."""
    ends = data.episode_ends[:-1]
    ends = ends[data.timeout[ends]]
    if len(ends) < 2 or _inferred_successors(data):
        return
    same = np.all(np.isclose(data.next_observation[ends], data.observation[ends + 1], rtol=1e-5, atol=1e-6), axis=1)
    still = np.all(np.isclose(data.observation[ends], data.observation[ends + 1]), axis=1)
    if np.mean(same & ~still) > 0.5:
        yield Finding(
            f"at {same.sum()} of {len(ends)} time-outs the next observation is the first of the next episode",
            Sure.LIKELY,
            "an environment that resets by itself was logged, and values would be carried from one episode into "
            "another; log the last observation itself, or leave next_observation out (--map ignore=NAME), so that "
            "these last steps are dropped",
        )  # fmt: skip


def _one_long_episode(data: Dataset) -> Iterator[Finding]:
    """Auto-reset without time-outs, or ends that nothing tells of, make one long episode."""
    if data.num_episodes > 1 or data.size < 1_000:
        return
    change = np.linalg.norm(np.diff(data.observation / np.maximum(data.observation_std, 1e-6), axis=0), axis=1)
    jumps = int(np.count_nonzero(change > 5 * np.median(change)))
    if jumps > 1:
        yield Finding(
            f"all {data.size:,} rows are one episode, in which observations jump {jumps} times", Sure.LIKELY,
            "ends of episodes are missing: name their column (--map episode=NAME, done=NAME or timeout=NAME)",
        )  # fmt: skip


def _hidden_resets(data: Dataset) -> Iterator[Finding]:
    """Time-outs that nothing tells of: within episodes observations jump, always after the same number of steps."""
    if data.size < 100 or _knows_time_outs(data):
        return
    inside = ~(data.terminal | data.timeout)
    after = np.concatenate([data.observation[1:], data.observation[-1:]])
    scale = np.maximum(data.observation_std, 1e-6)
    change = np.linalg.norm((after - data.observation) / scale, axis=1)
    far = inside & (change > 4 * np.median(change[inside])) if inside.any() else inside
    step = data.step + 1
    gaps = np.diff(np.flatnonzero(far))
    common = [value for counts in (step[far], gaps) for value, _ in Counter(counts.tolist()).most_common(10)]
    for limit in sorted({value for value in common if value > 1}):
        there = inside & (step % limit == 0)
        if there.sum() >= 4 and far[there].mean() >= 0.8 and np.median(change[there]) > 4 * np.median(change[inside]):
            yield Finding(
                f"observations jump within episodes whenever {limit} steps have passed, {int(far[there].sum())} times",
                Sure.LIKELY,
                f"these are time-outs that the log does not mark, and values would be carried from one episode into "
                f"another: give the limit (max_episode_steps = {limit}), or name a column that tells (--map "
                f"episode=NAME or timeout=NAME)",
            )  # fmt: skip
            return


def _flags(data: Dataset) -> Iterator[Finding]:
    """Ends that are marked the other way round, or a row late."""
    if data.size < 50 or _asked_to_end(data):
        return
    share = float(data.terminal.mean())
    if share > 0.5:
        yield Finding(
            f"the task ends in {share:.0%} of rows", Sure.LIKELY,
            "is the flag the other way round, 1 where the task goes on? If every row is an episode of its own, say so "
            "(one_row_episodes = true)",
        )  # fmt: skip
        return
    lengths = data.episode_lengths[data.terminal[data.episode_ends]]
    alone = int(np.count_nonzero(lengths == 1))
    late = alone >= 5 and alone > 0.8 * len(lengths) and np.median(data.episode_lengths[data.episode_lengths > 1]) > 3
    if not late and len(lengths) >= 5 and _inferred_successors(data):
        change = np.linalg.norm(np.diff(data.observation / np.maximum(data.observation_std, 1e-6), axis=0), axis=1)
        ends = np.flatnonzero(data.terminal[:-1])
        before = ends[(ends > 0) & (data.step[ends] > 0)] - 1
        usual = np.median(change)
        late = bool(len(before) and np.median(change[before]) > 4 * usual and np.median(change[ends]) < 2 * usual)
    if late:
        yield Finding(
            f"{len(lengths)} ends seem to be marked on the first row of the next episode", Sure.LIKELY,
            "the flag belongs on the last row: move it up by one row, or an episode's last step leads into the next",
        )  # fmt: skip


def _running_sums(data: Dataset) -> Iterator[Finding]:
    """Rewards that are the return so far."""
    inside = np.flatnonzero(~(data.terminal | data.timeout))[:_SAMPLE]
    if len(inside) < 100 or data.num_episodes < 3 or len(np.unique(data.reward[inside])) < 20:
        return
    rise = data.reward[inside + 1] - data.reward[inside]
    starts = np.abs(data.reward[data.episode_starts]).mean()
    ends = np.abs(data.reward[data.episode_ends]).mean()
    if max(np.mean(rise > 0), np.mean(rise < 0)) > 0.97 and ends > 3 * starts:
        yield Finding(
            f"rewards {'rise' if np.mean(rise > 0) > 0.5 else 'fall'} from row to row in every episode, from "
            f"{starts:.3g} to {ends:.3g} in size", Sure.POSSIBLE,
            "if they are the sum so far, log what each step adds",
        )  # fmt: skip


def _successors(data: Dataset) -> Iterator[Finding]:
    """Rows in the order of a buffer that was shuffled, or of several environments by turns."""
    if _inferred_successors(data) or data.size < 50 or data.terminal.mean() > 0.5:
        return
    if _found_by_successors(data) and np.median(data.episode_lengths) <= 2:
        yield Finding(
            f"{data.num_episodes:,} episodes for {data.size:,} rows: the next observation is hardly ever that of the "
            f"next row", Sure.LIKELY,
            "rows were shuffled, or several environments write by turns: returns, starts and all that rests on them "
            "(state weights, estimates) are not those of episodes; log rows in order, or name the columns that tell "
            "(--map episode=NAME, time=NAME)",
        )  # fmt: skip
        return
    inside = np.flatnonzero(~(data.terminal | data.timeout))[:_SAMPLE]
    if len(inside) < 20:
        return
    off = np.abs(data.observation[inside + 1] - data.next_observation[inside]) > 0.01 * data.observation_std + 1e-6
    share = float(off.any(axis=1).mean())
    if share > 0.02:
        yield Finding(
            f"in {share:.0%} of steps within episodes the next observation is not that of the next row",
            Sure.LIKELY if share > 0.2 else Sure.POSSIBLE,
            "rows are not in the order of time, steps are missing, or several write by turns: name the columns that "
            "tell (--map episode=NAME, time=NAME), as returns and starts of episodes are wrong otherwise",
        )  # fmt: skip


def _ends_at_one_length(data: Dataset) -> Iterator[Finding]:
    lengths = data.episode_lengths[data.terminal[data.episode_ends]]
    longest = int(data.episode_lengths.max())
    there = int(np.count_nonzero(lengths == longest))
    if longest < 10 or there < 5 or there < 0.2 * len(lengths) or _asked_to_end(data):
        return
    yield Finding(
        f"{there} of {len(lengths)} terminal episodes are exactly {longest} steps long, the longest there is",
        Sure.LIKELY if there >= 0.5 * len(lengths) else Sure.POSSIBLE,
        "if that is the step limit, these are time-outs, and taking them for ends teaches wrong values: give the limit "
        f"(max_episode_steps = {longest}) with the column named as done (--map done=NAME), or a time-out column",
    )


def _densities(data: Dataset) -> Iterator[Finding]:
    density = data.extras.get("log_prob")
    if density is None or data.discrete or len(density) < 10:
        return
    values = np.asarray(density, np.float64).reshape(len(density), -1)[:, 0]
    if np.all((values > 0) & (values <= 1)):
        yield Finding(
            "log_prob is between 0 and 1 in every row", Sure.LIKELY,
            "these look like probabilities or densities, not their logarithms: log them as they are "
            "(map them as probability where actions are discrete), or leave them out",
        )  # fmt: skip
        return
    if len(values) >= 100 and 0 < values.min() < 0.1 * np.median(values):
        yield Finding(
            f"log_prob is never below 0, and as near to it as {values.min():.2g}", Sure.POSSIBLE,
            "densities look like that, their logarithms rarely: if these are densities, log their logarithms",
        )  # fmt: skip
        return
    even = -np.log(data.action_high - data.action_low).sum()
    if np.ptp(values) == 0 and not np.isclose(values[0], even, atol=1e-3):
        yield Finding(
            f"log_prob is {values[0]:g} in every row", Sure.LIKELY,
            "only actions drawn evenly between their bounds have one density, and these bounds give another: leave it "
            "out, or give the bounds (action_low, action_high)",
        )  # fmt: skip


def _reward(data: Dataset) -> Iterator[Finding]:
    reward, last = data.reward, data.terminal | data.timeout
    if np.all(reward == reward[0]):
        same = f"the reward is {reward[0]:g} in every row"
        if reward[0] and data.terminal.any():
            yield Finding(same, Sure.CERTAIN, "what differs is how long episodes last: that is all there is to learn")
        else:
            yield Finding(
                same, Sure.CERTAIN,
                "nothing can be learned from it where no episode ends: name another reward column, or log episodes "
                "that do end",
            )  # fmt: skip
        return
    if data.size > data.num_episodes and np.all(reward[~last] == 0):
        yield Finding(
            "rewards come at the ends of episodes only", Sure.CERTAIN,
            "values must travel back through whole episodes, which needs more of them",
        )  # fmt: skip
    size = np.abs(reward)
    if data.size >= 1_000 and size.max() > 50 * max(float(np.quantile(size, 0.999)), 1e-12) and (size > 0).mean() > 0.5:
        yield Finding(
            f"a few rewards reach {size.max():.3g}, where 99.9 % are below {np.quantile(size, 0.999):.3g}", Sure.LIKELY,
            "a slip of the log, or a few rows that outweigh all others: look at them, and clip or repair them",
        )  # fmt: skip


def _leaks(data: Dataset) -> Iterator[Finding]:
    """Features that give away the reward of the same row."""
    rows = np.arange(0, data.size, max(1, data.size // _SAMPLE))
    reward = data.reward[rows].astype(np.float64)
    if len(rows) < 50 or np.ptp(reward) == 0:
        return
    reward = (reward - reward.mean()) / reward.std()
    for i in range(data.observation_size):
        feature = data.observation[rows, i].astype(np.float64)
        spread = feature.std()
        if spread <= 1e-9 * max(1.0, abs(feature.mean())):
            continue
        if abs(float(np.mean((feature - feature.mean()) / spread * reward))) > 0.9999:
            yield Finding(
                f"feature {i} is the reward of its own row, up to scale", Sure.LIKELY,
                "it is known only after the action: leave it out, or a policy will ask for what it cannot have",
            )  # fmt: skip


def _features(data: Dataset) -> Iterator[Finding]:
    yield from _constant(data)
    if data.observation_offset is None and (why := needs_scaling(data.observation)) is not None:
        yield Finding(
            f"features are far from unit size ({why})", Sure.CERTAIN,
            "set scale = 'standard' (--map scale=standard); policies still take them as logged",
        )  # fmt: skip
    if data.size >= 1_000:
        low, middle, high = np.quantile(data.observation[:: max(1, data.size // _SAMPLE)], (0.005, 0.5, 0.995), axis=0)
        width = np.maximum(high - low, 1e-9)
        far = np.maximum(data.observation.max(0) - middle, middle - data.observation.min(0))
        for i in np.flatnonzero((far > 50 * width) & (high > low))[:5]:
            yield Finding(
                f"feature {i} has outliers {far[i] / width[i]:.0f} times as far out as its central 99 % is wide",
                Sure.LIKELY, "a sensor's slip, or a code for missing values such as -999: repair or empty those cells",
            )  # fmt: skip


def _constant(data: Dataset) -> Iterator[Finding]:
    constant = np.flatnonzero(np.ptp(data.observation, axis=0) == 0)
    one_hot = is_one_hot(data.observation)
    if one_hot:  # states that end episodes are entered and never left
        constant = constant[np.ptp(data.next_observation[:, constant], axis=0) == 0]
    if not len(constant):
        return
    more = f" and {len(constant) - MANY_CODES} more" if len(constant) > MANY_CODES else ""
    which = ", ".join(map(str, constant[:MANY_CODES])) + more
    if one_hot:
        yield Finding(
            f"{len(constant)} of {data.observation_size} states are never visited ({which})", Sure.CERTAIN,
            "nothing is known of them, and what a policy does there is chance",
        )  # fmt: skip
        return
    yield Finding(
        f"feature {which} never changes in these logs", Sure.CERTAIN,
        "they tell nothing about it: leave it out, unless it can change where the policy is to act",
    )  # fmt: skip


def is_one_hot(observation: np.ndarray) -> bool:
    """Whether every row has a single 1 among zeros: a state by its number."""
    return bool(((observation == 0) | (observation == 1)).all() and (observation.sum(1) == 1).all())


def _actions(data: Dataset) -> Iterator[Finding]:
    if data.discrete:
        yield from _rare_actions(data)
        return
    whole = [i for i in range(data.action_size) if _is_whole(data.action[:, i])]
    if data.action_size > 1 and is_one_hot(data.action):
        yield Finding(
            f"every action is a single 1 among {data.action_size} zeros", Sure.LIKELY,
            "these are discrete actions: set action_kind = 'discrete' (--map action_kind=discrete)",
        )  # fmt: skip
    elif whole:
        yield Finding(
            f"action dimension {', '.join(map(str, whole))} holds few whole numbers", Sure.POSSIBLE,
            "if they are discrete actions, set action_kind = 'discrete' (--map action_kind=discrete)",
        )  # fmt: skip
    yield from _wide_bounds(data)
    edge = np.mean((data.action <= data.action_low) | (data.action >= data.action_high), axis=0)
    for i in np.flatnonzero(edge > 0.5):
        yield Finding(
            f"action dimension {i} lies at its bounds in {edge[i]:.0%} of rows", Sure.POSSIBLE,
            "are the bounds right? if not, give action_low and action_high",
        )  # fmt: skip


def _wide_bounds(data: Dataset) -> Iterator[Finding]:
    """Bounds that a few rows have set: nearly all actions are one and the same to a network."""
    for i in range(data.action_size):
        value = data.action[:, i]
        value = value[value != np.median(value)]  # most doses may be none at all
        if len(np.unique(value)) < 20:
            continue
        low, high = np.quantile(value, (0.06, 0.94))
        bounds = float(data.action_low[i]), float(data.action_high[i])
        if high - low < (bounds[1] - bounds[0]) / 50:
            yield Finding(
                f"action dimension {i} may go from {bounds[0]:g} to {bounds[1]:g}, but most of it lies within "
                f"{low:.3g} to {high:.3g}", Sure.LIKELY,
                "a few rows, a slip of the log or wrong bounds make these actions hard to tell apart: give action_low "
                "and action_high, and clip_actions = true for what lies beyond",
            )  # fmt: skip


def _copies(data: Dataset) -> Iterator[Finding]:
    rows = slice(0, _SAMPLE)
    action = data.action[:, None] if data.discrete else data.action
    table = np.column_stack([data.observation[rows], action[rows], data.reward[rows]])
    counts = np.unique(table, axis=0, return_counts=True)[1]
    copies = len(table) - len(counts)
    states = len(np.unique(data.observation[rows], axis=0))
    few = states < 0.2 * len(table)  # where there are few states, rows repeat by themselves
    if copies > 0.2 * len(table) and (not few or np.mean(counts == 1) < 0.02):
        yield Finding(
            f"{copies:,} of {len(table):,} rows repeat another row's state, action and reward", Sure.POSSIBLE,
            "the log was written twice, or there are few distinct states: check, as copies count as evidence",
        )  # fmt: skip


def _time_order(data: Dataset) -> Iterator[Finding]:
    """Rows that do not follow each other, where the next row is taken for the next state."""
    if not _inferred_successors(data) or data.size < 200 or data.num_episodes > data.size // 3:
        return
    inside = np.flatnonzero(~(data.terminal | data.timeout))[:_SAMPLE]
    other = np.random.default_rng(0).permutation(inside)
    scale = np.maximum(data.observation_std, 1e-9)
    step = np.abs(data.next_observation[inside] - data.observation[inside]) / scale
    apart = np.abs(data.observation[other] - data.observation[inside]) / scale
    moving = data.observation_std > 1e-9
    if moving.any() and np.all(step[:, moving].mean(0) > 0.95 * apart[:, moving].mean(0)):
        yield Finding(
            "a row is no nearer to the next one than to any other", Sure.POSSIBLE,
            "are rows in the order of time? name the column that orders them (--map time=NAME); if each row stands for "
            "itself, set one_row_episodes",
        )  # fmt: skip


def _few(data: Dataset) -> Iterator[Finding]:
    if data.num_episodes < FEW_EPISODES:
        yield Finding(
            f"only {data.num_episodes} episodes", Sure.CERTAIN,
            f"estimates of a policy's value will be doubtful below {FEW_EPISODES}: collect more",
        )  # fmt: skip


QUESTIONS = (
    _one_long_episode, _flags, _hidden_resets, _successors, _auto_reset, _ends_at_one_length, _densities, _leaks,
    _reward, _running_sums, bare_ends, _time_order, codes_of_missing, _features, _actions, names_alike, never_filled,
    _copies, _few,
)  # fmt: skip
"""Each takes a dataset and yields what it finds."""


def _inferred_successors(data: Dataset) -> bool:
    return any("the state after a step is the next row's observation" in line for line in Ledger.of(data).lines())


def _found_by_successors(data: Dataset) -> bool:
    return any("next_observation differing" in line for line in Ledger.of(data).lines())


def _knows_time_outs(data: Dataset) -> bool:
    """Whether the log itself tells where episodes stop unfinished."""
    ledger = Ledger.of(data)
    guessed = any("inferred from: nothing" in line for line in ledger.lines()) or _found_by_successors(data)
    return not (ledger.columns and guessed)


def _asked_to_end(data: Dataset) -> bool:
    columns = data.provenance.get("columns", {})
    return columns.get("last_step") == "end" or bool(columns.get("one_row_episodes"))


def _is_whole(values: np.ndarray) -> bool:
    return bool(np.all(values == np.round(values)) and len(np.unique(values)) <= 25 and np.ptp(values) > 0)


def _rare_actions(data: Dataset) -> Iterator[Finding]:
    assert data.num_actions is not None
    taken, counts = np.unique(data.action, return_counts=True)
    known = set(taken.tolist())
    missing = data.num_actions - len(known)
    # one by one, and only as many as are named: codes may be numbers in the millions
    never = itertools.islice((number for number in range(data.num_actions) if number not in known), MANY_CODES)
    if missing and data.action_labels is None:
        yield Finding(
            f"actions count from 0 to {data.num_actions - 1}, but {missing} of these {data.num_actions} are never "
            f"taken ({_named(data, never, missing)})", Sure.CERTAIN,
            f"if the numbers are codes, set {labels_advice(taken.tolist())} in a column mapping",
        )  # fmt: skip
    elif missing:
        yield Finding(
            f"never taken: {_named(data, never, missing)}", Sure.CERTAIN, "nothing can be learned of these actions"
        )
    rare = taken[counts < min(RARE_ACTION * data.size, FEW_ROWS)].tolist()
    if rare:
        yield Finding(
            f"taken in fewer than 1 % of steps: {_named(data, rare[:MANY_CODES], len(rare))}", Sure.CERTAIN,
            "little can be learned of these actions",
        )  # fmt: skip


def _named(data: Dataset, first: Iterable[int], count: int) -> str:
    """The first of some actions by name, and how many more there are."""
    names = [str(number) if data.action_labels is None else data.action_labels[number] for number in first]
    return ", ".join(names) + (f" and {count - len(names)} more" if count > len(names) else "")
