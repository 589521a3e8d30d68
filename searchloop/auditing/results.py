"""What an audit found: its sentences, their sources, the pages, and the counts of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from searchloop.agent.types import VerdictName

State = Literal["read", "redirected", "unreachable", "refused"]
# Why a page was not read; `unnamed`: the report gives no address.
PROBLEMS = (
    *("dead", "unanswered", "blocked", "paywalled", "private", "unreadable", "offline", "limit"),
    "unnamed",
)


@dataclass(frozen=True, slots=True)
class AuditedPage:
    """A page that the report cites. `problem` says why it was not read, "" where it was."""

    url: str
    state: State
    problem: str = ""
    reason: str = ""
    title: str = ""
    final_url: str = ""
    published: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AuditedCitation:
    """One source of a sentence, and what the page says to it."""

    url: str
    mark: str
    state: State
    problem: str
    verdict: VerdictName
    by: str
    passage: str
    reason: str
    title: str = ""
    published: str | None = None
    place: tuple[int, int] = (0, 0)
    group: int = 0


@dataclass(frozen=True, slots=True)
class AuditedSentence:
    """A sentence at `span` of the report; `verdict` is None where it names no source."""

    text: str
    span: tuple[int, int]
    citations: tuple[AuditedCitation, ...]
    verdict: VerdictName | None


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit found. `sentences` are those that cite, and those with a number that do not.

    audit = searchloop.audit(file="report.md")
    print(audit.summary["by_verdict"])
    """

    text: str
    title: str
    sentences: tuple[AuditedSentence, ...]
    pages: tuple[AuditedPage, ...]
    notes: tuple[str, ...] = ()
    stopped: bool = False

    @property
    def summary(self) -> dict[str, Any]:
        """Counts: sentences that cite, by their verdict; pages by problem; numbers uncited."""
        cited = [each for each in self.sentences if each.citations]
        problems = Counter(page.problem for page in self.pages if page.problem)
        return {
            "cited": len(cited),
            "by_verdict": dict(Counter(each.verdict for each in cited)),
            "pages": len(self.pages),
            "unreachable": problems.total(),
            "problems": dict(problems),
            "redirected": sum(page.state == "redirected" for page in self.pages),
            "uncited_claims": len(self.sentences) - len(cited),
        }

    def as_dict(self) -> dict[str, Any]:
        """Returns {sentences, summary, pages, title, notes, stopped}."""
        told = {name: getattr(self, name) for name in ("title", "notes", "stopped")}
        return {
            "sentences": [asdict(each) for each in self.sentences],
            "summary": self.summary,
            "pages": [asdict(page) for page in self.pages],
            **told,
        }

    def meets(self, names: Iterable[str]) -> list[str]:
        """Returns which of these names of verdicts and problems, `moved` and `uncited` occur."""
        summary = self.summary
        found = {*summary["by_verdict"], *summary["problems"]}
        found |= {"moved"} if summary["redirected"] else set()
        found |= {"uncited"} if summary["uncited_claims"] else set()
        found |= {page.state for page in self.pages}
        return [name for name in names if name in found]
