"""JSON Schemas of the API: request bodies (which are checked against them), answers, and events.

The tables have one entry for each object: its name, then its fields as `name:kind`. A kind is a key
of `_KINDS`, text if none is written, words to choose from (`one/two`), or the name of an object.
`[kind]` is an array, `kind|null` may be null, `name?` may be missing, and `...Name` adds the fields
of another object.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, get_args

from searchloop.agent.guard.approvals import DECISIONS
from searchloop.agent.guard.egress import Mixed
from searchloop.agent.mcp.server import EFFECTS
from searchloop.agent.tools import ALLOWED
from searchloop.agent.types import SEARCHES, USAGE_FIELDS, RunReason, SourceState, VerdictName

Schema = dict[str, Any]

MODES = tuple(ALLOWED)
FORMATS = ("md", "html", "json", "trace")
TEXT: Schema = {"type": "string"}


def _one_of(values: Iterable[str]) -> Schema:
    return {"type": "string", "enum": list(values)}


_COUNT: Schema = {"type": "integer", "minimum": 0}
_KINDS: Mapping[str, Schema] = {
    "text": TEXT,
    "secret": {**TEXT, "writeOnly": True},
    "count": _COUNT,
    **{kind: {"type": kind} for kind in ("boolean", "integer", "number", "object", "array")},
    "true": {"type": "boolean", "enum": [True]},
    "time": {"type": "number", "description": "Seconds since 1970"},
    "span": {"type": "array", "items": _COUNT, "minItems": 2, "maxItems": 2},
    "mode": _one_of(MODES),
    "search": _one_of(SEARCHES),
    "effect": _one_of(EFFECTS),
    "decision": _one_of(DECISIONS),
    "mixed": _one_of(get_args(Mixed)),
    "format": _one_of(FORMATS),
    "source_state": _one_of(get_args(SourceState)),
    "run_finished": _one_of(("run_finished",)),
    "reason": _one_of(get_args(RunReason)),
    "verdict": _one_of(get_args(VerdictName)),
}
# Bodies that hold these fields and no others.
_CLOSED = """
NewSession      model?:text|null mode?:mode search?:search workspace?:text|null agent?:text|null
                temporary?:boolean project?:text|null
ChangesOfMany   ids:[text] archived?:boolean project?:text|null
SessionChanges  title? model? mode?:mode search?:search workspace?:text|null agent?:text|null
                pinned?:boolean archived?:boolean project?:text|null options?:object|null
NewProject      name ...ProjectFields
ProjectChanges  name? ...ProjectFields
ProjectFields   instructions? model?:text|null agent?:text|null search?:search|null
                folders?:[text]|null
OwnWordsChanges about? answer?
NewAgent        name ...AgentChanges
AgentChanges    description? system? model?:text|null mode?:mode|null search?:search
                tools?:[text]|null servers?:[text]|null
NewMessage      text model? mode?:mode search?:search replaces?:count
                attachments?:[NewAttachment] system?:text options?:object schema?:object
NewAttachment   name media_type? data
TurnChange      shown?:true removed?:boolean
SummaryText     text
ModelName       model
SettingChanges  settings:object
Policy          review_queries?:boolean private_and_untrusted?:mixed rules?:[object]
NewKey          value:secret
ProviderTest    key?:secret address?:text|null save?:boolean
LibraryPath     path exclude?:[text]
LibraryPause    path paused:true
Reader          model?
Check           claim text? url?
Nothing
Decision        decision:decision arguments?:object
McpConfig       config save?:boolean replace?:boolean
McpChanges      disabled?:boolean private?:boolean effect?:effect|null tools?:object
ToolSwitches    enabled?:boolean|null effect?:text|null
McpTrust        workspace hash
McpApproval     definition
"""
_OPEN = """
WebSearch       query country? language? engine? max_results?:integer time_range?:d/w/m/y/all
                allowed_domains?:[text] blocked_domains?:[text] safe_search?:off/moderate/strict
                folders?:[text] explain?:boolean
OpenPage        url find?:text|null offset?:integer max_length?:integer reader?
                allowed_domains?:[text] blocked_domains?:[text]
Problem         code message remedy?
Error           error:Problem
Health          status name? version?
Session         id title model mode:mode search:search search_path workspace?:text|null
                created:time updated:time messages?:count running?:boolean settings?:object
                agent?:text|null native_search?:boolean|null
ListedSession   ...Session found?:[FoundPlace]
FoundPlace      turn:count part:title/question/answer/sources snippet marks:[span] words:[text]
Sessions        sessions:[ListedSession] indexing?:boolean archived?:count
                projects?:[ListedProject]
ListedProject   id name chats:count
Changed         changed:count
Project         id name created:time updated:time instructions model:text|null agent:text|null
                search:search|null folders:[text] files:[Attachment] chats:count
Projects        projects:[Project]
OwnWords        about answer
Deleted         deleted:count
Import          state:none/running/done/failed/cancelled brought:count known:count empty:count
                projects:count refused:count origins:object left_out:object
                problems:[text] error?:Problem
Me              name admin:boolean people:boolean token:kept/set
Used            person day answers:count input_tokens:count output_tokens:count searches:count
                pages:count cost_usd:number unpriced:count
Uses            uses:[Used]
Agent           name description system model:text|null mode:mode|null search:search
                tools:[text]|null servers:[text]|null builtin:boolean changed:boolean
Agents          agents:[Agent]
Reading         model marks:count
Verdict         verdict:verdict passage start:count end:count reason quote
Decided         call_id decision:decision
Undone          files:[text]
Plan            plan_id title steps:[object] files:[text] sources:[object] by:model/text
Started         run_id session_id seq:integer
Cancelled       cancelled:boolean
Attachment      name media_type size:count digest width?:count height?:count pages?:count
                length?:count n?:count
ShownTurns      shown:[count]
Summary         upto:count turns:[count] text model:text|null by:auto/user usage:object
Setting         name value origin changeable:boolean default? help?
Settings        settings:[Setting]
Key             name set:boolean origin saved:boolean help? strayed?:text|null
Keys            keys:[Key]
Providers       providers:[Provider]
Provider        name key:object|null address:object|null more:[Setting]
ProviderTested  models:count saved:boolean
Library         collections:[object]
Folders         path parent:text|null home folders:[Folder] more:boolean
Folder          name path
LibraryAdded    collection state:text added?:count skipped?:count kept?:count
LibraryRemoved  removed:count
Model           id available:boolean title? capabilities?:object local?:boolean loaded?:object|null
                missing?:text|null remedy?:text|null calls?:text|null disk?:integer|null
                search_usd?:number|null options?:[text]
Models          models:[Model] servers?:[ModelServer] default? modes?:[text] searches?:[text]
                search?:search held_back?:HeldBack default_why?:DefaultWhy
DefaultWhy      by:setting/last/best/none why
HeldBack        now?:text|null private?:text|null
ModelServer     provider name address version?:text|null cloud?:boolean|null
Pull            model state:running/done/failed/cancelled status done:count total:count
                error?:object|null
Pulls           pulls:[Pull]
Engines         engines:[object] offline?:boolean
SearchAnswer    query status results:[object] attempts:[object] engine?:text|null
Page            url final_url?:text|null title?:text|null content?:text|null
                content_length?:integer|null original_length?:integer|null
                next_offset?:integer|null invisible?:count truncated?:boolean|null blocks?:array
McpPlan         servers:[McpPlanned] saved:boolean
McpEntry        config
McpPlanned      name file workspace:text|null kind:stdio/http command:[text] cwd:text|null
                variables:[text] headers:[text] disabled:boolean private:boolean effect:effect
McpServers      file servers:[McpServer] problems:[object] untrusted:object|null
McpServer       ...McpPlanned state:idle/connecting/ready/failed/disabled error:object|null
                retry_in:number|null starting:object|null protocol title version oddities:[text]
                tools:[McpTool] tokens:count stderr?
McpTool         name offered_as enabled:boolean effect:effect tokens:count definition
                suspended:object|null title? description? hints?:object unusable?:text|null
Mark            span:span|null quote:text|null verdict:verdict|null passage:text|null
                verified:boolean|null
Citation        n:count url title quote:text|null verified:boolean|null spans:[span] marks:[Mark]
Source          n?:count url title state:source_state published?
Usage           {usage}
RunFinished     type:run_finished reason:reason answer citations:[Citation] sources:[Source]
                usage:Usage search_path error?:Problem
"""
_QUERY = """
Query           format:format turn:count after:count view:events/page q limit:count model workspace
                project archived:true/false chats:keep/archive/delete path
"""
# By field, or by object and field where a field means different things.
_DESCRIPTIONS: Mapping[str, str] = {
    "model": "provider:model, as /api/models lists it",
    "system": "What the model is told in every turn",
    "AgentChanges.tools": "Patterns of tools it may use; null: all",
    "AgentChanges.servers": "Patterns of MCP servers it may use; null: all",
    "temporary": "Not listed, deleted after a day",
    "SessionChanges.workspace": "Full path of a folder; null removes it",
    "SessionChanges.agent": "Name of an agent; null removes it",
    "SessionChanges.project": "The id of a project; null takes the chat out of it",
    "SessionChanges.archived": "Not in the list of chats; searches find it",
    "NewMessage.system": "Joins the system text, for this question",
    "NewMessage.options": "As those of a session, for this question",
    "NewMessage.schema": "A JSON Schema that the answer has to fit; it comes as JSON",
    "SessionChanges.options": "temperature, top_p, seed, max_tokens, stop; null removes them",
    "instructions": "The user's own words, which the model gets in its system text",
    "about": "Who the user is",
    "folders": "Of the library, by path or name; searches there keep to them. None: all",
    "answer": "How the user wants to be answered",
    "chats": "Of a project: how many; when it is deleted: what becomes of them",
    "Model.options": "Those that it takes",
    "data": "The file's bytes in base64",
    "NewAttachment.media_type": "Its bytes decide; without a known type they do alone",
    "Attachment.size": "In bytes",
    "digest": "SHA-256 in hex",
    "width": "In pixels",
    "height": "In pixels",
    "length": "Characters of its text",
    "Attachment.n": "Number of its first page as a source",
    "replaces": "The question beside which this one stands",
    "SettingChanges.settings": "Text by name; null restores the default",
    "config": '"mcpServers" JSON',
    "save": "Without it nothing is saved, only shown",
    "replace": "Replaces a server of the same name",
    "McpChanges.tools": "{tool: {enabled?, effect?}}",
    "McpApproval.definition": "The hash of the definition that the user saw",
    "command": "What is run, or the address, as it stands in the file",
    "search_path": "The path that the last turn took",
    "native_search": "Its model searches by itself",
    "changed": "Built in and edited; DELETE restores it",
    "seq": "Follow the events after this one",
    "Me.name": "What the proxy calls them; empty for the holder of the token",
    "Me.people": "A proxy signs people in",
    "Me.token": "Kept in the data folder, or set where the server is started",
    "day": "YYYY-MM-DD, by UTC",
    "Import.known": "Chats that were there already",
    "left_out": "Parts of chats that were not brought along: how many, by name",
    "unpriced": "Answers whose price is unknown; cost_usd is without them",
    "ShownTurns.shown": "Numbers of questions",
    "strayed": "The address that was changed since",
    "search_usd": "Price of its own search",
    "loaded": "Its place in memory",
    "ModelServer.version": "null while nobody answers",
    "cloud": "Whether it may use a cloud",
    "blocks": "With view=page: the text to be shown",
    "untrusted": "A project's file that is not trusted yet: {file, hash, commands}",
    "McpServer.tokens": "About what its tools take in each request",
    "starting": "{seconds, limit} while it is connecting",
    "stderr": "After a test: the end of what it wrote there",
    "hints": "What the server claims; it grants nothing",
    "McpTool.definition": "SHA-256 of what the server says of it",
    "suspended": "{diff} once it changed",
    "span": "[start, end) in code points of the text; null: at no one place",
    "Mark.quote": "Literal words: of the source, or in the answer's quotation marks",
    "passage": "The nearest text of the source",
    "Verdict.start": "The passage is [start, end) in code points of the source",
    "Verdict.quote": "The claim's words in quotation marks that decided",
    "Citation.quote": "That of the first mark in doubt, else the first",
    "verified": "Whether the page that was read supports it; null: nothing was compared",
    "published": "The day of the page as YYYY-MM-DD, where known",
    "Query.format": "md when left out",
    "turn": "With md: only the answer to this question",
    "after": "The last event that you have",
    "view": "page adds rendered text",
    "q": "Words in the title or in a question",
    "limit": "The most to list, 200 by default; pinned sessions come besides",
    "Query.workspace": "With the servers of this folder's .mcp.json",
}


def ref(name: str) -> Schema:
    """Refers to the schema of this name."""
    return {"$ref": f"#/components/schemas/{name}"}


def _kind(text: str) -> Schema:
    kind = text.removesuffix("|null")
    if kind[0] == "[":
        found: Schema = {"type": "array", "items": _kind(kind[1:-1])}
    elif "/" in kind:
        found = _one_of(kind.split("/"))
    elif kind in _KINDS:
        found = _KINDS[kind]
    else:
        return ref(kind)
    if kind == text:
        return found
    either = {**found, "type": [found["type"], "null"]}
    return either | ({"enum": [*found["enum"], None]} if "enum" in found else {})


def _objects(table: str, **more: Any) -> dict[str, Schema]:
    """Returns the schema of each object in a table."""
    rows: dict[str, list[str]] = {}
    for line in table.strip().splitlines():
        words = line.split()
        name = next(reversed(rows), "") if line[0] == " " else words.pop(0)
        rows.setdefault(name, []).extend(words)
    found: dict[str, Schema] = {}
    for name, fields in rows.items():
        copied = [field for word in fields if word[0] == "." for field in rows[word.strip(".")]]
        schema: Schema = {"type": "object", "properties": {}, **more}
        required = []
        for word in (*copied, *(word for word in fields if word[0] != ".")):
            field, _, kind = word.partition(":")
            required += [field] * (not field.endswith("?"))
            field = field.removesuffix("?")
            said = _DESCRIPTIONS.get(f"{name}.{field}") or _DESCRIPTIONS.get(field)
            note = {"description": said} if said else {}
            schema["properties"][field] = _kind(kind or "text") | note
        found[name] = schema | ({"required": required} if required else {})
    return found


_USAGE = " ".join(f"{name}:number|null" for name in USAGE_FIELDS)
SCHEMAS: Mapping[str, Schema] = {
    **_objects(_CLOSED, additionalProperties=False),
    **_objects(_OPEN.format(usage=_USAGE)),
}
QUERY: Mapping[str, Schema] = _objects(_QUERY)["Query"]["properties"]
