"""Checks the files of a question before anything is stored, and reads the text of documents.

A file is what its bytes say; one whose name says otherwise is refused. Documents are read by the
search backend, in a process of their own. What a model is sent later is in `attached`.

Specs: W3C PNG 5.2; ITU T.81 B.1; GIF89a 17; RFC 9649 (WebP)
"""

from __future__ import annotations

import asyncio
import re
import struct
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from mimetypes import guess_type
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from searchloop.agent.errors import ConfigError, ToolError
from searchloop.agent.log import EventLog
from searchloop.agent.log.contract import AttachedFile, Pending
from searchloop.agent.log.projects import Project
from searchloop.agent.providers import Provider, abilities_of
from searchloop.agent.text import neutral
from searchloop.agent.tools.backend import Backend
from searchloop.agent.types import Message
from searchloop.agent.types.attachments import IMAGES, PDF, Attachment, size_words

MOST_FILES = 20  # of one question
MOST_IMAGE = 3_900_000  # bytes of one image: 5.2 MB in base64, which every vendor takes
MOST_DOCUMENT = 20_000_000
MOST_TOGETHER = 20_000_000
LONGEST_SIDE = 8000  # pixels
_NAME = 120  # characters
_GENERIC = ("", "application/octet-stream", "binary/octet-stream")
_STARTS = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF8", b"RIFF")
_END_OF_PNG = b"IEND\xaeB\x60\x82"
_OTHERS = re.compile(rb"....ftyp(?:hei|hev|mif1|msf1|avi)|BM|II\*\0|MM\0\*|\0\0\x01\0", re.DOTALL)


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file as the user gives it; `media_type` may be empty, its bytes decide."""

    name: str
    data: bytes
    media_type: str = ""

    @classmethod
    def of(cls, given: NewFile | str | Path) -> NewFile:
        """Reads a path. Raises ConfigError for one that cannot be read or is too large."""
        if isinstance(given, NewFile):
            return given
        path = Path(given).expanduser()
        try:
            with path.open("rb") as file:
                return cls(path.name, file.read(MOST_DOCUMENT + 1))
        except OSError as error:
            what = f"{path} cannot be read: {error.strerror or error}."
            raise ConfigError("bad_file", what, "Check the path.") from error

    @classmethod
    def decode(cls, data: Mapping[str, Any]) -> NewFile:
        """Reads {name, media_type?, data (base64)}. Raises ConfigError."""
        try:
            content = b64decode(data["data"], validate=True)
        except ValueError:
            what = f"The content of {_tidy(data['name'])} is not base64."
            raise ConfigError("bad_file", what, "Send its bytes in base64 (RFC 4648).") from None
        return cls(data["name"], content, data.get("media_type") or "")


class AttachedTo(NamedTuple):
    """Where the files of a question are kept, and those that the session's project lends to it."""

    log: EventLog
    session: str
    lent: Sequence[Attachment] = ()


async def attach(
    files: Sequence[NewFile],
    replaces: int | None,
    before: Sequence[Message],
    takes: Callable[[Sequence[Attachment]], Awaitable[None]],
    backend: Backend,
    held: AttachedTo,
) -> tuple[list[Attachment], list[Pending]]:
    """Stores the files of a question; one that is asked again keeps the files that it has.

    `takes` is `check_takes` for the model that will answer. Files that a project lends come along
    once, with a notice for what the model cannot take. Each page of a document gets the next free
    number of a source. Raises ConfigError, with nothing stored, also where the model cannot see.
    """
    log, session, lent = held
    found = await checked_files(files, backend)
    known = [file.attachment for file in found]
    if replaces and not files:
        events = await log.aside(log.read, session, replaces - 1, 1)
        known = [Attachment(**each) for e in events for each in e.data.get("attachments", ())]
    await takes(known)
    await log.aside(log.attachments.put, session, found)
    there = {f.digest for f in known} | {f.digest for m in before for f in m.attachments}
    notices: list[Pending] = []
    for file in lent:
        if file.digest in there:
            continue
        try:
            await takes([file])
            known.append(file)
        except ConfigError as error:
            what = f"{error.message} This answer does without it."
            told = {"code": "file_left_out", "message": what, "remedy": error.remedy}
            notices.append(("notice", told))
    n = max((s.n or 0 for message in before for s in message.sources), default=0) + 1
    numbered = []
    for each in known:
        numbered.append(replace(each, n=n if each.pages else 0))
        n += each.pages
    return numbered, notices


async def checked_files(files: Sequence[NewFile], backend: Backend) -> list[AttachedFile]:
    """Returns the files as they are stored; equal ones once. Raises ConfigError."""
    if len(files) > MOST_FILES:
        what = f"There are {len(files)} files; {MOST_FILES} is the most for one question."
        raise ConfigError("attachment_too_large", what, "Ask about a few at a time.")
    found: dict[str, AttachedFile] = {}
    together = 0
    for file in files:
        checked = await asyncio.to_thread(checked_file, file)
        together += len(file.data)
        if together > MOST_TOGETHER:
            what = f"The files are larger than {size_words(MOST_TOGETHER)} together."
            raise ConfigError("attachment_too_large", what, "Ask about a few at a time.")
        if not checked.attachment.is_image:
            checked = await _read(checked, backend)
        found.setdefault(checked.attachment.digest, checked)
    return list(found.values())


def add_files(log: EventLog, project: str, files: list[AttachedFile]) -> Project:
    """Adds checked files to a project. Raises ConfigError for too many."""
    fresh = {file.attachment.digest: file.attachment for file in files}
    every = {**{f.digest: f for f in log.projects.get(project).files}, **fresh}
    if len(every) > MOST_FILES or sum(file.size for file in every.values()) > MOST_TOGETHER:
        what = f"A project holds at most {MOST_FILES} files, {size_words(MOST_TOGETHER)} together."
        remedy = "Remove one first, or put large ones into the library."
        raise ConfigError("attachment_too_large", what, remedy)
    return log.projects.add_files(project, files)


async def check_takes(provider: Provider, model: str, files: Sequence[Attachment]) -> None:
    """Raises ConfigError naming the first file that this model can make nothing of."""
    types = await abilities_of(provider).files(model) if files else frozenset()
    for file in files:
        kind, name = file.media_type, file.name
        if kind in types:
            continue
        if kind in types | IMAGES and types & IMAGES:
            what = f"{model} takes no {kind.partition('/')[2].upper()} images, as {name} is one."
            raise ConfigError("cannot_see", what, "Send it as PNG or JPEG.")
        if kind in IMAGES:
            what = f"{model} cannot see images, and {name} is one."
            remedy = "Choose a model that can (`searchloop models` says which), or leave it out."
            raise ConfigError("cannot_see", what, remedy)
        if not file.length:
            what = f"{name} holds pictures and no text, and {model} reads only the text of a PDF."
            raise ConfigError("cannot_see", what, "Choose a model that takes PDFs.")


def _tidy(name: str) -> str:
    """Returns the last part of a name, on one short line without control characters."""
    last = PurePosixPath(name.replace("\\", "/")).name
    line = " ".join(neutral("".join(c if c.isprintable() else " " for c in last)).split())
    return (line if len(line) <= _NAME else f"…{line[1 - _NAME :]}") or "file"


def checked_file(file: NewFile) -> AttachedFile:
    """Finds out what a file is. Raises ConfigError for one that is not what it says."""
    name, data = _tidy(file.name), file.data
    if not data:
        raise ConfigError("bad_attachment", f"{name} is empty.", "Choose another file.")
    size, claimed = image_size(data), _claimed(file)
    picture = size or (claimed == "an image" and _OTHERS.match(data))
    really = "an image" if picture else "a PDF" if b"%PDF-" in data[:1024] else "a document"
    if claimed and claimed != really:
        what = f"{name} is not what it says: it should be {claimed}, and its bytes are not."
        raise ConfigError("bad_attachment", what, "Send the file itself, under its right name.")
    most = MOST_IMAGE if really == "an image" else MOST_DOCUMENT
    if len(data) > most:
        what = f"{name} is larger than {size_words(most)}, which is the most."
        raise ConfigError(
            "attachment_too_large", what, "Make it smaller, or send the part that matters."
        )
    kind = PDF if really == "a PDF" else file.media_type.partition(";")[0].strip().lower()
    width = height = 0
    if really == "an image":
        if size is None:
            what = f"{name} is an image of a kind that models do not take."
            raise ConfigError("bad_attachment", what, "Send it as PNG, JPEG, WebP or GIF.")
        kind, width, height = size
        _check_image(name, kind, width, height, data)
    elif kind in _GENERIC or kind in IMAGES:
        kind = "text/plain"
    digest = sha256(data).hexdigest()
    return AttachedFile(Attachment(name, kind, len(data), digest, width, height), data)


def _claimed(file: NewFile) -> str | None:
    """Returns what name or media type say; None for what says nothing."""
    kind = guess_type(_tidy(file.name), strict=False)[0] or ""
    kind = kind or file.media_type.partition(";")[0].strip().lower()
    if kind in _GENERIC:
        return None
    return "an image" if kind.startswith("image/") else "a PDF" if kind == PDF else "a document"


def _check_image(name: str, kind: str, width: int, height: int, data: bytes) -> None:
    if not (width and height and _is_whole(kind, data)):
        what = f"{name} is damaged: its picture does not come to an end."
        raise ConfigError("bad_attachment", what, "Send another copy of it.")
    if max(width, height) > LONGEST_SIDE:
        what = f"{name} is {width} x {height} pixels; a side has at most {LONGEST_SIDE}."
        raise ConfigError("attachment_too_large", what, "Make it smaller.")


def image_size(data: bytes) -> tuple[str, int, int] | None:
    """Returns media type, width and height of a PNG, JPEG, GIF or WebP; None for other bytes.

    A size that cannot be found is 0 x 0.
    """
    try:
        if data.startswith(_STARTS[0]):
            return ("image/png", *struct.unpack(">II", data[16:24]))
        if data.startswith((b"GIF87a", b"GIF89a")):
            return ("image/gif", *struct.unpack("<HH", data[6:10]))
        if data.startswith(_STARTS[1]):
            return ("image/jpeg", *_jpeg_size(data))
        if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
            return ("image/webp", *_webp_size(data))
    except (struct.error, IndexError):
        kinds = zip(_STARTS, ("png", "jpeg", "gif", "webp"), strict=False)
        return (f"image/{next(k for start, k in kinds if data.startswith(start))}", 0, 0)
    return None


def _jpeg_size(data: bytes) -> tuple[int, int]:
    """Walks over the segments to the frame header."""
    at = 2
    while True:
        while data[at] == 0xFF and data[at + 1] == 0xFF:  # fill bytes
            at += 1
        if data[at] != 0xFF:
            return 0, 0
        kind, length = data[at + 1], struct.unpack(">H", data[at + 2 : at + 4])[0]
        if 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return width, height
        at += 2 + length


def _webp_size(data: bytes) -> tuple[int, int]:
    kind = data[12:16]
    if kind == b"VP8X":
        width, height = (int.from_bytes(data[at : at + 3], "little") + 1 for at in (24, 27))
        return width, height
    if kind == b"VP8L":
        bits = struct.unpack("<I", data[21:25])[0]
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    width, height = struct.unpack("<HH", data[26:30])
    return width & 0x3FFF, height & 0x3FFF


def _is_whole(kind: str, data: bytes) -> bool:
    """Returns whether an image comes to its end; the pixels themselves are not decoded."""
    match kind:
        case "image/png":
            return data.rstrip(b"\0").endswith(_END_OF_PNG)
        case "image/jpeg":
            return data.rfind(b"\xff\xd9") > data.find(b"\xff\xda") > 0
        case "image/gif":
            return data.rstrip(b"\0")[-1:] == b";"
    return len(data) >= int.from_bytes(data[4:8], "little") + 8


async def _read(file: AttachedFile, backend: Backend) -> AttachedFile:
    """Reads the pages of a document. Raises ConfigError for one that cannot be read."""
    known = file.attachment
    asked = {"name": known.name, "media_type": known.media_type}
    try:
        found = await backend.ask(
            "/api/read-file", {**asked, "data": b64encode(file.data).decode()}
        )
        error, pages = found["error"], tuple(map(str, found["pages"]))
    except ToolError as problem:
        words = f"{known.name}: {problem.message}"
        raise ConfigError("bad_attachment", words, problem.remedy) from None
    except (LookupError, TypeError):
        what = f"The search backend cannot read files, so {known.name} is not read."
        raise ConfigError("bad_attachment", what, "Bring the search backend up to date.") from None
    if error and not (known.media_type == PDF and pages):
        why = str(error.get("message", ""))
        what = f"{known.name} cannot be read: {why[:1].lower()}{why[1:]}"
        if error.get("code") == "unsupported_type":
            what = f"{known.name} is neither an image nor a document with text."
        elif error.get("code") == "bad_pdf":
            what = f"{known.name} is damaged or needs a password."
        raise ConfigError("bad_attachment", what, "Send another copy of it, or its text.")
    length = sum(map(len, pages))
    return file._replace(attachment=replace(known, pages=len(pages), length=length), texts=pages)
