"""What protects a run, made of the settings: the user's rules, our own keys, the approvals."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agent.approvals import Approvals, Approve
from agent.egress import Egress, Exposure
from agent.guard import Guard
from agent.leaks import Secrets
from agent.log import EventLog
from agent.policy import Policy, load_policy
from agent.search_path import SearchPath, local_path
from agent.settings import Settings
from agent.sources import SourceTable
from agent.types import Message

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
_WHY = {
    "review": "You want to see what is looked up before it leaves",
    "private": "Your own data is in this conversation",
}


class Protection:
    """Guards for runs; `approvals` is where the user's answers come in."""

    def __init__(self, settings: Settings, log: EventLog) -> None:
        self._settings = settings
        self._log = log
        self._secrets: Secrets | None = None
        self.approvals = Approvals(log)

    def use(self, settings: Settings) -> None:
        """From now on these settings hold: there may be new keys."""
        self._settings, self._secrets = settings, None

    def policy(self) -> Policy:
        """The rules as they stand now. Raises ConfigError for a broken file."""
        return load_policy(self._settings.home)

    def guard(
        self,
        session_id: str,
        policy: Policy,
        approve: Approve,
        sources: SourceTable,
        messages: Sequence[Message],
    ) -> Guard:
        """The gate of one run."""
        if self._secrets is None:
            # Every secret of this process, whoever it is for: none of them has to leave in a call.
            env = self._settings.env
            named = {n: env[n] for n in env if _SECRET_NAME.search(n)}
            self._secrets = Secrets(named)
        mixed = policy.private_and_untrusted
        return Guard(
            policy=policy,
            egress=Egress(self._secrets, sources, Exposure.of(messages), mixed),
            live=lambda: self._log.session(session_id),
            ask=lambda request, emit: self.approvals.ask(session_id, request, emit),
            always=lambda: self.approvals.always(session_id),
            approve=approve,
        )


def reviewable(
    path: SearchPath, policy: Policy, messages: Sequence[Message]
) -> tuple[SearchPath, dict[str, str] | None]:
    """The path for a turn whose queries must be seen first, and the notice that says so.

    What a provider searches by itself nobody can look at before it leaves, so such a turn takes
    our own search.
    """
    if path.native is None:
        return path, None
    private = policy.private_and_untrusted != "allow" and Exposure.of(messages).private
    if not (policy.review_queries or private):
        return path, None
    why = _WHY["review" if policy.review_queries else "private"]
    return local_path(), {
        "code": "native_search_held_back",
        "message": f"{why}, and what the model searches for by itself cannot be shown first. "
        "Using local search for this turn.",
        "remedy": "Change the rules for approvals to let the model search by itself.",
    }
