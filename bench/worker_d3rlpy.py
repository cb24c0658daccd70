"""d3rlpy's CQL through its public interface, in its own environment. ``step`` draws a batch and updates, as its ``fit``
does; ``update`` updates on one batch drawn before."""

from __future__ import annotations

import os
import sys

import d3rlpy
import torch
from worker import SIZES, arrays, open_answers, serve


def main(compile_graph: bool, device: str) -> None:
    answers = open_answers()
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    raw = arrays()
    dataset = d3rlpy.dataset.MDPDataset(
        raw["observation"][:-1], raw["action"], raw["reward"], raw["terminal"], raw["timeout"]
    )
    encoder = d3rlpy.models.VectorEncoderFactory(hidden_units=SIZES["hidden"])
    cql = d3rlpy.algos.CQLConfig(
        batch_size=SIZES["batch"], n_action_samples=SIZES["samples"], alpha_learning_rate=0.0, soft_q_backup=False,
        actor_encoder_factory=encoder, critic_encoder_factory=encoder, compile_graph=compile_graph,
    ).create(device=device)  # fmt: skip
    cql.build_with_dataset(dataset)
    fixed = dataset.sample_transition_batch(SIZES["batch"])

    def step(steps: int) -> None:
        for _ in range(steps):
            cql.update(dataset.sample_transition_batch(SIZES["batch"]))

    def update(steps: int) -> None:
        for _ in range(steps):
            cql.update(fixed)

    serve(
        {"step": step, "update": update},
        {
            "d3rlpy": d3rlpy.__version__, "torch": torch.__version__, "threads": torch.get_num_threads(),
            "compiled": bool(cql.compiled),
        },
        answers,
    )  # fmt: skip


if __name__ == "__main__":
    main(compile_graph="compile" in sys.argv, device="cuda:0" if "cuda" in sys.argv else "cpu")
