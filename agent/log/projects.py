"""Projects: folders of a person's chats, with instructions, files and defaults of their own.

A chat names its project in its settings; what a project holds is one JSON object, so that a new
field needs no new column. So is what is known of a program that has a key of its own.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from searchloop.agent.errors import ConfigError, StoreError
from searchloop.agent.log.contract import (
    AttachedFile,
    AttachmentStore,
    Database,
    delete_files,
    insert_files,
    rows_of,
)
from searchloop.agent.log.session import FAR
from searchloop.agent.text import column_text, object_in, to_json
from searchloop.agent.types import Search
from searchloop.agent.types.attachments import Attachment
from searchloop.analysis.told import did_you_mean

_COLUMNS = "id, owner, name, data, created, updated"
_INTO = f"INSERT INTO projects ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"
_FIELDS = ("instructions", "model", "agent", "search", "folders", "templates")


@dataclass(frozen=True, slots=True)
class Project:
    """A project. None leaves a choice to the chat; `chats` counts those that are in it.

    Searches in the library keep to `folders` of it, by path or name; without any they see all.
    `templates` are questions with fields, as `agent.run.prompts.Templates` has them for all chats.
    """

    id: str
    name: str
    created: float
    updated: float
    instructions: str = ""
    model: str | None = None
    agent: str | None = None
    search: Search | None = None
    folders: tuple[str, ...] = ()
    templates: tuple[Mapping[str, str], ...] = ()
    files: tuple[Attachment, ...] = ()
    chats: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Returns the project object of every surface."""
        return {**asdict(self), "files": [file.as_dict() for file in self.files]}

    def data(self) -> str:
        """Returns the JSON of its column `data`."""
        own = {name: getattr(self, name) for name in _FIELDS}
        return to_json({**own, "files": [file.as_dict() for file in self.files]})


class ProjectStore:
    """The projects of one person in a store."""

    def __init__(self, db: Database, person: str = "") -> None:
        self._db, self._person = db, person
        self.attachments = AttachmentStore(db, self._owns)

    def all(self) -> list[Project]:
        """Lists the projects by name."""
        query = f"SELECT {_COLUMNS} FROM projects WHERE owner = ?"
        chats = self._chats()
        found = [_project(row, chats) for row in rows_of(self._db, query, (self._person,))]
        return sorted(found, key=lambda each: (each.name.casefold(), each.created))

    def get(self, project: str) -> Project:
        """Returns a project by its id. Raises ConfigError('no_project')."""
        row = self._row(project)
        if row is None:
            raise no_project(project)
        return _project(row, self._chats())

    def named(self, name: str) -> Project:
        """Returns the one project of this name or id. Raises ConfigError."""
        with suppress(ConfigError):
            return self.get(name)
        found = [each for each in self.all() if each.name.casefold() == name.strip().casefold()]
        if len(found) > 1:
            what = f"{len(found)} projects are called {name[:60]!r}."
            raise ConfigError("no_project", what, "Give its id; `searchloop projects` lists them.")
        if not found:
            raise no_project(name, (each.name for each in self.all()))
        return found[0]

    def create(self, name: str, fields: Mapping[str, Any]) -> Project:
        """Makes a project of checked fields."""
        made, now = secrets.token_hex(12), time.time()
        project = Project(made, name, now, now, **fields)
        with self._db.transaction() as db:
            row = (made, self._person, column_text(name), project.data(), now, now)
            db.execute(_INTO, row)
        return project

    def change(self, project: str, change: Callable[[Project], Project]) -> Project:
        """Stores what `change` makes of a project; nobody else changes it meanwhile."""
        with self._db.transaction() as db:
            changed = change(self._locked(db, project))
            query = "UPDATE projects SET name = ?, data = ?, updated = ? WHERE id = ?"
            row = (column_text(changed.name), changed.data(), time.time(), project)
            db.execute(query, row)
        return self.get(project)

    def add_files(self, project: str, files: Sequence[AttachedFile]) -> Project:
        """Adds files, and none that is there already."""
        known = [file.attachment for file in files]
        digests = {each.digest for each in known}
        with self._db.transaction(durable=True) as db:
            now = self._locked(db, project)
            kept = [each for each in now.files if each.digest not in digests]
            rows = [(f.attachment.digest, f.data, to_json(f.texts)) for f in files]
            insert_files(db, project, rows)
            self._keep_files(db, now, (*kept, *known))
        return self.get(project)

    def remove_file(self, project: str, digest: str) -> Project:
        """Removes a file; chats that were asked with it keep it."""
        with self._db.transaction(durable=True) as db:
            now = self._locked(db, project)
            delete_files(db, project, digest)
            self._keep_files(db, now, [each for each in now.files if each.digest != digest])
        self._db.leave_nothing()
        return self.get(project)

    def lend(self, project: Project, session: str) -> list[Attachment]:
        """Lets a session of the same person hold the files of a project too."""
        with self._db.transaction(durable=True) as db:
            for file in project.files:
                db.execute("UPDATE files SET digest = digest WHERE digest = ?", (file.digest,))
                db.execute(
                    "INSERT INTO attachments (session, digest) VALUES (?, ?)"
                    " ON CONFLICT DO NOTHING",
                    (session, file.digest),
                )
        return list(project.files)

    def delete(self, project: str) -> None:
        """Deletes a project and its files; its chats are the caller's business."""
        with self._db.transaction(durable=True) as db:
            self._locked(db, project)
            delete_files(db, project)
            db.execute("DELETE FROM projects WHERE id = ?", (project,))
        self._db.leave_nothing()

    def archived(self) -> int:
        """Returns how many chats of this person are archived, in a project or not."""
        query = "SELECT count(*) FROM sessions WHERE owner = ? AND archived = 1"
        [[count]] = rows_of(self._db, query, (self._person,))
        return int(count)

    def _owns(self, project: str) -> bool:
        return self._row(project) is not None

    def _row(self, project: str) -> Sequence[Any] | None:
        query = f"SELECT {_COLUMNS} FROM projects WHERE id = ? AND owner = ?"
        return next(iter(rows_of(self._db, query, (project, self._person))), None)

    def _locked(self, db: Any, project: str) -> Project:
        """Reads a project in a transaction that no other can change it before."""
        query = f"UPDATE projects SET id = id WHERE id = ? AND owner = ? RETURNING {_COLUMNS}"
        row = db.execute(query, (project, self._person)).fetchone()
        if row is None:
            raise no_project(project)
        return _project(row, {})

    def _keep_files(self, db: Any, project: Project, files: Sequence[Attachment]) -> None:
        data = {**json.loads(project.data()), "files": [file.as_dict() for file in files]}
        query = "UPDATE projects SET data = ?, updated = ? WHERE id = ?"
        db.execute(query, (to_json(data), time.time(), project.id))

    def _chats(self) -> Mapping[str, int]:
        query = "SELECT project, count(*) FROM sessions WHERE owner = ? GROUP BY project"
        return dict(rows_of(self._db, query, (self._person,)))


def copy_projects(source: Database, target: Database) -> None:
    """Copies the projects that another store lacks, with their files; none that is not valid."""
    known = {row[0] for row in rows_of(target, "SELECT id FROM projects")}
    for row in rows_of(source, f"SELECT {_COLUMNS} FROM projects"):
        if row[0] not in known and _is_valid(row):
            with target.transaction() as db:
                db.execute(_INTO, row)
                AttachmentStore(source).copy(row[0], db)


def _is_valid(row: Sequence[Any]) -> bool:
    """Returns whether every list and either store can take the row of a project."""
    texts, dates = row[:4], row[4:]
    try:
        to_json(_project(row, {}).as_dict())
    except (AttributeError, TypeError, ValueError):
        return False
    whole = all(isinstance(text, str) for text in texts)
    return whole and all(isinstance(t, float) and abs(t) < FAR for t in dates)


def _project(row: Sequence[Any], chats: Mapping[str, int]) -> Project:
    made, _, name, text, created, updated = row
    data = object_in(text) or {}
    own = {field: data[field] for field in _FIELDS if data.get(field) is not None}
    own |= {name: tuple(own.get(name, ())) for name in ("folders", "templates")}
    files = tuple(Attachment(**each) for each in data.get("files", ()))
    return Project(made, name, created, updated, **own, files=files, chats=chats.get(made, 0))


def no_project(project: str, known: Iterable[str] = ()) -> ConfigError:
    """Makes the error for a project that is not there, or is somebody else's."""
    what = f"There is no project {project[:60]!r}."
    near = did_you_mean(project, known)
    return ConfigError("no_project", what, f"{near}`searchloop projects` lists those there are.")


_PROGRAM = (
    "INSERT INTO programs (owner, name, digest, data) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
)


class ProgramStore:
    """The programs that have keys of their own: an object for each, by its owner and name."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def all(self) -> list[dict[str, Any]]:
        """Returns those of everybody, by name."""
        rows = rows_of(self._db, "SELECT data FROM programs ORDER BY owner, name")
        return [json.loads(row[0]) for row in rows]

    def with_digest(self, digest: str) -> dict[str, Any] | None:
        """Returns the one whose key has this digest."""
        rows = rows_of(self._db, "SELECT data FROM programs WHERE digest = ?", (digest,))
        return json.loads(rows[0][0]) if rows else None

    def add(self, program: Mapping[str, Any]) -> bool:
        """Adds one. Returns False where its name or key is there already."""
        named = [program[name] for name in ("owner", "name", "digest")]
        return self._done(f"{_PROGRAM} RETURNING name", *named, to_json(program))

    def change(self, program: Mapping[str, Any]) -> bool:
        """Replaces the one of the same name. Returns False where there is none."""
        change = "UPDATE programs SET data = ? WHERE owner = ? AND name = ? RETURNING name"
        return self._done(change, to_json(program), program["owner"], program["name"])

    def remove(self, owner: str, name: str) -> bool:
        """Removes one. Returns False where there is none."""
        gone = "DELETE FROM programs WHERE owner = ? AND name = ? RETURNING name"
        return self._done(gone, owner, name)

    def _done(self, query: str, *values: str) -> bool:
        with self._db.transaction(durable=True) as db:
            return bool(db.execute(query, [column_text(value) for value in values]).fetchall())


def copy_programs(source: Database, target: Database) -> None:
    """Copies the programs that another store lacks, as far as they can be read."""
    with suppress(StoreError):
        rows = rows_of(source, "SELECT owner, name, digest, data FROM programs")
        for row in (row for row in rows if all(isinstance(text, str) for text in row)):
            with target.transaction() as db:
                db.execute(_PROGRAM, row)
