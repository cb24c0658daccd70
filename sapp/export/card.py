"""The card of an exported policy: what it is, what it was trained on, what it is worth and what it is not."""

from __future__ import annotations

from typing import Any

from sapp.data.ledger import Ledger
from sapp.runs.problem import Problem

LIMITS = (
    "It was learned from logs alone. Where observations leave the range of the logs, its actions are guesses.",
    "It repeats what is in the logs: if they omit what people acted on, it cannot know it either.",
    "An estimate of its value from the logs it was trained on is optimistic; one from logs kept aside is not.",
)


def card_of(problem: Problem, facts: dict[str, Any], check: dict[str, Any], file: str) -> dict[str, Any]:
    """The card as plain data."""
    limits = list(LIMITS)
    offline = facts.get("offline")
    if offline is None:
        limits.insert(
            0, "No off-policy estimate of its value was made: run sapp evaluate RUN --offline before exporting."
        )
    elif offline["verdict"] != "trusted":
        limits.insert(0, f"Its estimate is {offline['verdict']}: {_reasons(offline)}.")
    return {
        "file": file,
        "policy": {key: value for key, value in facts.items() if key not in ("offline", "online")},
        "data": {
            "name": problem.name,
            "fingerprint": problem.fingerprint,
            "transitions": problem.transitions,
            "episodes": problem.episodes,
            "ledger": problem.ledger,
        },
        "input": {
            "name": "observation",
            "type": "float32" if problem.frame is None else "uint8",
            "shape": ["batch", *(problem.frame or [problem.observation_size])],
            "mask_at": problem.mask_at,
        },
        "output": {
            "name": "action",
            "type": "int64" if problem.discrete else "float32",
            "shape": ["batch"] if problem.discrete else ["batch", problem.action_size],
            "low": problem.action_low,
            "high": problem.action_high,
            "labels": problem.action_labels,
        },
        "preprocessing": {
            "observation_offset": problem.observation_offset,
            "observation_scale": problem.observation_scale,
        },
        "value": offline,
        "played": facts.get("online"),
        "check": check,
        "limits": limits,
    }


def _reasons(offline: dict[str, Any]) -> str:
    """What speaks against an estimate, in one line."""
    return "; ".join(each["what"] for each in offline["diagnosis"]["reasons"])


def is_card_data(content: bytes) -> bool:
    """Whether a file's beginning is that of a card as JSON."""
    return content.startswith(b'{\n  "file": ') and b'\n  "policy": {' in content


def is_card(content: bytes) -> bool:
    """Whether a file's beginning is that of a card as a page."""
    return content.startswith(b"# ") and b"\n\nPolicy file: `" in content


def markdown(card: dict[str, Any]) -> str:
    """The card as a page."""
    policy, data, output, entering = card["policy"], card["data"], card["output"], card["input"]
    shape = ", ".join(str(size) for size in entering["shape"])
    lines = [f"# {policy['policy']}", "", f"Policy file: `{card['file']}` (ONNX).", "", "## How to run it", ""]
    lines += [
        "```python",
        "import numpy as np, onnxruntime",
        f'session = onnxruntime.InferenceSession("{card["file"]}")',
        f'action = session.run(None, {{"observation": observation}})[0]  # {entering["type"]} [{shape}]',
        "```",
        "",
    ]
    if output["type"] == "int64":
        names = output["labels"] or [str(i) for i in range(int(output["high"][0]) + 1)]
        lines += ["The action is a number:", ""]
        lines += [f"- {number}: {name}" for number, name in enumerate(names)]
    else:
        bounds = ", ".join(f"{low:g} to {high:g}" for low, high in zip(output["low"], output["high"], strict=True))
        lines += [f"The action is in the units of the logs, within {bounds}."]
    if card["preprocessing"]["observation_offset"] is not None:
        lines += ["", "Observations enter as they are logged; scaling is inside the file."]
    if (at := entering["mask_at"]) is not None:
        last = at + int(output["high"][0])
        lines += ["", f"Values {at} to {last} of an observation are 0 or 1 for each action: whether it is possible."]
    lines += ["", "## What it is worth", ""]
    value = card["value"]
    if value is None:
        lines += ["Not estimated."]
    elif value["value"] is None:
        lines += [f"No estimate: {_reasons(value)}."]
    else:
        lines += [
            f"Discounted return {value['discounted_return']:.4g}, 95 % interval {value['discounted_return_low']:.4g} "
            f"to {value['discounted_return_high']:.4g} (γ = {value['discount']:g}; {value['verdict']}, by "
            f"{value['estimator']}, from {value['data']}).",
        ]
    if card["played"] is not None:
        lines += ["", f"Played: mean return {card['played']['return_mean']:.4g} at step {card['played']['step']:,}."]
    lines += ["", "## What it was trained on", ""]
    if data["transitions"]:
        lines += [f"{data['name']}: {data['transitions']:,} steps, {data['episodes']:,} episodes.", ""]
    if data["fingerprint"]:
        lines += [f"Fingerprint of the data: `{data['fingerprint']}`"]
    if data["ledger"] is not None:
        lines += ["", "What became of the logs on loading:", ""]
        lines += [f"- {line}" for line in Ledger.from_json(data["ledger"]).text()]
    if "algorithm" in policy:
        settings = {k: v for k, v in policy["algorithm"].items() if not isinstance(v, dict)}
        lines += [
            "",
            "## How it was trained",
            "",
            f"Step {policy['step']:,} of {policy['steps_in_all']:,}, seed {policy['seed']}.",
        ]
        lines += ["", "| setting | value |", "|---|---|"] + [f"| {key} | {value} |" for key, value in settings.items()]
    lines += ["", "## Known limits", ""] + [f"- {limit}" for limit in card["limits"]]
    check = card["check"]
    lines += [
        "",
        "## Check",
        "",
        f"Run by onnxruntime {check['onnxruntime']} on {check['inputs']:,} random inputs: largest difference to the "
        f"policy that was trained {check['largest_difference']:.1e}.",
        "",
    ]
    return "\n".join(lines)
