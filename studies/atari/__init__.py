"""One question, its script, its rows."""
