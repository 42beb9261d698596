"""Progress without a terminal: plain lines in a log, few for short work and one per minute for long work."""

from __future__ import annotations

from collections.abc import Sequence

from longshift.progress import Stage
from longshift.text import about, counted, duration

AT_LEAST, AT_MOST = 1.0, 60.0  # seconds between two lines


class Lines:
    """The lines about work of `total` pieces that starts at time `begun`."""

    def __init__(self, label: str, total: int, begun: float) -> None:
        self.label, self.total, self.begun = label, total, begun
        self.done, self.tenth, self.printed = 0, 0, begun
        self.first, self.first_at = 0, begun

    def after(self, pieces: int, now: float, note: str = "") -> str:
        """The line to print after some more pieces, or "".

        There is a line per tenth of the work, with at least a second and at most a minute between two, and one per
        `Stage`.
        """
        if pieces and not self.done:
            self.first, self.first_at = pieces, now
        self.done += pieces
        if not pieces and isinstance(note, Stage):
            self.printed = now
            return f"{self.label}: {self.done}/{self.total}, {note}"
        tenth, since = 10 * self.done // max(self.total, 1), now - self.printed
        over = pieces > 0 and self.done >= self.total
        if not over and not (since >= AT_MOST or (since >= AT_LEAST and tenth > self.tenth)):
            return ""
        self.tenth, self.printed = tenth, now
        time = f"in {duration(now - self.begun)}" if over else self._left(now)
        rest = " ".join(part for part in (time, note) if part)
        return f"{self.label}: {self.done}/{self.total}{' ' if over else ', ' if rest else ''}{rest}"

    def _left(self, now: float) -> str:
        """The remaining time, from all pieces but the first, which may have compiled code; "" while it is unknown."""
        since = self.done - self.first
        if since:
            each = (now - self.first_at) / since
        elif self.first == 1:
            each = self.first_at - self.begun
        else:
            return ""  # an earlier call did many at once
        return f"{about(each * (self.total - self.done))} remaining"


def opening(total: int, word: str, left: int, devices: Sequence[str] = ()) -> str:
    """The first line of many jobs: "48 jobs, 40 remaining, 2 at a time on cpu"; `devices` has one per job at a time."""
    rest = "" if left == total else f", {left} remaining"
    places = devices[:left]
    pace = f", {len(places)} at a time on {', '.join(dict.fromkeys(places))}" if places else ""
    return f"{counted(total, word)}{rest}{pace}"
