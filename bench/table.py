"""Measurements as a table: medians, ranges, ratios, and whether the targets were met."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from statistics import median

from bench.clock import Sample, cores
from bench.measure import BARE, OURS, Measurement
from bench.scenarios import Scenario

_HEAD = (
    "| work | who | wall ms | cpu ms | cpu ratio | turns/s | p99 ms | peak MB |",
    "|---|---|---|---|---|---|---|---|",
)


@dataclass(frozen=True, slots=True)
class Row:
    """All rounds of one scenario and one peer."""

    scenario: Scenario
    peer: str
    rounds: tuple[Measurement, ...]
    bare: tuple[Measurement, ...]

    def samples(self) -> list[Sample]:
        """Of all rounds."""
        return [sample for measurement in self.rounds for sample in measurement.samples]

    def figure(self, name: str) -> float | None:
        """A figure as `Target` names them; None where it was not measured."""
        if name == "p99_ms":
            late = [s.p99 for s in self.samples() if s.p99 is not None]
            return median(late) * 1000 if late else None
        unit, what = ("cpu", "ratio") if name == "cpu_ratio" else name.split("_")
        if what == "ms":
            return median(_of(unit)(s) for s in self.samples()) * 1000
        if not self.bare:
            return None
        ratio = self._ratio("cpu" if unit == "cpu" else "wall")
        return 1 / ratio if unit == "turns" else ratio

    def _ratio(self, unit: str) -> float:
        """Ours to bare in the same round; the median over the rounds."""
        of = _of(unit)
        bare = {m.round: median(map(of, m.samples)) for m in self.bare}
        return median(median(map(of, m.samples)) / bare[m.round] for m in self.rounds)

    def cells(self) -> str:
        """One line of the table."""
        samples = self.samples()
        runs = self.scenario.at_once * self.scenario.turns
        wall = median(s.wall for s in samples)
        ratio, late = self.figure("cpu_ratio"), self.figure("p99_ms")
        cells = (
            self.scenario.name,
            self.peer,
            _spread([s.wall for s in samples]),
            _spread([s.cpu for s in samples]),
            "" if ratio is None else f"{ratio:.2f}",
            f"{runs / wall:.0f}" if self.scenario.name.startswith("conc") else "",
            "" if late is None else f"{late:.0f}",
            f"{max(m.peak for m in self.rounds) / 1e6:.0f}",
        )
        return f"| {' | '.join(cells)} |"

    def verdict(self) -> str | None:
        """How the target was met, or by how much it was missed."""
        target = self.scenario.target
        value = self.figure(target.figure) if target else None
        if target is None or value is None:
            return None
        return f"{self.scenario.name}: {target}: {value:.2f}, " + (
            "met" if target.met(value) else "MISSED"
        )


def rows(scenarios: Sequence[Scenario], measurements: Iterable[Measurement]) -> list[Row]:
    """One row a scenario and peer, in the scenarios' order."""
    found: dict[tuple[str, str], list[Measurement]] = {}
    for measurement in measurements:
        found.setdefault((measurement.scenario, measurement.peer), []).append(measurement)
    return [
        Row(s, peer, tuple(found[s.name, peer]), tuple(found.get((s.name, BARE), ())))
        for s in scenarios
        for peer in (BARE, OURS)
        if (s.name, peer) in found
    ]


def lines(table: Sequence[Row], *, judged: bool = True) -> list[str]:
    """The table, what each scenario is, and (for real sizes) the targets."""
    told = [*_HEAD, *(row.cells() for row in table), ""]
    told += [f"- {row.scenario.name}: {row.scenario.what}" for row in table if row.peer == OURS]
    verdicts = [row.verdict() for row in table if row.peer == OURS]
    return [*told, "", "Targets:", *(f"- {v}" for v in verdicts if v)] if judged else told


def machine() -> dict[str, str]:
    """What the figures were measured on."""
    core, other = cores()
    pins = "no core of their own" if core is None else f"core {core}, servers on core {other}"
    names = ("httpx2", "httpcore2", "h11", "uvicorn")
    return {
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "measured on": pins,
        "packages": ", ".join(f"{name} {_version(name)}" for name in names),
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except ImportError:
        return "missing"


def _of(unit: str) -> Callable[[Sample], float]:
    return (lambda sample: sample.cpu) if unit == "cpu" else (lambda sample: sample.wall)


def _spread(seconds: Sequence[float]) -> str:
    middle, least, most = (t * 1000 for t in (median(seconds), min(seconds), max(seconds)))
    digits = 1 if middle < 100 else 0
    return f"{middle:.{digits}f} ({least:.{digits}f}-{most:.{digits}f})"
