"""The real program is only tested where the shell names it."""

from __future__ import annotations

import os

import pytest

from local.step_functions_local.program import JAR_VARIABLE

pytest.register_assert_rewrite(f"{__package__}.contract")

collect_ignore = [] if os.environ.get(JAR_VARIABLE) else ["test_real_program.py"]
