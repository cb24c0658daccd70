"""What `gymnasium.make` needs to make the three locomotion environments; imports none of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gymnasium.envs.registration import EnvSpec

CLASSES = {"hopper": "Hopper", "halfcheetah": "HalfCheetah", "walker2d": "Walker2d"}


def environment_spec(name: str, physics: str = "d4rl") -> EnvSpec:
    """Gymnasium's description of "hopper", "halfcheetah" or "walker2d" in one of its two physics.

    With D4RL's it names a class of this package (see `sapp.envs.gymnasium_d4rl`), which must be importable
    where the environment is made.
    """
    import gymnasium
    from gymnasium.envs.registration import EnvSpec

    kind = CLASSES[name]
    if physics == "v4":
        return gymnasium.spec(f"{kind}-v4")
    entry = f"sapp.envs.gymnasium_d4rl:{kind}"
    return EnvSpec(f"sapp/{kind}-D4RL-v2", entry_point=entry, max_episode_steps=1000)
