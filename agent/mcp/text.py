"""What servers write, made fit to be shown and sent: no hidden characters, and not without end."""

from __future__ import annotations

from agent.neutral import INVISIBLE

_MORE = 4096  # hidden characters that may stand in a text before it counts as cut


def clean(text: str, most: int) -> str:
    """The text without hidden characters, cut after `most` characters with a word about it."""
    seen = INVISIBLE.sub("", text[: most + _MORE].replace("\r\n", "\n").replace("\r", "\n"))
    if len(seen) <= most and len(text) <= most + _MORE:
        return seen
    return f"{seen[:most].rstrip()} [... cut]"


def line(text: str, most: int) -> str:
    """The same on one line."""
    return clean(" ".join(text[: 8 * most].split()), most)


def has_hidden(text: str) -> bool:
    """Whether there is a character in it that a reader would not see."""
    return INVISIBLE.search(text) is not None
