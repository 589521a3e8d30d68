"""The parts of events that other programs read most: citations, sources, and how a run ended."""

from __future__ import annotations

from typing import get_args

from agent.types import USAGE_FIELDS, RunReason, SourceState
from web.shapes import COUNT, MAYBE, PROBLEM, TEXT, Schema, list_of, object_of

_SPAN: Schema = {"type": "array", "items": COUNT, "minItems": 2, "maxItems": 2}
_VERIFIED: Schema = {
    "type": ["boolean", "null"],
    "description": "Whether the page that was read bears it out; null: nothing was compared",
}

EVENT_SCHEMAS: Schema = {
    "Mark": object_of(
        {
            "span": {
                **_SPAN,
                "type": ["array", "null"],
                "description": "[start, end) in code points of the text; null: at no one place",
            },
            "quote": {**MAYBE, "description": "What the source says there"},
            "verified": _VERIFIED,
        },
        *("span", "quote", "verified"),
    ),
    "Citation": object_of(
        {
            "n": COUNT,
            "url": TEXT,
            "title": TEXT,
            "quote": {**MAYBE, "description": "That of the first mark in doubt, else the first"},
            "verified": _VERIFIED,
            "spans": {"type": "array", "items": _SPAN},
            "marks": list_of("Mark"),
        },
        *("n", "url", "title", "quote", "verified", "spans", "marks"),
    ),
    "Source": object_of(
        {
            "n": COUNT,
            "url": TEXT,
            "title": TEXT,
            "state": {"type": "string", "enum": list(get_args(SourceState))},
            "published": {**TEXT, "description": "The day of the page as YYYY-MM-DD, where known"},
        },
        *("url", "title", "state"),
    ),
    "RunFinished": object_of(
        {
            "type": {"type": "string", "enum": ["run_finished"]},
            "reason": {"type": "string", "enum": list(get_args(RunReason))},
            "answer": TEXT,
            "citations": list_of("Citation"),
            "sources": list_of("Source"),
            "usage": object_of(
                {name: {"type": ["number", "null"]} for name in USAGE_FIELDS}, *USAGE_FIELDS
            ),
            "search_path": TEXT,
            "error": PROBLEM,
        },
        *("type", "reason", "answer", "citations", "sources", "usage", "search_path"),
    ),
}
