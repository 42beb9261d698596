"""The clock of a fit with `--minutes`: how many steps the rest of the time allows, and when a run is too slow."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from longshift.fitting.plan import FEWEST

SHARE = 0.85  # of the time that is left goes to steps; the rest is for measuring, loading and the report
SLACK = 1.15  # a run may be this much slower than planned
TRIED = 5  # steps before a run is judged


class TimeLimit:
    """Judges the running run by its own speed; without minutes there is always time.

    Args:
        minutes: Time for the whole fit, from now on; None: no limit.
        clock: Seconds on a clock that never goes back.
    """

    def __init__(self, minutes: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._end = math.inf if minutes is None else clock() + 60 * minutes
        self._begun, self._done, self._steps, self._runs = clock(), -1, 1, 1
        self.tripped = False

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self._end - self._clock()

    def spend(self, seconds: float) -> None:
        """Time that an earlier command has used."""
        self._end -= seconds

    def lift(self) -> None:
        """There is always time from now on."""
        self._end = math.inf

    def begin(self, steps: int, runs: int) -> None:
        """A run of this many steps begins; `runs` are left, this one included."""
        self._steps, self._runs, self._done = steps, runs, -1
        self.tripped = False

    def tick(self, done: int) -> None:
        """Steps are done; the first call of a run tells where it resumed."""
        if self._done < 0:
            self._steps -= done
            self._begun, self._done = self._clock(), 0
        else:
            self._done += done

    def late(self) -> bool:
        """Whether the runs that are left would take too long; a run in its second half may finish."""
        judged = max(TRIED, self._steps // 20) <= self._done < self._steps // 2
        if math.isinf(self._end) or self._steps <= FEWEST or not judged:
            return False
        needed = self._seconds_per_step() * (self._steps * self._runs - self._done)
        self.tripped = needed > SLACK * SHARE * max(self.left, 0.0)
        return self.tripped

    def affordable(self) -> int:
        """Steps per run that the rest of the time allows, at the speed of the running run."""
        return int(SHARE * max(self.left, 0.0) / (self._seconds_per_step() * self._runs))

    def _seconds_per_step(self) -> float:
        return max((self._clock() - self._begun) / max(self._done, 1), 1e-6)
