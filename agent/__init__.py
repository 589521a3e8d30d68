"""The agent: a ReAct loop with an honest web-search switch, as a library.

The public names load on first use, so that `import agent` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent.answer import Answer as Answer
    from agent.errors import AgentError as AgentError
    from agent.library import Agent as Agent
    from agent.loop import run_agent_loop as run_agent_loop
    from agent.settings import Settings as Settings
    from agent.tools import Tool as Tool
    from agent.tools import tool as tool

__version__ = "0.1.0"

_HOME = {
    "Agent": "agent.library",
    "AgentError": "agent.errors",
    "Answer": "agent.answer",
    "Settings": "agent.settings",
    "Tool": "agent.tools",
    "run_agent_loop": "agent.loop",
    "tool": "agent.tools",
}
__all__ = ["Agent", "AgentError", "Answer", "Settings", "Tool", "run_agent_loop", "tool"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'agent' has no attribute {name!r}")
