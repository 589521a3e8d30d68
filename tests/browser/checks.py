"""What is asked of every view: axe finds nothing, nothing sticks out, no program speaks."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page

AXE = Path(__file__).resolve().parents[1] / "node" / "node_modules" / "axe-core" / "axe.min.js"
RUN = """async () => {
  const found = await axe.run(document, {
    resultTypes: ["violations"], // what passes is found as well, but not described
    runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
  });
  const told = (v) => v.nodes.map((n) => `${v.id}: ${n.target} ${n.html.slice(0, 120)}`);
  return found.violations.flatMap(told);
}"""
TAGS = '["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]'
COLOURS = RUN.replace(TAGS, '["color-contrast", "link-in-text-block"]')
MISTAKE = r"\b(null|undefined|NaN)\b|\[object|\{\w+\}"  # what a program says, and people do not
DRAWN = "new Promise(requestAnimationFrame)"  # after a new size the page moves what it has to
TOO_WIDE = """() => [...document.querySelectorAll("#main *, dialog[open] *")]
  .filter((n) => n.checkVisibility() && !n.closest(".scroll-x, pre, .vh, svg, #settings nav"))
  .filter((n) => n.getBoundingClientRect().right > innerWidth + 1)
  .map((n) => n.id || n.className || n.tagName)"""
LOW = """() => [...document.querySelectorAll("button, select, .switch")]
  .filter((n) => n.checkVisibility() && n.getBoundingClientRect().height < 43.5)
  .filter((n) => !n.closest("[inert]"))
  .map((n) => n.id || n.className)"""


def axe(page: Page) -> list[str]:
    """What axe finds: WCAG 2.2 A and AA, and its good practice."""
    if page.evaluate("!window.axe"):
        page.evaluate(AXE.read_text("utf-8"))
    found: list[str] = page.evaluate(RUN)
    return found


def sticks_out(page: Page) -> list[str]:
    """What is wider than the screen."""
    page.evaluate(DRAWN)
    wide: list[str] = page.evaluate(TOO_WIDE)
    scrolls = page.evaluate("document.documentElement.scrollWidth > innerWidth")
    return [*wide, *(["the page itself"] if scrolls else [])]
