"""d3rlpy's algorithms through its public interface, at the sizes of our presets for halfcheetah-medium."""

from __future__ import annotations

import os
import sys

import d3rlpy
import torch
from worker import arrays, open_answers, serve


def config(name: str) -> object:
    def layers(*sizes: int) -> object:
        return d3rlpy.models.VectorEncoderFactory(hidden_units=list(sizes))

    small, large, wide = layers(256, 256), layers(256, 256, 256), layers(750, 750)
    norm = d3rlpy.models.VectorEncoderFactory(hidden_units=[256, 256, 256], use_layer_norm=True)
    algos = d3rlpy.algos
    both = {"actor_encoder_factory": small, "critic_encoder_factory": small, "batch_size": 256}
    return {
        "TD3PlusBC": lambda: algos.TD3PlusBCConfig(**both),
        "IQL": lambda: algos.IQLConfig(**both, value_encoder_factory=small),
        "ReBRAC": lambda: algos.ReBRACConfig(
            actor_encoder_factory=large, critic_encoder_factory=norm, batch_size=1024, update_actor_interval=2
        ),
        "BC": lambda: algos.BCConfig(batch_size=256, encoder_factory=small),
        "CQL": lambda: algos.CQLConfig(
            batch_size=256, n_action_samples=10, alpha_learning_rate=0.0, soft_q_backup=False,
            actor_encoder_factory=large, critic_encoder_factory=large,
        ),
        "BCQ": lambda: algos.BCQConfig(
            batch_size=100, n_action_samples=10, update_actor_interval=1, rl_start_step=0,
            imitator_encoder_factory=wide, actor_encoder_factory=layers(400, 300),
            critic_encoder_factory=layers(400, 300),
        ),
        "BEAR": lambda: algos.BEARConfig(
            batch_size=256, n_action_samples=4, n_target_samples=10, n_mmd_action_samples=4, warmup_steps=0,
            imitator_encoder_factory=wide, actor_encoder_factory=small, critic_encoder_factory=small,
        ),
    }[name]()  # fmt: skip


def main(name: str) -> None:
    answers = open_answers()
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    raw = arrays()
    dataset = d3rlpy.dataset.MDPDataset(
        raw["observation"][:-1], raw["action"], raw["reward"], raw["terminal"], raw["timeout"]
    )
    chosen = config(name)
    learner = chosen.create(device="cpu")  # type: ignore[attr-defined]
    learner.build_with_dataset(dataset)
    size = chosen.batch_size  # type: ignore[attr-defined]

    def step(steps: int) -> None:
        for _ in range(steps):
            learner.update(dataset.sample_transition_batch(size))

    serve({"step": step}, {"d3rlpy": d3rlpy.__version__, "torch": torch.__version__}, answers)


if __name__ == "__main__":
    main(sys.argv[1])
