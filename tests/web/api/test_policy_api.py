"""The rules for approvals over the API: read, replaced as a whole, refused with the fault named."""

from __future__ import annotations

from pathlib import Path

from searchloop.agent.guard.guard import Policy, load_policy
from tests.web.house import with_api

RULES = {
    "review_queries": True,
    "private_and_untrusted": "refuse",
    "rules": [{"action": "deny", "server": "github", "tool": "*delete*"}],
}


async def test_rules_are_read_and_replaced(tmp_path: Path) -> None:
    """What is put holds from the next question on; a fault is named and changes nothing."""
    async with with_api(tmp_path) as (ask, house):
        assert (await ask("GET", "/api/policy")).data == Policy().as_dict()
        put = await ask("PUT", "/api/policy", RULES)
        assert (put.status, put.data) == (200, RULES)
        assert load_policy(house.settings.home) == Policy.of(RULES)
        broken = {"rules": [{"action": "deny"}, {"action": "perhaps"}]}
        refused = await ask("PUT", "/api/policy", broken)
        assert refused.status == 400
        assert "rule 2" in refused.error["message"]
        assert (await ask("GET", "/api/policy")).data == RULES


async def test_what_holds_a_models_own_search_back_is_told(tmp_path: Path) -> None:
    """Beside the models, for the switch: always or with private data; the default where the rules
    cannot be read, which the next question says."""
    async with with_api(tmp_path) as (ask, house):

        async def held() -> object:
            return (await ask("GET", "/api/models")).data["held_back"]

        assert await held() == {"now": None, "private": "private"}
        await ask("PUT", "/api/policy", {"private_and_untrusted": "allow"})
        assert await held() == {"now": None, "private": None}
        await ask("PUT", "/api/policy", RULES)
        assert await held() == {"now": "review", "private": "review"}
        (house.settings.home / "policy.json").write_text("{", "utf-8")
        assert await held() == {"now": None, "private": "private"}
