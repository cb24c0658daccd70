"""The paper's statements, what they say, and what state-aware pessimism gains in finite problems."""
