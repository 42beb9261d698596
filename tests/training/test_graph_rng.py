"""Random numbers recorded for CUDA graphs equal those drawn on the host."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import torch
from hypothesis import given, settings, strategies as st

from longshift.rng import Draws, HostDraws
from longshift.training.graph_rng import TapedDraws


def _program(draws: Draws, phase: Hashable) -> list[torch.Tensor]:
    """What a step asks for; the phases differ."""
    low = np.array([[0], [5]])
    asked = [draws.integers(low, low + 3, 2, 4), draws.uniform(3, 10), draws.permutation(7)]
    if phase == "b":
        asked += [draws.beta(0.2, 0.2, 6), draws.normal(2, 2)]
    return asked


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from("ab"), min_size=4, max_size=30), st.integers(1, 7), st.integers(0, 1000))
def test_the_tape_gives_the_numbers_of_the_host(phases: list[str], block: int, seed: int) -> None:
    host = HostDraws(seed)
    taped = TapedDraws(seed, 0, torch.device("cpu"), block)
    for phase in dict.fromkeys(phases):
        taped.begin(0, phase)
        _program(taped, phase)
    taped.allocate()
    for step, phase in enumerate(phases):
        host.begin(step)
        expected = _program(host, phase)
        taped.seek(step, phases[step:])
        taped.enter_capture()
        found = _program(taped, phase)
        taped.leave_capture()
        for a, b in zip(expected, found, strict=True):
            assert a.dtype == b.dtype
            assert torch.equal(a, b)


def test_draws_depend_on_seed_stream_and_step_only() -> None:
    a, b = HostDraws(3, 1), HostDraws(3, 1)
    a.begin(5)
    a.normal(100)
    a.begin(6)
    b.begin(6)
    assert torch.equal(a.uniform(4), b.uniform(4))
    for other in (HostDraws(4, 1), HostDraws(3, 2)):
        other.begin(6)
        b.begin(6)
        assert not torch.equal(other.uniform(4), b.uniform(4))
