"""The end of a run: which weights are measured on all sets, and their measurements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from longshift.progress import Stage
from longshift.text import counted
from longshift.training.score_sets import Evaluator
from longshift.training.weight_averaging import Averager
from longshift.training.weight_selection import BestWeights


@dataclass(frozen=True, eq=False)
class FinalWeights:
    """The last weights (which the method has), the selected ones and the best average."""

    step: int
    diverged: bool
    best: BestWeights
    averager: Averager | None

    def stage(self, evaluator: Evaluator, noun: str) -> Stage | None:
        """A note on what is measured: on many images it takes minutes."""
        which = ["last"] if not self.diverged and self.best.step != self.step else []
        which += ["selected"] if self.best else []
        which += ["averaged"] if self.best and self.averager and self.averager.best else []
        number = counted(sum(map(len, evaluator.sets.values())), noun)
        return Stage(f"measuring the {' and '.join(which)} weights on {number}") if which else None

    def measure(self, evaluator: Evaluator) -> dict[str, Any]:
        """The parts "last", "selected" and "averaged" of a result; the method has the selected weights afterwards."""
        found: dict[str, Any] = {"last": None, "selected": None, "averaged": None}
        if not self.diverged:
            found["last"] = {"step": self.step, **evaluator.measure_all()}
        if self.best:
            if self.best.step == self.step and found["last"]:
                found["selected"] = found["last"]
            else:
                evaluator.method.load_state_dict(self.best.weights)
                found["selected"] = {"step": self.best.step, **evaluator.measure_all()}
            if self.averager and self.averager.best:
                with self.averager.swapped(self.averager.best.weights):
                    found["averaged"] = {"step": self.averager.best.step, **evaluator.measure_all()}
        return found
