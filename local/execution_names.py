"""Names and inputs of executions that we start, inside Step Functions' limits.

Source: https://docs.aws.amazon.com/step-functions/latest/apireference/API_StartExecution.html
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

MAX_NAME_CHARACTERS = 80
MAX_INPUT_BYTES = 256 * 1024  # of UTF-8, for the input of an execution and of every state

#: 160 of SHA-256's bits: two works in one name are not to be expected, and a prefix still fits.
DIGEST_CHARACTERS = 40
_MAX_PREFIX_CHARACTERS = MAX_NAME_CHARACTERS - DIGEST_CHARACTERS - 1
#: AWS allows a few more characters; these also pass CloudWatch Logs, which refuses non-ASCII.
_PREFIX = re.compile(rf"[A-Za-z0-9_-]{{1,{_MAX_PREFIX_CHARACTERS}}}")


def execution_name(prefix: str, *work: str) -> str:
    """The name of the execution that does `work`: the same words give the same name.

    `prefix` says why the execution was started ("replay"); `work` may hold anything, since only
    a digest of it goes into the name. A name is taken for 90 days, so include what tells one
    attempt from the next. Raises ValueError for a prefix that AWS would refuse or that is too
    long, and when there is no work: every execution would then bear one name.
    """
    if not _PREFIX.fullmatch(prefix):
        raise ValueError(
            f"{prefix!r} is no prefix of an execution's name: 1 to {_MAX_PREFIX_CHARACTERS} "
            f"letters, digits, hyphens and underscores"
        )
    if not work:
        raise ValueError("an execution's name needs the work that it stands for")
    # JSON keeps ("ab", "c") and ("a", "bc") apart.
    digest = hashlib.sha256(json.dumps(work).encode()).hexdigest()
    return f"{prefix}-{digest[:DIGEST_CHARACTERS]}"


def execution_input(document: dict[str, Any]) -> str:
    """`document` as the input of an execution.

    Raises ValueError when it is larger than Step Functions takes.
    """
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    size = len(text.encode())
    if size > MAX_INPUT_BYTES:
        raise ValueError(
            f"an execution's input has at most {MAX_INPUT_BYTES} bytes; this one has {size}"
        )
    return text
