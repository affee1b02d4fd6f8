"""``python -m partialrelease``, and the command ``partialrelease``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; it needs the extra ``[cli]``."""
    try:
        from .cli import main as run
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("partialrelease"):
            raise
        print(
            f"partialrelease: the command line needs {error.name}: pip install 'partialrelease[cli]'",
            file=sys.stderr,
        )
        sys.exit(2)
    run()


if __name__ == "__main__":
    main()
