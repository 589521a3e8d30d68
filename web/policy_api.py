"""The user's rules for calls that need approval, read and changed."""

from __future__ import annotations

from pathlib import Path

from agent.errors import ConfigError
from agent.policy import DEFAULT_POLICY, Held, Policy, load_policy, save_policy
from web.calls import Call, Reply


class PolicyApi:
    """GET and PUT /api/policy."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def read(self, call: Call) -> Reply:
        """The rules as they stand."""
        return Reply(load_policy(self._home).as_dict())

    def held_back(self) -> dict[str, Held | None]:
        """Why a model may not search by itself: always (`now`), and with private data in the chat.

        Of rules that cannot be read nothing is said here: `read` and the next question say it.
        """
        try:
            policy = load_policy(self._home)
        except ConfigError:
            policy = DEFAULT_POLICY
        return {
            "now": policy.held_back(private=False),
            "private": policy.held_back(private=True),
        }

    def write(self, call: Call) -> Reply:
        """Replaces them all; a fault names its rule, and nothing is changed then."""
        policy = Policy.of(call.body)
        save_policy(self._home, policy)
        return Reply(policy.as_dict())
