"""A figure beside its aim, a line each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """What came out, and what it may be at the most, if we hold ourselves to that."""

    what: str
    value: float
    unit: str
    most: float | None = None

    @property
    def met(self) -> bool:
        """Whether it will do."""
        return self.most is None or self.value <= self.most

    def __str__(self) -> str:
        aim = "" if self.most is None else f"≤ {self.most:g} {self.unit}".rstrip()
        verdict = "" if self.most is None else "met" if self.met else "MISSED"
        return f"| {self.what} | {self.value:.3g} {self.unit} | {aim} | {verdict} |"


def say(figures: Iterable[Figure]) -> list[Figure]:
    """Prints each as soon as it is there; gives them back."""
    said = []
    for figure in figures:
        print(figure, flush=True)
        said.append(figure)
    return said
