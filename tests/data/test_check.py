"""What `sapp data check` suggests to do next."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from test_findings import walk

from sapp.algorithms.registry import preset
from sapp.cli.train import sweep
from sapp.data import load_vectors
from sapp.data.check import BATCH, _work, check, first_plan
from sapp.networks import MLP


def test_the_next_command_fits_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    data = walk()
    monkeypatch.setattr("pathlib.Path.exists", lambda path: False)
    for speed, sizes, minutes in ((1e12, "256,256", 1), (2e9, "64,64", 8)):
        monkeypatch.setattr("sapp.data.check._multiplications", lambda speed=speed: speed)
        plan = first_plan(data)
        assert f"--steps 2000 --hidden {sizes} --eval-every 0" in plan
        assert f"(about {minutes} minute{'s' if minutes > 1 else ''} on" in plan
    monkeypatch.setattr("sapp.data.check._multiplications", lambda: 1e8)  # a machine from a museum trains for less long
    assert "--steps 1000 --hidden 32,32" in first_plan(data)


def test_the_next_command_has_options_that_are_there() -> None:
    columns = {"obs": np.arange(40.0), "action": [0, 1] * 20, "reward": np.arange(40.0), "done": [0, 1] * 20}
    vectors, choices = walk(), load_vectors(columns)
    for data, name in ((vectors, "cql"), (choices, "discrete-cql")):
        assert preset(name, "").batch_size == BATCH[data.discrete]
        words = first_plan(data).split("  (")[0].split()
        given = dict(zip(words[::2], words[1::2], strict=True))
        changes = {key[2:]: value for key, value in given.items() if key not in ("--steps", "--eval-every")}
        assert list(sweep([name], changes)) == [name]
    assert int(given["--target-every"]) <= int(given["--steps"]) // 20


def test_check_names_a_learner_for_the_actions() -> None:
    found = check({"obs": np.arange(40.0), "action": [0, 1] * 20, "reward": np.arange(40.0), "done": [0, 1] * 20})
    assert found.algorithm == "discrete-cql"
    assert "rows: 40 read, 0 dropped, 40 kept" in found.ledger[0]


@pytest.mark.parametrize("discrete", [False, True])
def test_work_grows_with_the_weights_of_a_critic(discrete: bool) -> None:
    """Of one value, beside an action or for one action's features: biases are not multiplied."""
    columns = {"obs": np.arange(40.0), "action": [0, 1] * 20, "reward": np.arange(40.0), "done": [0, 1] * 20}
    data = load_vectors(columns) if discrete else walk()

    def weights(hidden: tuple[int, ...]) -> int:
        inputs = data.observation_size + data.action_size
        critic = jax.eval_shape(lambda key: MLP(key, inputs, hidden, 1), jax.random.PRNGKey(0))
        return sum(layer.weight.size for layer in critic.layers)

    wide, narrow = (64, 32), (5,)
    assert _work(data, wide) / _work(data, narrow) == pytest.approx(weights(wide) / weights(narrow))
