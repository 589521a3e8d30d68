"""Walks a folder: bounded, never in a circle, without what the user or `.gitignore` leaves out.

Symbolic links are not followed, so a link inside a folder brings in nothing from outside. Rules of
`.gitignore` count as in git, nested ones and those above the folder up to its repository's top.
https://git-scm.com/docs/gitignore
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from searchloop.search_backend.library.file_text import HIDDEN, LINK, Found, found_file
from searchloop.search_backend.types import SearchBackendError

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

MOST_FILES = 250_000  # of one folder
DEEPEST = 100
# Other people's files, which a project holds by the ten thousand.
_FOREIGN = frozenset(("node_modules", "bower_components", "__pycache__", "site-packages"))
_MOST_RULES, _MOST_LINES = 64 * 1024, 2_000  # bytes and lines of one .gitignore
# Of a pattern's regular expression: stars side by side, a star with what stands before the next
# one in a name, and `/**/` with the folders before the next one.
_STARS = re.compile(r"(?:\[\^/\]\*){2,}")
_NOT_THESE = re.compile(r"\[\^(?![/\]])")  # which is no slash either, as git reads it
_BEFORE_STAR = re.compile(
    r"\[\^/\]\*((?:\\.|\[\^?\]?(?>(?:\\.|[^\]\\])*)\](?!\*)|[^\\\[\]()/])+?)(?=\[\^/\]\*)"
)
_BEFORE_FOLDERS = re.compile(r"\(\?:/\.\+\)\?/((?:(?!\(\?:/\.\+\)\?).)+?)(?=\(\?:/\.\+\)\?/)")
_IGNORED, _EXCLUDED = "left out by .gitignore", "left out by your patterns"

Scan = Callable[[str], AbstractContextManager[Iterable[os.DirEntry[str]]]]
# A folder with a slash behind it, relative to where they stand, and the rules.
Rules = tuple[str, "GitIgnoreSpec"]


class Walk:
    """One walk below `root`. `unlisted` holds the folders that could not be listed."""

    def __init__(
        self,
        root: Path,
        exclude: Sequence[str] = (),
        others: Iterable[Path] = (),
        scan: Scan = os.scandir,
        most: int = MOST_FILES,
    ) -> None:
        """`others` are folders and files with entries of their own, which are left out here."""
        self._root = root
        self._exclude = _rules(exclude)
        self._others = {str(other) for other in others}
        self._scan = scan
        self._left = most
        self._most = most
        self._left_out = list[str]()
        self.unlisted: dict[str, str] = {}

    def __iter__(self) -> Iterator[Found]:
        """Yields every file, in the order of paths; what is left out with the reason."""
        if self._root.is_file():
            yield found_file(self._root.name, self._root, self._root.stat(), named=True)
            return
        yield from self._below("", list(_above(self._root)), 0)

    def leaves_out(self, path: str) -> bool:
        """True if a path lies in a folder that is left out on purpose."""
        return any(path == one or path.startswith(one) for one in self._left_out)

    def _below(self, folder: str, rules: list[Rules], depth: int) -> Iterator[Found]:
        try:
            with self._scan(str(self._root / folder)) as listed:
                entries = sorted(listed, key=lambda entry: entry.name)
        except OSError as error:
            why = f"cannot be read: {error.strerror}"
            self.unlisted[folder] = why
            yield self._folder(folder or ".", why)
            return
        if any(entry.name == ".gitignore" for entry in entries):
            rules = [*rules, *_ignored(self._root / folder / ".gitignore", folder)]
        for entry in entries:
            path = folder + entry.name
            if self._left <= 0:
                if self._left == 0:
                    yield self._folder(
                        path, f"more than {self._most:,} files; the rest is left out"
                    )
                self._left = -1
                return
            yield from self._entry(entry, path, rules, depth)

    def _entry(
        self, entry: os.DirEntry[str], path: str, rules: list[Rules], depth: int
    ) -> Iterator[Found]:
        try:
            is_link, is_folder = entry.is_symlink(), entry.is_dir(follow_symlinks=False)
            stat = entry.stat(follow_symlinks=False)
            path.encode()
        except OSError as error:
            yield Found(path, Path(entry.path), f"cannot be read: {error.strerror}")
            return
        except UnicodeEncodeError:
            shown = path.encode(errors="replace").decode()
            yield Found(shown, Path(entry.path), "its name is no text")
            return
        if entry.path in self._others:
            self._left_out.append(path + "/" * is_folder)
            return
        why = LINK if is_link else self._rule_against(path, is_folder, rules)
        if is_folder:
            if entry.name.startswith("."):
                return
            if depth >= DEEPEST:
                why = f"more than {DEEPEST} folders deep"
            elif entry.name in _FOREIGN:
                why = "packages and caches of programs"
            if why:
                self._left_out.append(path + "/")
                yield self._folder(path + "/", why)
                return
            yield from self._below(path + "/", rules, depth + 1)
            return
        if not is_link and not entry.is_file(follow_symlinks=False):
            why = "not a file but a device or pipe"
        if why:
            why = HIDDEN if entry.name.startswith(".") and not is_link else why
            yield Found(path, Path(entry.path), why)
            return
        self._left -= 1
        yield found_file(path, Path(entry.path), stat)

    def _rule_against(self, path: str, is_folder: bool, rules: list[Rules]) -> str:
        named = path + "/" * is_folder
        if self._exclude is not None and self._exclude.check_file(named).include:
            return _EXCLUDED
        for base, spec in reversed(rules):
            # Rules from above the folder have its own way there as their base.
            inside = base[1:] + named if base[:1] == "/" else named[len(base) :]
            if (include := spec.check_file(inside).include) is not None:
                return _IGNORED if include else ""
        return ""

    def _folder(self, path: str, why: str) -> Found:
        return Found(path, self._root / path, why, folder=True)


def check_patterns(lines: Sequence[str]) -> None:
    """Raises SearchBackendError for patterns that git would not read."""
    try:
        _rules(lines)
    except ValueError as error:
        what = f"A pattern cannot be read: {error}."
        remedy = "Write patterns as in .gitignore, for example *.log or /build/."
        raise SearchBackendError("bad_pattern", what, remedy) from error


def _rules(lines: Sequence[str]) -> GitIgnoreSpec | None:
    """Raises ValueError for a pattern that is none."""
    if not any(line.strip() and not line.startswith("#") for line in lines):
        return None
    from pathspec import GitIgnoreSpec

    spec = GitIgnoreSpec.from_lines(lines)
    for pattern in spec.patterns:
        if pattern.regex and pattern.regex.pattern != (rule := _linear(pattern.regex.pattern)):
            pattern.regex = re.compile(rule)
    return spec


def _linear(pattern: str) -> str:
    """Returns a regular expression of a pattern that never tries a star anew.

    The first place where the text behind a star stands is as good as any later one, as long as
    another star follows. Otherwise one line of a stranger's `.gitignore` would never end.
    """
    pattern = _NOT_THESE.sub("[^/", pattern)
    pattern = _BEFORE_STAR.sub(r"(?>[^/]*?\1)", _STARS.sub("[^/]*", pattern))
    return _BEFORE_FOLDERS.sub(r"(?>(?:/.+?)??/\1(?=/))", pattern)


def _ignored(file: Path, base: str) -> Iterator[Rules]:
    try:
        with file.open("rb") as opened:
            lines = opened.read(_MOST_RULES).decode("utf-8", "replace").splitlines()
        spec = _rules(lines[:_MOST_LINES])
    except (OSError, ValueError):  # git ignores such a file, too
        return
    if spec is not None:
        yield base, spec


def _above(root: Path) -> Iterator[Rules]:
    """Yields the rules above a folder inside a git repository, the outermost first."""
    way = [root, *root.parents]
    top = next((n for n, folder in enumerate(way) if (folder / ".git").exists()), 0)
    for folder in reversed(way[1 : top + 1]):
        yield from _ignored(folder / ".gitignore", f"/{root.relative_to(folder).as_posix()}/")
