"""Progress where there is no terminal: plain lines in a log, few for short work and one a minute for long work."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from longshift.progress import Stage
from longshift.text import counted

AT_LEAST, AT_MOST = 1.0, 60.0  # seconds between two lines


class Lines:
    """What to print of some work of `total` pieces that begins at time `begun`."""

    def __init__(self, label: str, total: int, begun: float) -> None:
        self.label, self.total, self.begun = label, total, begun
        self.done, self.tenth, self.printed = 0, 0, begun
        self.first, self.first_at = 0, begun

    def after(self, pieces: int, now: float, note: str = "") -> str:
        """The line to print now that further pieces are done; "" for none.

        Each tenth of the way has a line, but not within a second of the last one, and no minute passes without. So has
        each `Stage`.
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
        time = f"in {_clock(now - self.begun)}" if over else self._left(now)
        rest = " ".join(part for part in (time, note) if part)
        return f"{self.label}: {self.done}/{self.total}{' ' if over else ', ' if rest else ''}{rest}"

    def _left(self, now: float) -> str:
        """The time left, from all pieces but the first, which may have compiled code; "" while it cannot be known."""
        since = self.done - self.first
        if since:
            each = (now - self.first_at) / since
        elif self.first == 1:
            each = self.first_at - self.begun
        else:
            return ""  # many at once were done in an earlier call
        return f"about {_clock(each * (self.total - self.done))} left"


def opening(total: int, word: str, left: int, devices: Sequence[str] = ()) -> str:
    """What many jobs begin with: "48 jobs, 40 of them left, 2 at a time on cpu"; a device for each at a time."""
    rest = "" if left == total else f", {left} of them left"
    places = devices[:left]
    pace = f", {len(places)} at a time on {', '.join(dict.fromkeys(places))}" if places else ""
    return f"{counted(total, word)}{rest}{pace}"


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
