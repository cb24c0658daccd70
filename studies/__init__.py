"""Studies: each answers one question with the public library; not installed."""
