"""D4RL's recorded transitions, replayed on today's MuJoCo."""
