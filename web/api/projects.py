"""Handlers for projects, and for what a person tells every chat."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from searchloop.agent.errors import ConfigError, Conflict
from searchloop.agent.log.session import Session
from searchloop.agent.run.prompts import change_project, make_project, own_words, save_words
from searchloop.agent.run.question import change_session
from searchloop.agent.run.question.files import NewFile, add_files, checked_files
from searchloop.web.api.calls import Call, Handlers, Reply
from searchloop.web.api.openapi import ANY_FILE, route

_EVERY = 100_000  # sessions
_FATES = {"keep": {}, "archive": {"archived": True}, "delete": None}


class ProjectsApi(Handlers):
    """/api/projects, and /api/instructions."""

    @route("get", "/api/projects", "Projects")
    def list(self, call: Call) -> Reply:
        """Lists the projects by name."""
        return Reply({"projects": [project.as_dict() for project in self._log.projects.all()]})

    @route("get", "/api/projects/{project}", "Project")
    def read(self, call: Call) -> Reply:
        """Returns one project."""
        return Reply(self._log.projects.get(call.path["project"]).as_dict())

    @route("post", "/api/projects", "Project", "NewProject", 201)
    def create(self, call: Call) -> Reply:
        """Makes a project."""
        made = make_project(self._log, self._services.settings, self._checked(call))
        return Reply(made.as_dict(), 201)

    @route("patch", "/api/projects/{project}", "Project", "ProjectChanges")
    def change(self, call: Call) -> Reply:
        """Changes a project. Its instructions hold from the next question on."""
        parts = self._log, self._services.settings, call.path["project"]
        return Reply(change_project(*parts, self._checked(call)).as_dict())

    def _checked(self, call: Call) -> dict[str, Any]:
        """Raises an AgentError for a model that no provider has."""
        if model := call.body.get("model"):
            self._on_loop.do(lambda: self._services.runner.provider(model))
        return dict(call.body)

    @route("delete", "/api/projects/{project}", None, query=("chats",))
    def delete(self, call: Call) -> Reply:
        """Deletes a project. `chats` says what becomes of its chats, where it has any."""
        project, wanted = self._log.projects.get(call.path["project"]), call.query.get("chats")
        if wanted not in _FATES and (wanted or project.chats):
            some = f"{project.chats} chat{'s' * (project.chats != 1)}"
            what = f"The project {project.name!r} has {some}."
            remedy = "Say what becomes of them: chats=keep, chats=archive or chats=delete."
            raise ConfigError("chats_undecided", what, remedy)
        for session in self._log.sessions(limit=_EVERY, project=project.id):
            with suppress(Conflict):  # deleted meanwhile
                self._let_go(session, _FATES[wanted or "keep"])
        self._log.projects.delete(project.id)
        return Reply(status=204)

    def _let_go(self, session: Session, changes: dict[str, Any] | None) -> None:
        if changes is None:
            self._delete_session(session.id)
        else:
            log, settings = self._log, self._services.settings
            change_session(log, settings, session.id, {**changes, "project": None})

    @route("post", "/api/projects/{project}/files", "Project", "NewAttachment", 201)
    def add_file(self, call: Call) -> Reply:
        """Adds a file, which goes along with the next question of each of its chats."""
        project = self._log.projects.get(call.path["project"])
        found = self._on_loop(checked_files([NewFile.decode(call.body)], self._services.backend))
        return Reply(add_files(self._log, project.id, found).as_dict(), 201)

    @route("get", "/api/projects/{project}/files/{digest}", ANY_FILE)
    def file(self, call: Call) -> Reply:
        """Returns a file of a project, to be saved."""
        project, digest = self._log.projects.get(call.path["project"]), _digest(call)
        names = {file.digest: file.name for file in project.files}
        if digest not in names:
            raise _no_file()
        data = self._log.projects.attachments.data(project.id, digest) or b""
        return Reply(data, file=names[digest], kind="application/octet-stream")

    @route("delete", "/api/projects/{project}/files/{digest}", "Project")
    def remove_file(self, call: Call) -> Reply:
        """Removes a file; chats that were asked with it keep it."""
        project = self._log.projects.get(call.path["project"])
        if _digest(call) not in {file.digest for file in project.files}:
            raise _no_file()
        return Reply(self._log.projects.remove_file(project.id, _digest(call)).as_dict())

    @route("get", "/api/instructions", "OwnWords")
    def words(self, call: Call) -> Reply:
        """Returns what the person tells every chat."""
        return Reply(own_words(self._services.settings.home).as_dict())

    @route("patch", "/api/instructions", "OwnWords", "OwnWordsChanges")
    def change_words(self, call: Call) -> Reply:
        """Changes what the person tells every chat, from the next question on."""
        return Reply(save_words(self._services.settings.home, call.body).as_dict())


def _digest(call: Call) -> str:
    return call.path["digest"]


def _no_file() -> ConfigError:
    return ConfigError("no_attachment", "This project holds no such file.", "Add it again.")
