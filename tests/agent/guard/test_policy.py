"""Rules of the user: which one wins, what they match, and what a broken file says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.agent.errors import ConfigError
from searchloop.agent.guard.guard import Policy, Rule, load_policy, save_policy
from searchloop.agent.tools import Tool
from searchloop.agent.types import Effect
from tests.agent.guard import guarding
from tests.tables import each_row


def made(name: str, effect: Effect = "read", server: str | None = None) -> Tool:
    """A tool that would do nothing."""
    return guarding.made(name, effect, server=server, origin="mcp" if server else "ours")[0]


DEFAULTS = [
    (made("list_directory"), "allow"),
    (made("web_search", "network"), "allow"),
    (made("create_file", "write"), "confirm"),
    (made("run", "exec"), "confirm"),
    (made("mcp_github_issue", "exec", "github"), "confirm"),
    (made("mcp_github_look", "network", "github"), "confirm"),
    (made("mcp_github_list", "read", "github"), "allow"),  # the user said so in their mcp.json
]


@each_row(("tool", "action"), DEFAULTS, ids=lambda v: getattr(v, "spec", None))
def test_without_rules_what_changes_something_is_confirmed(tool: Tool, action: str) -> None:
    """Reading and searching go on, the rest asks."""
    assert Policy().decide(tool, {})[0] == action


def test_queries_can_be_reviewed() -> None:
    """The one who wants to see what is looked up is asked for each look-up."""
    search = replace(made("web_search", "network"), web=True)
    assert Policy(review_queries=True).decide(search, {"query": "tides"})[0] == "confirm"


MATCHES: list[tuple[dict[str, Any], Tool, dict[str, str], bool]] = [
    ({"tool": "create_*"}, made("create_file", "write"), {}, True),
    ({"tool": "create_*"}, made("replace_in_file", "write"), {}, False),
    ({"effect": "write"}, made("create_file", "write"), {}, True),
    ({"server": "git*"}, made("x", "exec", "github"), {}, True),
    ({"server": "git*"}, made("x", "exec"), {}, False),
    ({"path": "notes/*"}, made("create_file", "write"), {"path": "notes/a.md"}, True),
    ({"path": "notes"}, made("create_file", "write"), {"path": "notes/deep/a.md"}, True),
    ({"path": "notes/*"}, made("create_file", "write"), {"path": "notes/../a.md"}, False),
    ({"path": "notes/*"}, made("create_file", "write"), {}, False),
    ({"domain": "example.org"}, made("get", "network"), {"url": "https://a.Example.org./x"}, True),
    ({"domain": "example.org"}, made("get", "network"), {"url": "https://anexample.org/"}, False),
    ({"domain": "bücher.example"}, made("g"), {"url": "https://xn--bcher-kva.example/"}, True),
    *(
        ({"domain": "evil.example"}, made("get", "network", "a"), {"url": url}, True)
        for url in (
            *("evil.example", "//evil.example/x", "EVIL.example:443", "https:evil.example/"),
            *("see https://ok.example/ and https://evil.example/", "a@evil.example"),
            *("https://ok.example/?u=https://evil.example/", '{"host": "www.evil.example"}'),
            *("https:\\\\evil.example\\x", "https://%65vil.example/", "https://evil\t.example"),
            *("https://evil\u200b.example", "https://ｅvil。example/", "git@evil.example:x/y"),
        )
    ),
    *(
        ({"domain": "evil.example"}, made("get", "network", "a"), {"url": url}, False)
        for url in ("https://notevil.example/", "evil.example.ok", "https://ok.example/evil")
    ),
    ({"domain": "evil.example"}, made("note", "write"), {"content": "see evil.example"}, False),
    *(
        ({"path": "secret"}, made("write", "write", "a"), {key: path}, True)
        for key in ("path", "dest", "paths")
        for path in ("SECRET/x", "./secret//x", "ｓecret/x", "secre\u200bt/x", "secret\\x")
    ),
    ({"path": "/home/*/x"}, made("write", "write", "a"), {"uri": "file:///home/a/x"}, True),
    ({"path": "secret"}, made("create_file", "write"), {"content": "secret/x"}, False),
]


@each_row(("rule", "tool", "arguments", "matches"), MATCHES)
def test_what_a_rule_matches(
    rule: dict[str, Any], tool: Tool, arguments: dict[str, str], matches: bool
) -> None:
    """By tool, effect, server, path and domain; a path is taken for what it comes to."""
    policy = Policy.of({"rules": [{"action": "deny", **rule}]})
    assert (policy.decide(tool, arguments)[0] == "deny") is matches


def test_allowing_needs_every_place_and_forbidding_one() -> None:
    """A call that names two places is allowed for both or not at all."""
    tool = made("copy", "write")
    both = {"source": "notes/a", "destination": "secret/b"}
    allow = Policy.of({"rules": [{"action": "allow", "path": "notes/*"}]})
    deny = Policy.of({"rules": [{"action": "deny", "path": "secret/*"}]})
    assert allow.decide(tool, both)[0] == "confirm"
    theirs, elsewhere = made("copy", "write", "a"), {"path": "notes/a", "out": "/etc/b"}
    assert allow.decide(theirs, elsewhere)[0] == "confirm"
    assert allow.decide(theirs, {"path": "notes/a", "out": "notes/b"})[0] == "allow"
    assert allow.decide(theirs, {"path": "NOTES/a"})[0] == "confirm"
    site = Policy.of({"rules": [{"action": "allow", "domain": "ok.example"}]})
    for url, action in (("", "allow"), ("?u=https://evil.example/", "confirm")):
        assert site.decide(theirs, {"url": f"https://ok.example/{url}"})[0] == action
    assert deny.decide(tool, both)[0] == "deny"
    confirm = Policy.of({"rules": [{"action": "confirm", "path": "src"}]})
    for place, action in (("src/a", "confirm"), ("a", "allow")):  # in a folder that is allowed
        assert confirm.decide(tool, {"path": place}, allowed=True)[0] == action


ACTIONS = ["allow", "confirm", "deny"]


@given(st.lists(st.sampled_from(ACTIONS), min_size=1, max_size=5))
def test_the_strictest_rule_wins_in_any_order(actions: list[str]) -> None:
    """Adding a rule that forbids never allows more."""
    rules = [{"action": action, "tool": "*"} for action in actions]
    found = Policy.of({"rules": rules}).decide(made("x", "write"), {})[0]
    assert found == max(actions, key=ACTIONS.index)


BROKEN = [
    ([], "not an object"),
    ({"rule": []}, "'rule'"),
    ({"rules": {}}, "rules"),
    ({"rules": [{"action": "maybe"}]}, "rule 1"),
    ({"rules": [{"action": "deny"}, {"action": "deny", "tol": "x"}]}, "rule 2: there is no 'tol'"),
    ({"rules": [{"action": "deny", "effect": "harm"}]}, "rule 1: effect must be one of"),
    ({"rules": [{"action": "deny", "tool": 3}]}, "rule 1: tool must be a string"),
    ({"rules": [{"action": "deny", "domain": "http://"}]}, "rule 1: its domain"),
    ({"review_queries": "yes"}, "review_queries"),
    ({"private_and_untrusted": "sometimes"}, "private_and_untrusted"),
]


@pytest.mark.parametrize(("data", "words"), BROKEN)
def test_a_broken_policy_names_the_fault(data: Any, words: str, tmp_path: Path) -> None:
    """Which rule, which field, which file; nothing runs on a policy that is half understood."""
    (tmp_path / "policy.json").write_text(json.dumps(data))
    with pytest.raises(ConfigError) as caught:
        load_policy(tmp_path)
    assert words in caught.value.message
    assert "policy.json" in caught.value.message


def test_a_policy_is_saved_and_read(tmp_path: Path) -> None:
    """What is written is what is read, in a file for its owner only."""
    policy = Policy((Rule("allow", tool="a*"), Rule("deny", path="x")), True, "refuse")
    save_policy(tmp_path / "home", policy)
    assert load_policy(tmp_path / "home") == policy
    assert (tmp_path / "home" / "policy.json").stat().st_mode & 0o077 == 0
    (tmp_path / "home" / "policy.json").write_text("{")
    with pytest.raises(ConfigError, match=r"policy\.json cannot be read"):
        load_policy(tmp_path / "home")
    assert load_policy(tmp_path / "nothing") == Policy()
