"""Readers of the file formats that logs come in, one module each."""
