"""PGrad's direction against explicit principal components."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from longshift.methods.pgrad import DIRECTIONS, principal_direction
from longshift.nn.jacobi import symmetric_eigen
from tests.methods.tiny import Tiny


@pytest.mark.parametrize("solver", [torch.linalg.eigh, symmetric_eigen], ids=["cpu", "gpu"])
@pytest.mark.parametrize("snapshots", [3, 5, 10, 16])
def test_direction_agrees_with_explicit_principal_components(
    snapshots: int, solver: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.linalg, "eigh", solver)  # either solver, whatever machine the test runs on
    walk = torch.randn(snapshots, 40, generator=torch.Generator().manual_seed(snapshots), dtype=torch.float64)
    walk = walk.cumsum(0)
    rows = walk.numpy()
    centered = rows - rows.mean(0)
    _, singular, components = np.linalg.svd(centered, full_matrices=False)
    back = rows[0] - rows[-1]
    values = singular[: min(DIRECTIONS, snapshots - 1)] ** 2
    expected = np.zeros(40)
    for value, component in zip(values, components, strict=False):
        sign = 1.0 if component @ back > 0 else -1.0
        expected += sign * value / np.linalg.norm(values) * component * np.linalg.norm(back)
    np.testing.assert_allclose(principal_direction(walk).numpy(), expected, rtol=0, atol=1e-10)


def test_small_steps_on_large_weights_keep_their_digits() -> None:
    steps = torch.randn(9, 200, generator=torch.Generator().manual_seed(0)) * 2**-10
    steps = (steps * 2**20).round() / 2**20  # so that the walk below is exact in single precision
    walk = torch.cat([torch.zeros(1, 200), steps]).cumsum(0)
    near, far = principal_direction(walk), principal_direction(walk + 1.0)
    torch.testing.assert_close(far, near, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("solver", [torch.linalg.eigh, symmetric_eigen], ids=["cpu", "gpu"])
def test_a_walk_that_went_nowhere_gives_no_direction(solver: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.linalg, "eigh", solver)
    assert torch.equal(principal_direction(torch.ones(10, 5)), torch.zeros(5))


@pytest.mark.parametrize(("per_domain", "inner"), [(2, 2), (3, 3), (8, 3)])
def test_no_split_is_empty(per_domain: int, inner: int) -> None:
    method = Tiny(per_domain=per_domain).trained("pgrad", steps=1)
    steps = {int(state["step"]) for state in method.optimizers["inner"].state.values()}
    assert steps == {inner * 3}
