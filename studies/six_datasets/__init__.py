"""CQL, SA-CQL and its controls on six datasets."""
