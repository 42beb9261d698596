"""The same draws as `HostDraws`, laid out on the device for many steps ahead, for steps replayed as CUDA graphs.

While steps run eagerly, the requests of each phase are recorded. From then on the numbers of the coming steps are
drawn on the host in one go and copied over as one table; a captured step reads its row and moves the row pointer on.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import torch
from torch import Tensor

from longshift.rng import Draws, HostDraws, Request, draw, generator


def sizes(program: Sequence[Request]) -> tuple[int, int]:
    """How many fractional and whole numbers a step's requests need."""
    fractions = sum(int(np.prod(r.shape)) for r in program if not r.whole)
    return fractions, sum(int(np.prod(r.shape)) for r in program if r.whole)


class TapedDraws(Draws):
    """Draws for eager steps (recorded) and for captured ones (read from the tape)."""

    def __init__(self, seed: int, stream: int, device: torch.device, block: int = 64) -> None:
        self.host = HostDraws(seed, stream, device)
        self.device, self.block = device, block
        self.programs: dict[Hashable, list[Request]] = {}
        self._recording: list[Request] | None = None
        self._reading = False
        self.row = torch.zeros((), dtype=torch.int64, device=device)
        self.fractions = torch.zeros(0, 0, device=device)
        self.wholes = torch.zeros(0, 0, dtype=torch.int64, device=device)
        self._loaded = range(0)  # the steps on the tape
        self._next = -1  # the step the row pointer stands at
        self._fraction = self._whole = 0  # how far the captured step has read its row
        self._fraction_row, self._whole_row = self.fractions, self.wholes

    # -- eager steps -------------------------------------------------------------------------------------------

    def begin(self, step: int, phase: Hashable) -> None:
        """Start an eager step; its requests become the program of its phase."""
        self.host.begin(step)
        self._reading = False
        self._recording = self.programs[phase] = []

    def answer(self, request: Request) -> Tensor:
        """From the host while eager, from the tape while captured."""
        if not self._reading:
            if self._recording is not None:
                self._recording.append(request)
            return self.host.answer(request)
        count = int(np.prod(request.shape))
        if request.whole:
            start, self._whole = self._whole, self._whole + count
            return self._whole_row[start : start + count].reshape(request.shape)
        start, self._fraction = self._fraction, self._fraction + count
        return self._fraction_row[start : start + count].reshape(request.shape)

    # -- captured steps ----------------------------------------------------------------------------------------

    def allocate(self) -> bool:
        """Make room for the widest known program; True if the tables moved, so that captured graphs are void."""
        needs = [sizes(program) for program in self.programs.values()]
        fractions, wholes = max(n[0] for n in needs), max(n[1] for n in needs)
        if fractions > self.fractions.shape[1] or wholes > self.wholes.shape[1]:
            self.fractions = torch.zeros(self.block, max(fractions, 1), device=self.device)
            self.wholes = torch.zeros(self.block, max(wholes, 1), dtype=torch.int64, device=self.device)
            self._loaded = range(0)
            return True
        return False

    def enter_capture(self) -> None:
        """From here on requests are answered by the row under the pointer."""
        self._reading, self._fraction, self._whole = True, 0, 0
        self._fraction_row = self.fractions.index_select(0, self.row[None])[0]
        self._whole_row = self.wholes.index_select(0, self.row[None])[0]

    def leave_capture(self) -> None:
        """The last captured operation: move the pointer on."""
        self.row.add_(1)
        self._reading = False

    def seek(self, step: int, phases: Sequence[Hashable]) -> None:
        """Make the tape stand at `step`; `phases` are those of `step` and the steps after it, all recorded."""
        if step not in self._loaded or step != self._next:
            if step not in self._loaded:
                self._load(step, phases[: self.block])
            self.row.fill_(step - self._loaded.start)
        self._next = step + 1

    def _load(self, start: int, phases: Sequence[Hashable]) -> None:
        fractions = torch.zeros(len(phases), self.fractions.shape[1], pin_memory=self.device.type == "cuda")
        wholes = torch.zeros(
            len(phases), self.wholes.shape[1], dtype=torch.int64, pin_memory=self.device.type == "cuda"
        )
        for offset, phase in enumerate(phases):
            rng = generator(self.host.seed, self.host.stream, start + offset)
            positions = {True: 0, False: 0}
            for request in self.programs[phase]:
                values = torch.as_tensor(draw(rng, request)).reshape(-1)
                at = positions[request.whole]
                (wholes if request.whole else fractions)[offset, at : at + len(values)] = values
                positions[request.whole] = at + len(values)
        self.fractions[: len(phases)].copy_(fractions, non_blocking=True)
        self.wholes[: len(phases)].copy_(wholes, non_blocking=True)
        self._loaded = range(start, start + len(phases))
