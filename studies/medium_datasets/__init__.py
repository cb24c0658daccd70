"""CQL, SA-CQL and its controls on the medium datasets."""
