"""The user's rules for calls that need approval, read and changed."""

from __future__ import annotations

from pathlib import Path

from agent.policy import Policy, load_policy, save_policy
from web.calls import Call, Reply


class PolicyApi:
    """GET and PUT /api/policy."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def read(self, call: Call) -> Reply:
        """The rules as they stand."""
        return Reply(load_policy(self._home).as_dict())

    def write(self, call: Call) -> Reply:
        """Replaces them all; a fault names its rule, and nothing is changed then."""
        policy = Policy.of(call.body)
        save_policy(self._home, policy)
        return Reply(policy.as_dict())
