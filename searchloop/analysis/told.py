"""How a mistake is told: what happened, what to do, and the name that may have been meant.

Every error of ours is a `Told`, whichever part raises it, so that the page, the terminal, the API
and a program that catches nothing all say the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_END = re.compile(r"""[.!?…:。！？؟][)\]"'”’»」`]*$""")


def ended(message: str) -> str:
    """Returns a message with a full stop if it has no end: a remedy may follow."""
    return f"{message}." if (message := message.rstrip()) and not _END.search(message) else message


class Told(Exception):
    """`code` for programs, `message` in one sentence, `remedy` as the next thing to do."""

    def __init__(self, code: str, message: str, remedy: str = "") -> None:
        message = ended(message)
        super().__init__(message)
        self.code, self.message, self.remedy = code, message, remedy

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".strip()

    def as_dict(self) -> dict[str, str]:
        """Returns the error object of every surface: {code, message, remedy}."""
        return {"code": self.code, "message": self.message, "remedy": self.remedy}


def did_you_mean(
    word: object, known: Iterable[str], least: float = 0.6, titles: Mapping[str, str] | None = None
) -> str:
    """Returns a question that names what is written like a word, "" if nothing is.

    A name may also be known by one of `titles`, which leads to it.
    """
    from difflib import get_close_matches  # only once something is wrong

    word, names = str(word), [*dict.fromkeys(known)]
    written = {**(titles or {}), **{name.lower(): name for name in names}}
    found = get_close_matches(word.lower(), written, 3, least)
    near = [*dict.fromkeys(written[each] for each in found)]
    near = near or [name for name in names if len(word) > 2 and name.startswith(word)][:3]
    return f"Did you mean {' or '.join(near)}? " if near else ""


def one_of(word: object, known: Iterable[str], titles: Mapping[str, str] | None = None) -> str:
    """Returns the remedy for a word that is none of a few: the near ones first, then all."""
    known = [*known]
    return f"{did_you_mean(word, known, titles=titles)}Choose one of {', '.join(known)}."
