"""The page's words for exports, terminal and sign-in; a language is a file of `static/locales`."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

STATIC = Path(__file__).parents[1] / "web" / "static"  # the one place that names this folder
LANGUAGES = {path.stem: path for path in sorted((STATIC / "locales").glob("*.json"))}
_ASKED = re.compile(r"(?<![^ ,])([^ ,]+) \(([^()]+)\)")
_PLACE = re.compile(r"( ?)\{(\w+)\}( ?)")


class Words(dict[str, Any]):
    """The texts of one language by key, English ones where it has none."""

    def say(self, key: str, **values: object) -> str:
        """Fills the places of a text; one with a count is chosen by `n`."""
        form = self[key]
        if not isinstance(form, str):
            form = form.get("one" if values["n"] == 1 else "other", form["other"])

        def fill(place: re.Match[str]) -> str:  # Chinese stands apart from other letters only
            value, zh = str(values[place[2]]), self["language.tag"].startswith("zh")
            before = "" if zh and "\u3400" <= value[:1] <= "\u9fff" else place[1]
            return before + value + ("" if zh and "\u3400" <= value[-1:] <= "\u9fff" else place[3])

        return _PLACE.sub(fill, form)

    def name(self, provider: str) -> str:
        """Returns how a provider or an engine is called in front of people."""
        return str(self.get(f"name.{provider}", provider))

    def path(self, path: str) -> str:
        """Returns a search path in words: `local: Library`, `no search`."""
        where, _, who = path.partition(":")
        searched = "foot.local" if who else "foot.local.unknown"
        key = {"": "foot.off", "off": "foot.off", "native": "foot.native"}.get(where, searched)
        return self.say(key, name=self.name(who), engine=self.name(who))

    def worded(self, text: str, head: str) -> str:
        """Returns a text of the server's in this language, if a key that begins so has its form."""
        for key, form in () if self is words_of("en") else words_of("en").items():
            if key.startswith(head) and (found := _form(str(form)).fullmatch(text)):
                values = found.groupdict()
                if why := values.get("reason"):
                    values["reason"] = self.get(f"attempt.{why}") or self.worded(why, "reason.")
                if asked := values.get("asked"):
                    values["asked"] = _ASKED.sub(self._asked, asked)
                return self.say(key, **values)
        return text

    def _asked(self, site: re.Match[str]) -> str:
        why = self.get(f"why.{site[2]}", site[2])
        return self.say("attempt.asked", engine=self.name(site[1]), why=why)

    def error(self, error: Mapping[str, Any]) -> tuple[str, str]:
        """Returns what happened, and what else the server says of it, in its own words."""
        message, remedy = str(error.get("message", "")), str(error.get("remedy", ""))
        key = f"error.{re.sub(r'^reader_|(?<=^http)_[0-9]+$', '', str(error.get('code')))}"
        exact = self.worded(message, key)
        if exact != message or self is words_of("en") or key not in self:
            return exact, remedy
        return self[key], f"{message} {remedy}".strip()

    def ending(self, reason: str, error: Mapping[str, Any] | None = None) -> str:
        """Returns how a run ended, and why; "" where it is whole."""
        how, why = str(self.get(f"end.{reason}", "")), self.error(error)[0] if error else ""
        return self.say("list.sentences", first=how, second=why) if how and why else how or why


@functools.cache
def words_of(language: str) -> Words:
    """Returns the words of a language that there is."""
    own: dict[str, Any] = json.loads(LANGUAGES[language].read_bytes())
    return Words(own if language == "en" else words_of("en") | own)


@functools.cache
def _form(text: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>.+)", re.escape(text)), re.DOTALL)


def spoken(names: Iterable[str]) -> str:
    """Returns the first of these tags (`de`, `de_AT.UTF-8`) of which there are words, or `en`."""
    known = {name.casefold(): name for name in LANGUAGES}
    for name in names:
        tag = re.split("[.@]", name)[0].replace("_", "-").casefold()
        if found := known.get(tag) or known.get(tag.partition("-")[0]):
            return found
    return "en"


def of_environment(env: Mapping[str, str]) -> str:
    """Returns the language of a terminal, from its variables as gettext reads them."""
    named = next(filter(None, map(env.get, ("LC_ALL", "LC_MESSAGES", "LANG"))), "")
    if re.split("[.@]", named)[0] in ("C", "POSIX"):
        return "en"
    return spoken((env.get("LANGUAGE") or named).split(":"))
