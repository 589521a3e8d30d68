"""Separates the thinking that a model prints into its answer from the answer.

Models whose template the server does not parse print `<think>...</think>` before they answer. Only
a block at the start, or right after another one, counts: an answer may talk *about* the tag. Some
templates open the block inside the prompt, so that only `</think>` is printed: `ThinkSplitter` sees
to models that are known for it, `split_late` to the others.
"""

from __future__ import annotations

import re

from searchloop.agent.types import TextDelta, ThinkingDelta

TAGS = ("think", "thinking", "thought")
_OPEN = {f"<{tag}>": f"</{tag}>" for tag in TAGS}
_MARKS = (*_OPEN, *_OPEN.values())
_CLOSER = re.compile(r"</think(?:ing)?>")
# Alone on its line, or written against the text before it, which a quoted tag is not.
_LATE = re.compile(
    r"""^[ \t]*</think(?:ing)?>[ \t]*$|(?<![\s`"'“‘«(\[{<>])</think(?:ing)?>(?![`"'”’»)\]}])""",
    re.MULTILINE,
)

Delta = TextDelta | ThinkingDelta


class ThinkSplitter:
    """Splits streamed content into text and thinking, the same however the content is cut.

    `opened` says that the prompt may have opened a block: a text without a tag begins inside it.
    """

    def __init__(self, opened: bool = False) -> None:
        self.passing = False
        """True once plain text has begun: from here on there is no thinking."""
        self.opened = opened
        self.unclosed = False
        """True while a block goes on that no tag in the text has opened."""
        self._held = ""
        self._close: str | None = None
        self._fresh = True
        self._stripping = False

    def feed(self, text: str) -> list[Delta]:
        """Returns what is certain so far; withholds a piece that may yet become a tag."""
        out: list[Delta] = []
        held = self._held + text
        while held and not self.passing:
            step = self._think(held, out) if self._close else self._start(held)
            if step == held:
                break
            held = step
        if self.passing and held:
            out.append(TextDelta(held))
            held = ""
        self._held = held
        return out

    def close(self) -> list[Delta]:
        """Returns the rest, which became no tag."""
        held, self._held = self._held, ""
        if self._close:
            held = held.lstrip() if self._fresh else held
            return [ThinkingDelta(held)] if held else []
        held = held.lstrip() if self._stripping else held
        return [TextDelta(held)] if held else []

    def _start(self, held: str) -> str:
        """Reads blanks, a tag, or the first text before the answer. Returns what is left."""
        body = held.lstrip()
        for mark in _MARKS:
            if body.startswith(mark):
                self._close, self._fresh, self._stripping = _OPEN.get(mark), True, True
                self.opened = False
                return body[len(mark) :]
        if not any(mark.startswith(body) for mark in _MARKS):
            if self.opened:
                self._close, self._fresh, self._stripping = _OPEN["<think>"], True, True
                self.opened, self.unclosed = False, True
                return body
            self.passing = True
            return body if self._stripping else held
        return held

    def _think(self, held: str, out: list[Delta]) -> str:
        """Reads thinking up to the closing tag. Returns what is left."""
        close = self._close or ""
        if self._fresh:
            held = held.lstrip()
            self._fresh = not held
        thought, tag, rest = held.partition(close)
        if tag:
            self._close, self.unclosed = None, False
        else:
            end = len(held) - _partial(held, close)
            thought, rest = held[:end], held[end:]
        if thought:
            out.append(ThinkingDelta(thought))
        return rest


def _partial(text: str, mark: str) -> int:
    """Counts the characters at the end of `text` that may begin `mark`."""
    sizes = range(min(len(text), len(mark) - 1), 0, -1)
    return next((size for size in sizes if text.endswith(mark[:size])), 0)


def split_late(text: str, sure: bool = False) -> tuple[str, str]:
    """Returns (thinking, answer) of a text whose block was opened in the prompt, else ("", text).

    A closing tag counts when it stands alone on its line or against the text before it, outside
    code, with text on both sides: prose about the tag does not look like that. `sure` says that the
    prompt opens a block for this model, so that any place counts.
    """
    if "</think" not in text:
        return "", text
    for found in (_CLOSER if sure else _LATE).finditer(text):
        before, after = text[: found.start()].strip(), text[found.end() :].lstrip()
        line = before.rpartition("\n")[2]
        if before and after and before.count("```") % 2 == 0 and line.count("`") % 2 == 0:
            return before, after
    return "", text
