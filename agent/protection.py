"""What protects a run, made of the settings: the user's rules, our own keys, the approvals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from agent.approvals import Approvals, Approve
from agent.egress import Egress, Exposure
from agent.guard import Guard
from agent.known_secrets import secrets_of
from agent.leaks import Secrets
from agent.log import EventLog
from agent.policy import Policy, load_policy
from agent.search_path import SearchPath, local_path
from agent.session import Session
from agent.settings import Settings
from agent.sources import SourceTable
from agent.tools import ToolSource
from agent.types import Message

_WHY = {
    "review": "You want to see what is looked up before it leaves",
    "private": "Your own data is in this conversation",
}


class Protection:
    """Guards for runs; `approvals` is where the user's answers come in."""

    def __init__(
        self, settings: Settings, log: EventLog, sources: Iterable[ToolSource] = ()
    ) -> None:
        self._settings = settings
        self._log = log
        self._sources = tuple(sources)
        self._secrets: tuple[Mapping[str, str], Secrets] = ({}, Secrets({}))
        self.approvals = Approvals(log)

    def use(self, settings: Settings) -> None:
        """From now on these settings hold."""
        self._settings = settings

    def policy(self) -> Policy:
        """The rules as they stand now. Raises ConfigError for a broken file."""
        return load_policy(self._settings.home)

    def guard(
        self,
        session: Session,
        policy: Policy,
        approve: Approve,
        sources: SourceTable,
        messages: Sequence[Message],
    ) -> Guard:
        """The gate of one run."""
        session_id = session.id
        return Guard(
            policy=policy,
            egress=Egress(
                lambda: self._known(session.workspace),
                sources,
                Exposure.of(messages),
                policy.private_and_untrusted,
            ),
            live=lambda: self._log.session(session_id),
            ask=lambda request, emit: self.approvals.ask(session_id, request, emit),
            always=lambda: self.approvals.always(session_id),
            approve=approve,
        )

    def _known(self, workspace: str | None) -> Secrets:
        """Every secret of this process, whoever it is for: none of them has to leave in a call."""
        named = secrets_of(self._settings.env)
        for source in self._sources:
            named |= source.secrets(workspace)
        if named != self._secrets[0]:
            self._secrets = (named, Secrets(named))
        return self._secrets[1]


def reviewable(
    path: SearchPath, policy: Policy, messages: Sequence[Message]
) -> tuple[SearchPath, Mapping[str, str] | None]:
    """The path for a turn whose queries must be seen first, and the notice that says so, if any.

    What a provider searches by itself nobody can look at before it leaves, so such a turn takes
    our own search.
    """
    if path.native is None:
        return path, path.notice
    held = policy.held_back(private=Exposure.of(messages).private)
    if held is None:
        return path, path.notice
    return local_path(), {
        "code": "native_search_held_back",
        "message": f"{_WHY[held]}, and what the model searches for by itself cannot be shown "
        "first. Using local search for this turn.",
        "remedy": "Change the rules for approvals to let the model search by itself.",
    }
