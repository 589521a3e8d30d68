"""What a provider says of itself, for people who choose one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Features:
    """What is true of all models of a provider, in words for the README's table.

    `pages`: who reads pages; `citations`: how they are given; `replay`: how history is sent back.
    `searches` and `thinks` are said where the models are not known beforehand.
    """

    needs: str
    pages: str
    citations: str
    replay: str
    searches: str | None = None
    thinks: str | None = None
