"""A made-up problem of small images and a tiny network, on which every method trains in milliseconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from longshift.methods import get_method
from longshift.methods.base import Batch, Method, Problem
from longshift.nn.network import Network, Precision
from longshift.rng import HostDraws

FEATURES = 8

# Schedules change on step 2 and sizes are small, for every method that has a hyper-parameter of that name.
SHORT: dict[str, float] = {
    "anneal": 2,
    "burnin": 2,
    "start_step": 2,
    "feat_update_freq": 2,
    "recon_end": 2,
    "zdim": 3,
    "gdisc_hidden": 6,
    "disc_hidden_1": 6,
    "disc_hidden_2": 5,
    "mlp_width": 6,
    "disc_dropout": 0.0,  # its masks differ between devices
}


@dataclass(frozen=True)
class Tiny:
    """Sizes of the problem; with `missing` the last class does not occur in domain 0."""

    classes: int = 4
    domains: int = 3
    per_domain: int = 4
    missing: bool = False
    one_class: bool = False
    precision: Precision = "fp32"

    def problem(self) -> Problem:
        """Long tails that start at another class in each domain."""
        counts = [[1 + 40 // (1 + (d + k) % self.classes) for k in range(self.classes)] for d in range(self.domains)]
        if self.missing:
            counts[0][-1] = 0
        return Problem(self.classes, self.domains, tuple(map(tuple, counts)), steps=12)

    def network(self, seed: int = 0) -> Network:
        """One convolution and a linear head."""
        torch.manual_seed(seed)
        body = nn.Sequential(
            nn.Conv2d(3, FEATURES, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.ReLU()
        )
        return Network(body, nn.Linear(FEATURES, self.classes), precision=self.precision)

    def samples(self, seed: int, n: int) -> tuple[Tensor, Tensor, Tensor]:
        """`n` images a domain with labels and domains: a class is a color, a domain a contrast."""
        generator = torch.Generator().manual_seed(seed)
        d = torch.arange(self.domains).repeat_interleave(n)
        y = torch.randint(0, self.classes, (len(d),), generator=generator)
        if self.missing:
            y = torch.where(d == 0, y.clamp_max(self.classes - 2), y)
        if self.one_class:
            y = torch.zeros_like(y)
        color = torch.stack([(y * f).sin() for f in (1.0, 1.7, 2.9)], 1)
        x = color[:, :, None, None] + torch.randn(len(d), 3, 8, 8, generator=generator) * 0.5
        return x * (1 + d[:, None, None, None] / 2), y, d

    def batch(self, step: int) -> Batch:
        """The batch of a step."""
        x, y, d = self.samples(step, self.per_domain)
        return Batch(x, y, d, self.domains)

    def config(self, name: str) -> dict[str, Any]:
        """Hyper-parameters with which everything a method does happens in six steps."""
        known = get_method(name).Config.hyper_parameters()
        rates: dict[str, Any] = {key: 1e-2 for key in ("lr", "lr_g", "lr_d") if key in known and not known[key].instead}
        return {**rates, **{key: type(known[key].default)(SHORT[key]) for key in SHORT if key in known}}

    def on(self, device: torch.device | str, batch: Batch) -> Batch:
        """The batch on a device."""
        return Batch(batch.x.to(device), batch.y.to(device), batch.d.to(device), batch.domains)

    def make(self, name: str, seed: int = 0, values: Mapping[str, Any] | None = None) -> Method:
        """The method, not started."""
        cls = get_method(name)
        network = self.network(seed)
        method = cls(network, self.problem(), cls.Config.make({**self.config(name), **(values or {})}))
        return method.train()

    def train(self, method: Method, start: int, stop: int) -> list[dict[str, Tensor]]:
        """Steps `start` to `stop` - 1 as the engine runs them, on the device of the method."""
        terms = []
        device = method.network.classifier.weight.device
        for step in range(start, stop):
            if method.wants_features(step):
                x, y, d = self.samples(1000, 12)
                method.eval()
                with torch.no_grad():
                    method.receive_features(method.network.features(x.to(device)), y.to(device), d.to(device))
                method.train()
            method.before_step(step)
            assert isinstance(method.draws, HostDraws)
            method.draws.begin(step)
            torch.manual_seed(step)
            terms.append(method.step(self.on(device, self.batch(step))))
        return terms

    def trained(self, name: str, steps: int = 6, values: Mapping[str, Any] | None = None) -> Method:
        """The method after some steps; every number it made is finite."""
        method = self.make(name, values=values)
        method.start(HostDraws(0))
        for step, terms in enumerate(self.train(method, 0, steps)):
            assert terms
            for key, value in terms.items():
                assert value.isfinite().all(), f"{name}: {key} is {value} at step {step}"
                assert value.dim() == 0
                assert not value.requires_grad
        for key, value in method.state_dict().items():
            assert value.isfinite().all(), f"{name}: {key} is not finite"
        return method
