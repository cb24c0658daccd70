"""Run folders: what a training run is on disk, and everything that reads one."""
