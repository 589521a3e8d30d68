"""What servers of the Python SDK give beside text, from the model's call to its next step."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from searchloop.agent.calls.caller import Caller
from searchloop.agent.errors import ConfigError
from searchloop.agent.guard.approvals import pending
from searchloop.agent.guard.guard import holds_private
from searchloop.agent.providers import Abilities
from tests.agent.mcp.sdk_server import PIXEL
from tests.agent.mcp.served import Patient, serving, settings_of, write
from tests.agent.scripted import Scripted, call, calls, check_calls_are_answered, open_house, says

pytestmark = pytest.mark.integration
SDK = {"command": sys.executable, "args": [str(Path(__file__).with_name("sdk_server.py")), "stdio"]}


class Looking(Scripted):
    """A scripted model that takes these types of files."""

    def __init__(self, *steps: object, types: frozenset[str]) -> None:
        super().__init__(steps)  # type: ignore[arg-type]
        self.abilities = Abilities(files=self._files)
        self.types = types

    async def _files(self, model: str) -> frozenset[str]:
        return self.types


@pytest.mark.parametrize("sees", [True, False])
async def test_pictures_and_resources(tmp_path: Path, sees: bool) -> None:
    """A picture reaches a model that sees, others are told; a link is read from its server alone;
    both go the same way from the log.
    """
    write(tmp_path, {"sdk": {**SDK, "startup_timeout": 90}})
    read = "mcp_sdk_read_resource"
    both = (call("mcp_sdk_draw", 1), call("mcp_sdk_add", 2, a=1, b=2))
    steps = (
        calls(*both),
        calls(call(read, 3, uri="story://pixel"), call(read, 4, uri="story://none")),
        calls(call(read, 5, uri="story://picture")),
        says("Done."),
        says("Again."),
    )
    model = Looking(*steps, types=frozenset({"image/png"} if sees else ()))
    async with open_house(tmp_path, model, bring=[Patient(settings_of(tmp_path))]) as house:
        await house.ask("Draw.", mode="agent", approve="auto")
        await house.ask("Again?", mode="agent")
        names = [{tool.name for tool in request.tools} for request in model.requests]
        assert read not in names[0]  # it is offered once a link was met
        assert read in names[1]
        drawn, added, shown = model.requests[1].messages[-3:]
        assert "[picture 1 (image, 1 x 1 pixels, 1 kB)]" in drawn.content
        assert "the model is not shown it: picture 2" in drawn.content
        assert (added.role, shown.role) == ("tool", "user")  # results first: servers insist
        assert [file.data for file in shown.attachments] == ([PIXEL] if sees else [])
        assert ("sees no pictures" in shown.content) is not sees
        story, none = model.requests[2].messages[-2:]
        assert "It was drawn at noon." in story.content
        assert "untrusted result of mcp_sdk_read_resource" in story.content
        assert none.is_error
        assert len(model.requests[3].messages[-1].attachments) == int(sees)
        told = [(m.role, m.content, m.attachments) for m in model.requests[3].messages]
        assert [(m.role, m.content, m.attachments) for m in model.requests[4].messages][
            : len(told)
        ] == told
        check_calls_are_answered(list(model.requests[4].messages))
        events = house.log.read(house.session)
        assert PIXEL not in str([event.data for event in events])
        assert not holds_private(model.requests[1].messages[:-1])


ANSWERS = {
    "given": (("once", {"dish": "soup", "portions": "2"}), "ordered 2 soup"),
    "wrong, then right": (("once", {"dish": "soup", "portions": "many"}), "ordered 3 soup"),
    "declined": (("deny", None), "elicitation was decline"),
    "nobody": (None, "elicitation was decline"),
}


@pytest.mark.parametrize("case", ANSWERS)
async def test_a_server_asks_the_user(tmp_path: Path, case: str) -> None:
    """In the middle of a call, on the card of approvals. Nobody there, it is declined: `--approve
    auto` allows calls and answers nothing in the user's name."""
    write(tmp_path, {"sdk": {**SDK, "startup_timeout": 90, "effect": "read"}})
    reply, expected = ANSWERS[case]
    model = Scripted([calls(call("mcp_sdk_order", 1), call("mcp_sdk_dream", 2)), says("Done.")])
    async with open_house(tmp_path, model, bring=[Patient(settings_of(tmp_path))]) as house:
        replies = [reply, ("once", {"dish": "soup", "portions": 3})]

        async def decide(request: Mapping[str, Any]) -> Any:
            asked.append(request)
            return replies.pop(0)

        asked: list[Mapping[str, Any]] = []
        how: dict[str, Any] = {"caller": Caller(approve=decide)} if reply else {"approve": "auto"}
        await house.ask("Order.", mode="agent", **how)
        assert len(asked) == {"nobody": 0, "wrong, then right": 2}.get(case, 1)
        for each in asked[:1]:
            assert (each["question"], each["arguments"]) == (True, {"dish": "", "portions": 1})
            assert each["why"].startswith("sdk asks: What may it be? dish: What you would like")
        order, dream = model.requests[1].messages[-2:]
        assert re.search(expected, order.content)
        assert "sampling" in dream.content.lower()
        assert dream.is_error
        assert not pending(house.log.read(house.session))


async def test_a_prompt_is_filled_from_words(tmp_path: Path) -> None:
    """In their order, the last takes the rest; what is wrong names what there is."""
    async with serving(tmp_path, {"sdk": {**SDK, "startup_timeout": 90}}) as source:
        assert await source.prompts() == []  # nobody started it yet
        assert await source.prompt("sdk:review", "a.py") == "Review a.py, kind.[31m"
        assert await source.prompt("sdk:review", "a.py very kind") == "Review a.py, very kind.[31m"
        told = {"name": "sdk:review", "takes": "code style", "about": "Ask for a review."}
        assert await source.prompts() == [told]
        for name, words, remedy in (
            ("sdk:review", "", "Write /sdk:review code style"),
            ("sdk:nothing", "", "There are: review."),
            ("nobody:review", "", "Choose one of sdk."),
        ):
            with pytest.raises(ConfigError) as refused:
                await source.prompt(name, words)
            assert refused.value.remedy == remedy


def test_a_prompt_is_asked_once_the_user_agrees(tmp_path: Path) -> None:
    """In a chat, as `/SERVER:PROMPT`; it is shown before, without what could paint."""
    home = tmp_path / "home"
    write(home, {"sdk": {**SDK, "startup_timeout": 90}})
    done = subprocess.run(
        [sys.executable, "-m", "searchloop.cli", "chat"],
        input="/sdk:review a.py\nn\n/sdk:review b.py\ny\n",
        env={"SEARCHLOOP_HOME": str(home), "SEARCHLOOP_OFFLINE": "1", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Review a.py" in done.stdout
    assert "\x1b" not in done.stdout
    assert done.stderr.count("builtin:extractive, no search") == 1
