"""searchloop as a library: ask any model, with an honest web-search switch.

from searchloop import Agent

with Agent() as agent:
    print(agent.ask("Which engines are there?", search="local").text)

The public names load on first use, so that `import searchloop` costs nothing.
"""

TYPE_CHECKING = False  # as in `typing`, which takes longer than all of this
if TYPE_CHECKING:  # the one list of public names, which `_homes` reads too
    from searchloop.agent import __version__ as __version__
    from searchloop.agent.bare_agent import Usual as Usual
    from searchloop.agent.calls.arguments import read_arguments as read_arguments
    from searchloop.agent.calls.caller import Context as Context
    from searchloop.agent.calls.caller import Hooks as Hooks
    from searchloop.agent.errors import AgentError as AgentError
    from searchloop.agent.errors import ConfigError as ConfigError
    from searchloop.agent.errors import Conflict as Conflict
    from searchloop.agent.errors import IncompleteError as IncompleteError
    from searchloop.agent.errors import ProviderError as ProviderError
    from searchloop.agent.errors import StoreError as StoreError
    from searchloop.agent.errors import ToolError as ToolError
    from searchloop.agent.log import EventLog as EventLog
    from searchloop.agent.log.events import Event as Event
    from searchloop.agent.log.session import Session as Session
    from searchloop.agent.loop import run_agent_loop as run_agent_loop
    from searchloop.agent.mcp.manager import McpServers as McpServers
    from searchloop.agent.mcp.server import McpServer as McpServer
    from searchloop.agent.providers import Abilities as Abilities
    from searchloop.agent.providers import HttpProvider as HttpProvider
    from searchloop.agent.providers import Provider as Provider
    from searchloop.agent.run.question import StandardTools as StandardTools
    from searchloop.agent.run.question import open_session as open_session
    from searchloop.agent.run.question.files import NewFile as NewFile
    from searchloop.agent.run.undo import undo_files as undo_files
    from searchloop.agent.settings import Setting as Setting
    from searchloop.agent.settings import Settings as Settings
    from searchloop.agent.tools import Tool as Tool
    from searchloop.agent.tools import tool as tool
    from searchloop.agent.tools.dispatcher import Toolset as Toolset
    from searchloop.agent.tools.workspace import Workspace as Workspace
    from searchloop.agent.transport.exchange import NdjsonSplitter as NdjsonSplitter
    from searchloop.agent.transport.exchange import then_raise as then_raise
    from searchloop.agent.transport.refusals import parse_retry_after as parse_retry_after
    from searchloop.agent.transport.transport import Transport as Transport
    from searchloop.agent.types import Capabilities as Capabilities
    from searchloop.agent.types import Citation as Citation
    from searchloop.agent.types import Emit as Emit
    from searchloop.agent.types import Finished as Finished
    from searchloop.agent.types import Limits as Limits
    from searchloop.agent.types import Listener as Listener
    from searchloop.agent.types import Mark as Mark
    from searchloop.agent.types import Message as Message
    from searchloop.agent.types import ModelInfo as ModelInfo
    from searchloop.agent.types import NativeSearch as NativeSearch
    from searchloop.agent.types import Request as Request
    from searchloop.agent.types import Source as Source
    from searchloop.agent.types import StreamEvent as StreamEvent
    from searchloop.agent.types import TextDelta as TextDelta
    from searchloop.agent.types import Toolbox as Toolbox
    from searchloop.agent.types import ToolCall as ToolCall
    from searchloop.agent.types import ToolResult as ToolResult
    from searchloop.agent.types import ToolSpec as ToolSpec
    from searchloop.agent.types import Usage as Usage
    from searchloop.agent.verdicts.check import Verdict as Verdict
    from searchloop.answer import Answer as Answer
    from searchloop.answer import AnswerError as AnswerError
    from searchloop.answer import typed as typed
    from searchloop.auditing.results import Audit as Audit
    from searchloop.auditing.results import AuditedCitation as AuditedCitation
    from searchloop.auditing.results import AuditedPage as AuditedPage
    from searchloop.auditing.results import AuditedSentence as AuditedSentence
    from searchloop.error_codes import ErrorCode as ErrorCode
    from searchloop.function_provider import FunctionProvider as FunctionProvider
    from searchloop.function_provider import open_model as open_model
    from searchloop.function_provider import provider as provider
    from searchloop.library import Agent as Agent
    from searchloop.library import AsyncAgent as AsyncAgent
    from searchloop.library import AsyncChat as AsyncChat
    from searchloop.library import Chat as Chat
    from searchloop.library import audit as audit
    from searchloop.library import check as check
    from searchloop.options import AgentOptions as AgentOptions
    from searchloop.options import AskOptions as AskOptions
    from searchloop.options import NewChat as NewChat
    from searchloop.search_backend.engines import Access as Access
    from searchloop.search_backend.engines import Engine as Engine
    from searchloop.search_backend.engines import Wire as Wire
    from searchloop.search_backend.plugin import HttpRequest as HttpRequest
    from searchloop.search_backend.plugin import HttpResponse as HttpResponse
    from searchloop.search_backend.plugin import Keys as Keys
    from searchloop.search_backend.plugin import SearchSetting as SearchSetting
    from searchloop.search_backend.plugin import get as get
    from searchloop.search_backend.plugin import post as post
    from searchloop.search_backend.plugin.answers import base as base
    from searchloop.search_backend.plugin.answers import checked as checked
    from searchloop.search_backend.plugin.answers import misshapen as misshapen
    from searchloop.search_backend.plugin.answers import result as result
    from searchloop.search_backend.plugin.answers import rows as rows
    from searchloop.search_backend.readers import Reader as Reader
    from searchloop.search_backend.readers import Service as Service
    from searchloop.search_backend.readers._served import failed as failed
    from searchloop.search_backend.readers._served import said as said
    from searchloop.search_backend.readers._served import served as served
    from searchloop.search_backend.types import EngineError as EngineError
    from searchloop.search_backend.types import Page as Page
    from searchloop.search_backend.types import Query as Query
    from searchloop.search_backend.types import SearchResult as SearchResult
    from searchloop.streams import AsyncStream as AsyncStream
    from searchloop.streams import Stream as Stream
else:
    import functools
    from importlib import import_module

    @functools.cache
    def _homes():
        """Returns the module of each public name, and its name there."""
        import re

        source = __loader__.get_source(__name__)
        found = re.findall(r"^    from (\S+) import (\w+) as (\w+)$", source, re.MULTILINE)
        return {name: (module, inner) for module, inner, name in found}

    def __getattr__(name):
        if name == "__all__":
            return sorted(_homes().keys() - {"__version__"})
        if name not in _homes():
            raise AttributeError(f"module 'searchloop' has no attribute {name!r}")
        module, inner = _homes()[name]
        return getattr(import_module(module), inner)

    def __dir__():
        return sorted({*globals(), *_homes()})
