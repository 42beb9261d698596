"""Running means of the terms of the loss, kept on the device and read only at evaluations."""

from __future__ import annotations

import torch
from torch import Tensor


class LossLog:
    """Sums terms without reading them; safe inside a captured step, because its tensors never move."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.sums: dict[str, Tensor] = {}

    def add(self, terms: dict[str, Tensor]) -> None:
        """Add one step's terms."""
        for name, value in terms.items():
            if name not in self.sums:
                self.sums[name] = torch.zeros(2, dtype=torch.float64, device=self.device)
            self.sums[name] += torch.stack([value.detach().double(), torch.ones_like(value, dtype=torch.float64)])

    def state(self) -> dict[str, Tensor]:
        """The sums so far, for a checkpoint."""
        return {name: total.clone() for name, total in self.sums.items()}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue from saved sums."""
        self.sums = {name: total.to(self.device).clone() for name, total in state.items()}

    def read(self) -> dict[str, float]:
        """Means since the last reading; synchronizes once."""
        if not self.sums:
            return {}
        names = list(self.sums)
        values = torch.stack([self.sums[name] for name in names]).cpu().tolist()
        for total in self.sums.values():
            total.zero_()
        return {name: total / count for name, (total, count) in zip(names, values, strict=True) if count}
