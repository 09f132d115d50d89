"""The command line and the local run: `python -m local --help`."""

import sys
from pathlib import Path

# The functions are packages of their own, deployed one by one; here they are looked at together.
sys.path[:0] = [
    str(folder)
    for folder in sorted((Path(__file__).parent.parent / "functions").iterdir())
    if folder.is_dir()
]
