"""`python -m local.page`: serve the page of the local stack, or of one on AWS."""

from __future__ import annotations

import argparse

from local import stack
from local.page.serve import serve


def main() -> None:
    """Parse the arguments and serve until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m local.page")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--stack", metavar="NAME")
    parser.add_argument("--allow-writes", action="store_true")
    arguments = parser.parse_args()
    shown = stack.load_local() if arguments.stack is None else stack.load_aws(arguments.stack)
    serve(shown, arguments.port, allow_writes=arguments.allow_writes)


if __name__ == "__main__":
    main()
