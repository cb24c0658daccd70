"""The ``sapp`` command: one module per noun; every command is also one Python call."""
