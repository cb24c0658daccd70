"""Online soft actor-critic: policies and true replay buffers of any environment, several tasks and seeds at once."""

from sapp.online.run import OnlineRun
from sapp.online.training import resume, train

__all__ = ["OnlineRun", "resume", "train"]
