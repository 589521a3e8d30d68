"""searchloop as a library: ask any model, with an honest web-search switch.

from searchloop import Agent

with Agent() as agent:
    print(agent.ask("Which engines are there?", search="local").text)

The public names load on first use, so that `import searchloop` costs nothing. In a checkout the
four folders of the package stand beside this one; an installed package holds them.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if not (Path(__file__).parent / "agent").is_dir():
    __path__.append(str(Path(__file__).parent.parent))

if TYPE_CHECKING:
    from searchloop.agent import __version__ as __version__
    from searchloop.agent.bare_agent import Usual
    from searchloop.agent.calls.arguments import read_arguments
    from searchloop.agent.calls.caller import Context, Hooks
    from searchloop.agent.errors import (
        AgentError,
        ConfigError,
        Conflict,
        IncompleteError,
        ProviderError,
        StoreError,
        ToolError,
    )
    from searchloop.agent.log.events import Event
    from searchloop.agent.log.session import Session
    from searchloop.agent.loop import run_agent_loop
    from searchloop.agent.mcp.manager import McpServers
    from searchloop.agent.providers import HttpProvider
    from searchloop.agent.run.question import StandardTools, open_session
    from searchloop.agent.run.question.files import NewFile
    from searchloop.agent.run.undo import undo_files
    from searchloop.agent.settings import Setting, Settings
    from searchloop.agent.tools import Tool, tool
    from searchloop.agent.tools.workspace import Workspace
    from searchloop.agent.transport.exchange import NdjsonSplitter, then_raise
    from searchloop.agent.transport.refusals import parse_retry_after
    from searchloop.agent.transport.transport import Transport
    from searchloop.agent.types import (
        Capabilities,
        Finished,
        Message,
        ModelInfo,
        Request,
        StreamEvent,
        TextDelta,
        ToolCall,
        ToolResult,
        Usage,
    )
    from searchloop.agent.verdicts.check import Verdict
    from searchloop.answer import Answer, AnswerError, typed
    from searchloop.function_provider import FunctionProvider, provider
    from searchloop.library import Agent, AsyncAgent, AsyncChat, Chat, check
    from searchloop.options import AgentOptions, AskOptions, NewChat
    from searchloop.search_backend.engines import Engine, Wire
    from searchloop.search_backend.plugin import (
        HttpRequest,
        HttpResponse,
        Keys,
        get,
        post,
    )
    from searchloop.search_backend.plugin import (
        Setting as SearchSetting,
    )
    from searchloop.search_backend.plugin.answers import base, checked, misshapen, result, rows
    from searchloop.search_backend.readers import Reader, Service
    from searchloop.search_backend.readers._served import failed, said, served
    from searchloop.search_backend.types import EngineError, Page, Query, SearchResult
    from searchloop.streams import AsyncStream, Stream

# Where each public name lives. `Setting as SearchSetting` exports it under the second name.
_HOMES = {
    "searchloop.library": (
        "Agent, AgentOptions, AskOptions, AsyncAgent, AsyncChat, Chat, NewChat, check"
    ),
    "searchloop.answer": "Answer, AnswerError, typed",
    "searchloop.function_provider": "FunctionProvider, provider",
    "searchloop.streams": "AsyncStream, Stream",
    "searchloop.agent": "__version__",
    "searchloop.agent.calls.arguments": "read_arguments",
    "searchloop.agent.calls.caller": "Context, Hooks",
    "searchloop.agent.errors": (
        "AgentError, ConfigError, Conflict, IncompleteError, ProviderError, StoreError, ToolError"
    ),
    "searchloop.agent.bare_agent": "Usual",
    "searchloop.agent.log.events": "Event",
    "searchloop.agent.log.session": "Session",
    "searchloop.agent.loop": "run_agent_loop",
    "searchloop.agent.mcp.manager": "McpServers",
    "searchloop.agent.providers": "HttpProvider",
    "searchloop.agent.run.undo": "undo_files",
    "searchloop.agent.run.question": "StandardTools, open_session",
    "searchloop.agent.run.question.files": "NewFile",
    "searchloop.agent.settings": "Setting, Settings",
    "searchloop.agent.tools": "Tool, tool",
    "searchloop.agent.tools.workspace": "Workspace",
    "searchloop.agent.transport.refusals": "parse_retry_after",
    "searchloop.agent.transport.exchange": "NdjsonSplitter, then_raise",
    "searchloop.agent.transport.transport": "Transport",
    "searchloop.agent.types": (
        "Capabilities, Finished, Message, ModelInfo, Request, StreamEvent, TextDelta, ToolCall, "
        "ToolResult, Usage"
    ),
    "searchloop.agent.verdicts.check": "Verdict",
    "searchloop.search_backend.plugin.answers": "base, checked, misshapen, result, rows",
    "searchloop.search_backend.engines": "Engine, Wire",
    "searchloop.search_backend.plugin": (
        "HttpRequest, HttpResponse, Keys, Setting as SearchSetting, get, post"
    ),
    "searchloop.search_backend.readers": "Reader, Service",
    "searchloop.search_backend.readers._served": "failed, said, served",
    "searchloop.search_backend.types": "EngineError, Page, Query, SearchResult",
}
# Public name -> (module, its name there).
_HOME = {
    entry.split()[-1]: (module, entry.split()[0])
    for module, entries in _HOMES.items()
    for entry in entries.split(", ")
}
__all__ = [
    "Agent",
    "AgentError",
    "AgentOptions",
    "Answer",
    "AnswerError",
    "AskOptions",
    "AsyncAgent",
    "AsyncChat",
    "AsyncStream",
    "Capabilities",
    "Chat",
    "ConfigError",
    "Conflict",
    "Context",
    "Engine",
    "EngineError",
    "Event",
    "Finished",
    "FunctionProvider",
    "Hooks",
    "HttpProvider",
    "HttpRequest",
    "HttpResponse",
    "IncompleteError",
    "Keys",
    "McpServers",
    "Message",
    "ModelInfo",
    "NdjsonSplitter",
    "NewChat",
    "NewFile",
    "Page",
    "ProviderError",
    "Query",
    "Reader",
    "Request",
    "SearchResult",
    "SearchSetting",
    "Service",
    "Session",
    "Setting",
    "Settings",
    "StandardTools",
    "StoreError",
    "Stream",
    "StreamEvent",
    "TextDelta",
    "Tool",
    "ToolCall",
    "ToolError",
    "ToolResult",
    "Transport",
    "Usage",
    "Usual",
    "Verdict",
    "Wire",
    "Workspace",
    "base",
    "check",
    "checked",
    "failed",
    "get",
    "misshapen",
    "open_session",
    "parse_retry_after",
    "post",
    "provider",
    "read_arguments",
    "result",
    "rows",
    "run_agent_loop",
    "said",
    "served",
    "then_raise",
    "tool",
    "typed",
    "undo_files",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        module, inner = _HOME[name]
        return getattr(import_module(module), inner)
    raise AttributeError(f"module 'searchloop' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
