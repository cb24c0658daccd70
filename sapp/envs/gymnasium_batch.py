"""Any Gymnasium environment as a batch: a list of environments stepped one by one."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from sapp.core.errors import SappError, one_line
from sapp.core.extras import install_line
from sapp.data.action_masks import KEY, mask_of, place_in
from sapp.data.spaces import actions_of, observation_size
from sapp.envs.base import Actions, Array, BoolArray, IntArray, check_action, check_discrete, check_seed, generator

if TYPE_CHECKING:
    from gymnasium import Env

    Source = str | Env[Any, Any] | Callable[[], Env[Any, Any]]


class GymnasiumBatch:
    """A batch of any Gymnasium environment; a `BatchEnvironment`.

    Observations are flattened as ``gymnasium.spaces.flatten`` does (Dict, Tuple; Discrete ones become one-hot). Actions
    are vectors (Box) or one discrete action (Discrete; MultiDiscrete and MultiBinary are enumerated); see
    ``sapp.data.spaces``.

    Args:
        source: a registered id; a function (or class) that makes an environment; or an environment, of which further
            copies are made (``copy.deepcopy``) as they are needed.
        max_episode_steps: the time limit, for environments without one.
        pictures: make environments that ``render`` can draw.
        usual_steps: the time limit where nothing else says one.
    """

    physics = ""

    def __init__(
        self, source: Source, max_episode_steps: int | None = None, pictures: bool = False,
        usual_steps: int | None = None,
    ) -> None:  # fmt: skip
        self._source, self._pictures = source, pictures
        first = self._first(source)
        self._environments: list[Any] = [first]
        self.name = source if isinstance(source, str) else _name_of(first)
        self.identity: str | None = source if isinstance(source, str) else _identity_of(first)
        limit = max_episode_steps or _limit(source, first) or usual_steps
        if not limit:
            raise SappError(f"{self.name} has no time limit of its own: give max_episode_steps (--max-episode-steps)")
        self.max_episode_steps = int(limit)
        self._space = first.observation_space
        self.observation_size = observation_size(self._space, self.name)
        self._actions = actions_of(first.action_space, self.name)
        self.num_actions, self.action_labels = self._actions.num_actions, self._actions.labels
        self.action_size = self._actions.size
        if self.num_actions is None:
            self.action_low, self.action_high = self._actions.low, self._actions.high
        else:
            self.action_low, self.action_high = np.zeros(1, np.float32), np.full(1, self.num_actions - 1, np.float32)
        self.mask_at = place_in(self._space, self.num_actions)
        self._appends_mask = False
        self._observation = np.zeros((0, self.observation_size))
        self.truncated = np.zeros(0, bool)
        self._seed = 0

    def append_masks(self) -> None:
        """From now on observations end in the mask that ``reset`` and ``step`` give besides, as Taxi's do."""
        if self.num_actions is None or self.mask_at is not None:
            raise SappError(f"{self.name}: no mask of the actions can be added to its observations")
        _, told = self._environments[0].reset(seed=0)
        self._mask(told)
        self.mask_at = self.observation_size
        self.observation_size += self.num_actions
        self._appends_mask = True

    def _mask(self, told: Any) -> np.ndarray:
        """The mask among what an environment tells besides."""
        if KEY not in told:
            raise SappError(f"{self.name}: it does not say which actions are possible ({KEY!r} in what step returns)")
        return mask_of(np.asarray(told[KEY]).reshape(1, -1), KEY, 1, self.num_actions, self.name)[0]

    def _first(self, source: Source) -> Any:
        from gymnasium import Env

        if isinstance(source, str):
            return _by_id(source, self._pictures)
        made = source if isinstance(source, Env) else source() if callable(source) else None
        if not isinstance(made, Env):
            what = type(source if made is None else made).__name__
            raise SappError(
                f"environment: {what} is not one; give a Gymnasium id, an environment (gymnasium.Env) or a function "
                "that makes one"
            )
        return made

    def _another(self) -> Any:
        from gymnasium import Env

        if not isinstance(self._source, Env):
            return self._first(self._source)
        try:
            return copy.deepcopy(self._environments[0])
        except Exception as error:  # whatever an environment's own parts raise
            raise SappError(
                f"{self.name}: the environment cannot be copied ({type(error).__name__}: {error}); give a function "
                "that makes one instead, as in env=lambda: MyEnv()"
            ) from None

    def _flat(self, observation: Any, told: Any) -> Any:
        from gymnasium import spaces

        flat = spaces.flatten(self._space, observation)
        return np.concatenate([flat, self._mask(told)]) if self._appends_mask else flat

    @property
    def observation_bounds(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Lowest and highest observation [O] that the environment says it gives; None where it does not say."""
        from gymnasium import spaces

        flat = spaces.flatten_space(self._space)
        if not isinstance(flat, spaces.Box):
            return None
        low, high = (np.asarray(bound, np.float64).reshape(-1) for bound in (flat.low, flat.high))
        mask = self.observation_size - len(low)  # values of an appended mask are 0 or 1
        return np.append(low, np.zeros(mask)), np.append(high, np.ones(mask))

    def reset(self, count: int, seed: int, episode: IntArray | None = None) -> Array:
        """Starts `count` rows; see `BatchEnvironment.reset`."""
        self._seed = check_seed(seed)
        while len(self._environments) < count:
            self._environments.append(self._another())
        self._observation = np.zeros((count, self.observation_size))
        self.truncated = np.zeros(count, bool)
        return self.restart(np.arange(count), np.arange(count) if episode is None else np.asarray(episode))

    def restart(self, rows: IntArray, episode: IntArray) -> Array:
        """Starts new episodes in some rows; see `BatchEnvironment.restart`."""
        for row, number in zip(rows.tolist(), episode.tolist(), strict=True):
            start = int(generator(self._seed, number).integers(2**31))
            self._observation[row] = self._flat(*self._environments[row].reset(seed=start))
        self.truncated[rows] = False
        return self._observation[rows]

    def step(self, action: Actions, active: BoolArray | None = None) -> tuple[Array, Array, BoolArray]:
        """Advances the active rows; see `BatchEnvironment.step`."""
        count = len(self._observation)
        rows = np.arange(count) if active is None else np.flatnonzero(active)
        reward, terminal = np.zeros(count), np.zeros(count, bool)
        chosen: Any
        if self.num_actions is None:
            chosen = check_action(np.asarray(action)[rows], len(rows), self.action_size, self.name).astype(np.float32)
        else:
            chosen = check_discrete(np.asarray(action)[rows], len(rows), self.num_actions, self.name)
        for one, row in zip(chosen, rows.tolist(), strict=True):
            taken = self._actions.to_environment(one)
            observation, gain, terminated, truncated, told = self._environments[row].step(taken)
            self._observation[row], reward[row], terminal[row] = self._flat(observation, told), gain, terminated
            self.truncated[row] = truncated and not terminated
        return self._observation.copy(), reward, terminal

    def picture(self) -> Any:
        """What row 0 looks like now, uint8 [height, width, 3], if the environment can draw itself."""
        one = self._environments[0]
        try:
            drawn = one.render() if one.render_mode == "rgb_array" else None
        except Exception as error:  # a package that only drawing needs is missing, or whatever the GL library throws
            raise SappError(f"{self.name}: cannot be drawn on this machine: {one_line(error)}") from None
        if not isinstance(drawn, np.ndarray) or drawn.ndim != 3:
            raise SappError(f"{self.name}: it cannot be drawn; make the environment with render_mode='rgb_array'")
        return drawn


def _by_id(name: str, pictures: bool) -> Any:
    import gymnasium

    options: dict[str, Any] = {"render_mode": "rgb_array"} if pictures else {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "a newer version exists": which one is meant is the user's choice
            # the driver counts the steps, so Gymnasium's own time limit is left out
            return gymnasium.make(name, max_episode_steps=-1, disable_env_checker=True, **options)
    except (ImportError, gymnasium.error.DependencyNotInstalled) as error:
        if "mujoco" in str(gymnasium.registry[name].entry_point):
            raise SappError(f"{name} needs MuJoCo as Gymnasium uses it; run: {install_line('mujoco')}") from error
        said = " ".join(str(error).split())
        advice = "" if "pip install" in said else "; run: pip install 'gymnasium[all]'"
        raise SappError(f"{name}: {said}{advice}") from error
    except gymnasium.error.Error as error:
        raise SappError(f"{name}: Gymnasium cannot make it ({' '.join(str(error).split())})") from error
    except Exception as error:  # an environment's own code, or options that it does not take
        raise SappError(f"{name}: cannot be made ({type(error).__name__}: {error})") from error


def _name_of(environment: Any) -> str:
    spec = environment.spec
    return type(environment.unwrapped).__name__ if spec is None else str(spec.id)


def _identity_of(environment: Any) -> str | None:
    """The registered id that makes just this environment, if there is one."""
    import gymnasium

    spec = environment.spec
    if spec is None or spec.additional_wrappers or spec.id not in gymnasium.registry:
        return None
    registered = gymnasium.registry[spec.id]
    own = {key: value for key, value in spec.kwargs.items() if key != "render_mode"}
    same = own == registered.kwargs and spec.entry_point == registered.entry_point
    return str(spec.id) if same else None


def _limit(source: Source, environment: Any) -> int | None:
    import gymnasium

    spec = gymnasium.spec(source) if isinstance(source, str) else environment.spec
    if spec is not None and spec.max_episode_steps and spec.max_episode_steps > 0:
        return int(spec.max_episode_steps)
    while isinstance(environment, gymnasium.Wrapper):
        if isinstance(environment, gymnasium.wrappers.TimeLimit):
            return int(environment._max_episode_steps)
        environment = environment.env
    return None
