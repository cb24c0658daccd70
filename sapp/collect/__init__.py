"""Making data: online SAC and DQN, logs by given policies, the benchmark's datasets."""
