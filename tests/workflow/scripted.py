"""The charge function of the workflow tests: it does what the scenario of its order says.

The same code is deployed to the emulator and called in-process. `scripts.json` beside it holds
for each object key what to do at each attempt; the last entry goes on for ever. "*" is for all
other keys.
"""

import collections
import json
import pathlib
from typing import Any

Json = dict[str, Any]


class Scripted:
    def __init__(self, scripts: dict[str, list[Json]]) -> None:
        self._scripts = scripts
        self._attempts: collections.Counter[str] = collections.Counter()

    def __call__(self, payload: Json) -> Json:
        """Return the answer, or raise an exception of the class that the script names."""
        script = self._scripts.get(payload["order"]["key"]) or self._scripts["*"]
        attempt = self._attempts[payload["execution"]]
        self._attempts[payload["execution"]] += 1
        step = script[min(attempt, len(script) - 1)]
        if "raise" in step:
            raise type(step["raise"], (Exception,), {})(step["message"])
        return dict(step["return"])


def handle(event: Json, _context: object) -> Json:
    """The Lambda function's entry point."""
    return _scripted(event)


_here = pathlib.Path(__file__).with_name("scripts.json")
_scripted = Scripted(json.loads(_here.read_text()) if _here.exists() else {})
