"""MiniStack's modules, untyped, and the one way in which we change them.

MiniStack reads its settings when it is imported: set the environment first, then import this.
"""

import functools
import importlib
from collections.abc import Callable
from typing import Any


def module(name: str) -> Any:
    """A MiniStack module by its dotted name below `ministack`, for example `services.s3`."""
    return importlib.import_module(f"ministack.{name}")


def wrap(owner: Any, name: str, replacement: Callable[..., Any]) -> None:
    """Replace `owner.name` by `replacement`, which gets the original as its first argument.

    Raises:
        AttributeError: MiniStack no longer has that function: the mend must be looked at again.
    """
    original = getattr(owner, name)

    @functools.wraps(original)
    def replaced(*args: Any, **kwargs: Any) -> Any:
        return replacement(original, *args, **kwargs)

    setattr(owner, name, replaced)
