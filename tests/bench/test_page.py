"""What `python -m bench.page` says of its figures."""

from __future__ import annotations

from bench.page import Figure, Frames
from tests.tables import each_row


@each_row(
    ("figure", "said"),
    [
        (Figure("paint", 120.4, "ms", most=200), "120 ms <= 200, met"),
        (Figure("paint", 200.6, "ms", most=200), "201 ms <= 200, MISSED"),
        (Figure("frames", 59.0, "a second", least=58.2), "59 a second >= 58.2, met"),
        (Figure("frames", 51.0, "a second", least=58.2), "51 a second >= 58.2, MISSED"),
        (Figure("start", 0.984, "s", most=1), "0.98 s <= 1, met"),
        (Figure("median", 17.0, "ms"), "17 ms"),
    ],
)
def test_each_figure_stands_beside_its_aim(figure: Figure, said: str) -> None:
    """What must not be exceeded or fallen short of, and whether it was."""
    assert " ".join(figure.line().split()[1:]) == said


def test_late_frames_are_counted() -> None:
    """A frame of two periods is one that was left out; the longest is the last share."""
    frames = Frames([16.6, 16.7, 16.7, 33.3], own_ms=4.0, layouts=1.0)
    assert frames.late == 0.25
    assert (frames.share(0.5), frames.share(1)) == (16.7, 33.3)
