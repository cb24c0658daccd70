"""The paper's statements, checked on finite problems."""
