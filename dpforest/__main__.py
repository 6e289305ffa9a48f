"""``python -m dpforest`` is the command ``dpforest``, for where it is not on the path."""

import sys

from dpforest.cli import main

if __name__ == "__main__":
    sys.exit(main())
