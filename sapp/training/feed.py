"""Where batches come from: what the compiled program asks of data, wherever they lie."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from jax import Array

from sapp.core.spec import Batch


class Feed(Protocol):
    """Data as the compiled program sees them: a pytree of arrays on the device."""

    def draw(self, dataset: Array, key: Array, count: int) -> Any:
        """What says which rows one member's batch consists of: arrays, by its dataset and its key alone."""

    def batches(self, dataset: Array, drawn: Any, update: Array, next_action: bool) -> Batch:
        """The batches [M, B, …] of members with these datasets [M], from what ``draw`` gave each of them.

        ``update`` is how often the members have learned in this way; ``next_action`` asks for the next logged action.
        """


class Supply(Protocol):
    """Brings a population its feed, all at once or block by block."""

    feed: Feed
    """What programs are traced with; ``draw`` answers as it does in training."""
    resident: bool
    """Whether ``feed`` holds everything, so that one program may run for as long as it likes."""
    shares_batches: bool
    """Whether members of one dataset and seed gain by being given one batch between them."""

    def blocks(self, stream: int, first: int, end: int) -> Iterator[tuple[Feed, int]]:
        """Feeds for the updates from ``first`` to ``end`` of a stream of randomness, and for how many each serves."""

    def close(self) -> None:
        """Stop what brings batches from the host."""


class Data(Protocol):
    """Data that a population can be trained from."""

    def supply(self, draws: Sequence[tuple[int, int]], batch_size: int, stride: int) -> Supply:
        """For members with these datasets and seeds; on an accelerator ``stride`` steps are made at a time."""


class Resident:
    """A supply of data that all lie on the device."""

    resident = True

    def __init__(self, feed: Feed, shares_batches: bool = False) -> None:
        self.feed, self.shares_batches = feed, shares_batches

    def blocks(self, stream: int, first: int, end: int) -> Iterator[tuple[Feed, int]]:
        """One feed for all updates: it does not change."""
        yield self.feed, end - first

    def close(self) -> None:
        """Nothing to stop: no thread brings batches."""
