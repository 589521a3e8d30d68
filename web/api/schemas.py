"""JSON Schemas of the API: request bodies (which are checked against them), answers, and events.

`schemas.toml` holds their tables, as `searchloop.analysis.schemas` reads them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

from searchloop.agent.guard.approvals import DECISIONS
from searchloop.agent.guard.egress import Mixed
from searchloop.agent.mcp.server import EFFECTS
from searchloop.agent.tools import ALLOWED
from searchloop.agent.types import SEARCHES, USAGE_FIELDS, RunReason, SourceState, VerdictName
from searchloop.analysis.schemas import COUNT, KINDS, TEXT, Schema, objects, one_of

MODES = tuple(ALLOWED)
FORMATS = ("md", "html", "json", "trace")
_KINDS: Mapping[str, Schema] = {
    **KINDS,
    "secret": {**TEXT, "writeOnly": True},
    "true": {"type": "boolean", "enum": [True]},
    "time": {"type": "number", "description": "Seconds since 1970"},
    "span": {"type": "array", "items": COUNT, "minItems": 2, "maxItems": 2},
    "mode": one_of(MODES),
    "search": one_of(SEARCHES),
    "effect": one_of(EFFECTS),
    "decision": one_of(DECISIONS),
    "mixed": one_of(get_args(Mixed)),
    "format": one_of(FORMATS),
    "source_state": one_of(get_args(SourceState)),
    "run_finished": one_of(("run_finished",)),
    "reason": one_of(get_args(RunReason)),
    "verdict": one_of(get_args(VerdictName)),
}
_TABLES = tomllib.loads((Path(__file__).parent / "schemas.toml").read_text("utf-8"))
_DESCRIPTIONS: Mapping[str, str] = _TABLES["descriptions"]
_USAGE = " ".join(f"{name}:number|null" for name in USAGE_FIELDS)
SCHEMAS: Mapping[str, Schema] = {
    **objects(_TABLES["closed"], _KINDS, _DESCRIPTIONS, additionalProperties=False),
    **objects(_TABLES["open"].format(usage=_USAGE), _KINDS, _DESCRIPTIONS),
}
QUERY: Mapping[str, Schema] = objects(_TABLES["query"], _KINDS, _DESCRIPTIONS)["Query"][
    "properties"
]
