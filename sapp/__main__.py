"""``python -m sapp`` is the ``sapp`` command."""

import sys

from sapp.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
