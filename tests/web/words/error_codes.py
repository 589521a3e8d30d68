"""Every code of an error or a notice that a server can send, read off the code that makes them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache

from tests.source_tree import modules

FOLDERS = ("agent", "search_backend", "searchloop", "web")
# What acts before there is a page, or for the command line alone.
_NO_PAGE = frozenset(
    f"{name}.py"
    for name in (
        *("agent/observe/logs", "agent/mcp/login"),
        *("agent/log/backup", "searchloop/answer", "searchloop/streams", "searchloop/testing"),
        *("web/listen", "web/serve", "web/gateway"),
        *(
            f"searchloop/protocols/{name}"
            for name in ("fields", "handing", "kept", "programs", "runs", "tools")
        ),
    )
)
_MAKERS = re.compile(
    r"[A-Z]\w*(Error|Rejected|Refused|Failed)|Conflict|Problem|Notice|Finding|Refusal"
)
_HELPERS = {ast.Name: {"failed", "fault"}, ast.Attribute: {"tell", "error"}}
_CODE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
# Codes that are put together, or come by another name: where, and what they can be.
MADE = {
    "agent/run/question/__init__.py": ("bad_mode", "bad_search"),
    "agent/mcp/config.py": (
        *("bad_json", "bad_server", "bad_servers", "duplicate_server"),
        *("missing_command", "missing_url"),
    ),
    "agent/mcp/login.py": ("mcp_elsewhere", "bad_headers"),  # the rest is for the command line
    "agent/bare_agent.py": ("closed",),
    "agent/run/resume.py": ("outcome_unknown",),
    "agent/search/switch.py": ("native_search_rejected",),
    "agent/providers/ollama/errors.py": (
        *("server_error", "bad_request", "usage_limit", "rate_limited", "no_chat", "no_tools"),
        *("no_thinking", "model_crashed", "cloud_disabled", "out_of_memory", "tool_call_slip"),
    ),
    "agent/log/window.py": ("prompt_cut", "prompt_small"),
    "agent/providers/ollama/steps.py": ("calls_envelope",),
    "agent/transport/exchange.py": ("connection_lost", "tls", "unreachable"),
    "agent/transport/refusals.py": ("files_refused",),
    "agent/log/contract.py": (
        *("damaged", "disk_failed", "disk_full", "locked", "no_memory", "not_a_file"),
        *("not_a_folder", "read_only", "store_busy", "store_down", "store_failed"),
        *("store_read_only", "store_refused", "store_slow", "too_many_files"),
    ),
    "searchloop/protocols/programs.py": ("bad_program", "no_program"),
    "search_backend/api/app.py": ("not_found", "method_not_allowed"),
    "search_backend/types.py": ("not_reachable",),
    "search_backend/api/payload.py": ("bad_request",),
    "search_backend/other_apis/__init__.py": ("page_failed",),
    "web/flask_app.py": ("not_found", "bad_method"),
}


@cache
def codes() -> frozenset[str]:
    """All of them."""
    found = {code for known in MADE.values() for code in known}
    for module in modules(*FOLDERS):
        if module.path not in _NO_PAGE:
            found |= set(_written(module.nodes))
    return frozenset(found - {"welcome"})  # a redirect, which nobody sees


def _written(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Call):
            called = node.func
            name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
            if _MAKERS.fullmatch(name) or name in _HELPERS.get(type(called), ()):
                yield from _codes_in(node.args[:2])
        elif isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            yield from _codes_in(
                [v for k, v in pairs if isinstance(k, ast.Constant) and k.value == "code"]
            )


def _codes_in(values: list[ast.expr]) -> Iterator[str]:
    chosen = [[v.body, v.orelse] if isinstance(v, ast.IfExp) else [v] for v in values]
    for value in (each for pair in chosen for each in pair):
        found = value.value if isinstance(value, ast.Constant) else None
        if isinstance(found, str) and _CODE.fullmatch(found):
            yield found
