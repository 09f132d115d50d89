"""MiniStack's modules, untyped, and the one way in which we change them.

MiniStack reads its settings when it is imported: set the environment first, then import this.
"""

import functools
import importlib
import threading
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


def before_first_use_of(service: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Decorator of a mend: it waits for MiniStack to load the service, which may never happen.

    For services that take long to import.
    """

    def decorate(mend: Callable[[], None]) -> Callable[[], None]:
        @functools.wraps(mend)
        def later() -> None:
            lock, mend_once = threading.Lock(), functools.cache(mend)

            def load(original: Any, name: str) -> Any:
                if name == service:
                    with lock:
                        mend_once()
                return original(name)

            wrap(module("app"), "_get_module", load)

        return later

    return decorate
