"""Untrusted text made neutral: nothing in it is invisible, and nothing reads as a turn of the chat.

Models were trained on marks that begin a turn, a tool call or a tool's result. A page that contains
such a mark could seem to be somebody else than a page. The mark stays readable, but its bracket is
replaced by one that no template knows.
"""

from __future__ import annotations

import re

INVISIBLE = re.compile(
    "["
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # controls other than tab and line ends
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"  # soft hyphen, fillers, Arabic mark
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f"  # zero width, bidi, invisible operators
    "\u3164\ufeff\uffa0\ufff0-\ufffc\ufffe\uffff"  # fillers, byte order mark, specials
    "\U000e0000-\U000e0fff"  # tags and variation selectors 17 to 256
    "]"
)
_ROLES = "system|user|assistant|human|tool|developer|function|model|ipython|observation"
_CALLS = (
    "tools?_?(?:call|result|response|output|use)s?|available_tools|function_?(?:call|result|calls|"
    "response)s?|invoke|parameter|think(?:ing)?|system-reminder|start_of_turn|end_of_turn|"
    "start_of_image|bos|eos|s|im_start|im_end|antml:[a-z_]+"
)
_MARK = re.compile(
    r"<(?=[|\uff5c][^<>\n]{1,60}[|\uff5c]>)"  # <|im_start|>, also with fullwidth bars
    rf"|<(?=/?(?:{_CALLS}|{_ROLES})(?:\s[^<>\n]{{0,200}})?/?>)"  # <tool_call>, </s>, <system>
    r"|<(?=<?/?SYS>)"
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT)\])"
    r"|^(?=(?:#{1,6} ?)?(?:system|user|human|assistant) ?:)",  # a line that begins like a turn
    re.IGNORECASE | re.MULTILINE,
)
_INSTEAD = {"<": "‹", "[": "⟦", "": "› "}


def neutral(text: str) -> str:
    """The text without invisible characters and with its look-alike control marks defused."""
    if not text.isascii() or not text.isprintable():
        text = INVISIBLE.sub("", text)
    return _MARK.sub(lambda found: _INSTEAD[found[0]], text)
