"""Training: phases, populations, runs, checkpoints, progress."""

from sapp.training.loop import resume, train
from sapp.training.phases import Phase, plain_protocol, sa_protocol
from sapp.training.run import Run

__all__ = ["Phase", "Run", "plain_protocol", "resume", "sa_protocol", "train"]
