"""The arguments of a call as servers send them: an object, its JSON, or that JSON quoted again."""

from __future__ import annotations

import json
from typing import Any


def read_arguments(raw: Any) -> tuple[dict[str, Any], str | None]:
    """(arguments, problem): an object, or {} and what is wrong. Nothing at all is no arguments."""
    if raw is None or (isinstance(raw, str) and not raw.strip()):
        return {}, None
    value = raw
    try:
        for _ in range(2):
            if isinstance(value, str):
                value = json.loads(value, parse_constant=_reject)
    except (ValueError, RecursionError) as error:
        return {}, f"The arguments are not valid JSON: {error}."
    if not isinstance(value, dict):
        return {}, f"The arguments must be a JSON object, not {type(value).__name__}."
    return value, None


def _reject(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")
