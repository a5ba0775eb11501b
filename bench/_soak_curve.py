"""Curves of a soak: samples over time, whether they are flat, and a picture of them.

A curve is flat when its trend over the second half of the run stays within a stated limit.  The trend is
Theil and Sen's (the median of the slopes between all pairs of points), which a few outliers do not move, so
a burst is no leak and a leak is not hidden by one.
"""

import statistics
from collections.abc import Mapping, Sequence
from html import escape

from attrs import Factory, define, frozen

MOST_SAMPLES = 720
"""Samples that are kept; when there are more, every second one goes, so days fit in the same room."""

PAIRED = 240
"""Points of a half that are compared in pairs."""


@frozen
class Limit:
    """How much a curve may grow over the second half: so much, and so much of its median."""

    absolute: float
    relative: float = 0.0

    def of(self, values: Sequence[float]) -> float:
        """The allowance of a curve with these values."""
        return self.absolute + self.relative * abs(statistics.median(values))


@define(eq=False)
class Curves:
    """Samples of several figures, taken at the same moments."""

    times: list[float] = Factory(list)
    values: dict[str, list[float]] = Factory(dict)
    _every: int = 1
    _taken: int = 0

    def add(self, at: float, sample: Mapping[str, float]) -> None:
        """Keep one sample of every figure; a figure that was never seen before was 0 until now."""
        self._taken += 1
        if self._taken % self._every:
            return
        for name, value in sample.items():
            self.values.setdefault(name, [0.0] * len(self.times)).append(value)
        self.times.append(at)
        for known in self.values.values():
            known.extend([0.0] * (len(self.times) - len(known)))
        if len(self.times) >= MOST_SAMPLES:
            self._every *= 2
            self.times = self.times[1::2]
            self.values = {name: known[1::2] for name, known in self.values.items()}


def growth(times: Sequence[float], values: Sequence[float]) -> float:
    """By how much a curve grows over the second half of its time; negative when it falls."""
    if len(times) < 8:
        return 0.0
    middle = (times[0] + times[-1]) / 2
    half = [(at, value) for at, value in zip(times, values, strict=True) if at >= middle]
    half = half[:: max(1, len(half) // PAIRED)]
    slopes = [
        (later[1] - earlier[1]) / (later[0] - earlier[0])
        for number, earlier in enumerate(half)
        for later in half[number + 1 :]
        if later[0] > earlier[0]
    ]
    return statistics.median(slopes) * (half[-1][0] - half[0][0]) if slopes else 0.0


@frozen
class Trend:
    """One curve's growth beside what it may grow."""

    name: str
    median: float
    last: float
    growth: float
    allowed: float

    @property
    def flat(self) -> bool:
        """Whether it grows no more than it may."""
        return self.growth <= self.allowed


def trends(curves: Curves, limits: Mapping[str, Limit]) -> list[Trend]:
    """Every curve that has a limit."""
    return [
        Trend(
            name, statistics.median(values), values[-1], growth(curves.times, values), limits[name].of(values)
        )
        for name, values in curves.values.items()
        if name in limits and values
    ]


def svg(curves: Curves, panels: Sequence[tuple[str, str, Sequence[str]]], title: str) -> str:
    """Draw panels (title, unit, names of curves) below each other, over the same time in minutes."""
    width, height, left, gap = 860, 150, 70, 44
    colours = ("#2563eb", "#d97706", "#059669", "#db2777")
    total = 40 + len(panels) * (height + gap)
    end = max(curves.times[-1], 1e-9) if curves.times else 1.0
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {total}" font-family="sans-serif"'
        f' font-size="12" role="img"><title>{escape(title)}</title>'
        f'<rect width="{width}" height="{total}" fill="#ffffff"/>'
        f'<text x="{left}" y="22" font-size="15" fill="#111827">{escape(title)}</text>'
    )
    out = [head]
    for row, (name, unit, chosen) in enumerate(panels):
        top = 52 + row * (height + gap)
        shown = [(each, curves.values[each]) for each in chosen if each in curves.values]
        most = max((max(values) for _, values in shown), default=1.0) * 1.08 or 1.0
        out.append(f'<text x="{left}" y="{top - 6}" fill="#111827">{escape(name)} ({escape(unit)})</text>')
        for part in range(5):
            y = top + height * part / 4
            label = f"{most * (4 - part) / 4:,.{0 if most >= 8 else 1}f}"
            out.append(
                f'<line x1="{left}" x2="{width - 10}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e5e7eb"/>'
                f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end" fill="#6b7280">{label}</text>'
            )
        for part in range(6):
            x = left + (width - 10 - left) * part / 5
            out.append(
                f'<text x="{x:.0f}" y="{top + height + 15}" text-anchor="middle" fill="#6b7280">'
                f"{end * part / 5 / 60:.3g} min</text>"
            )
        for number, (each, values) in enumerate(shown):
            colour = colours[number % len(colours)]
            points = " ".join(
                f"{left + (width - 10 - left) * at / end:.1f},{top + height * (1 - value / most):.1f}"
                for at, value in zip(curves.times, values, strict=True)
            )
            out.append(f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{points}"/>')
            out.append(
                f'<text x="{width - 10 - 130 * (len(shown) - 1 - number)}" y="{top - 6}" text-anchor="end"'
                f' fill="{colour}">{escape(each)}</text>'
            )
    return "\n".join([*out, "</svg>\n"])
