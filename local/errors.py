"""The one error that the command line shows without a traceback."""

from __future__ import annotations


class CommandError(Exception):
    """Something a person can act on: says what is wrong and what to do. Exit status 1."""
