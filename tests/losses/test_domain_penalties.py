"""The penalties between domains as modules: mixed batches, absent domains, state."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from longshift.losses import (
    BoDALoss,
    CORALLoss,
    FishrPenalty,
    IRMPenalty,
    MMDLoss,
    PrototypeAlignment,
    VRExPenalty,
    head_gradient_variance,
    irm_penalty,
    prototype_alignment,
    spread,
)
from longshift.losses.boda import group_means

D = torch.tensor([2, 0, 0, 2, 0, 2, 2, 0, 2])  # three domains, of which number 1 has no sample
Y = torch.tensor([0, 1, 2, 2, 1, 0, 1, 0, 1])


def features(width: int = 4, seed: int = 0) -> Tensor:
    return torch.randn(len(D), width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_vrex_is_the_variance_of_the_risks_of_present_domains() -> None:
    losses = features(1)[:, 0].exp()
    risks = torch.stack([losses[k == D].mean() for k in (0, 2)])
    torch.testing.assert_close(VRExPenalty(3)(losses, D), risks.var(correction=0))


def test_irm_is_the_mean_over_present_domains() -> None:
    logits = features(3)
    each = [irm_penalty(logits[k == D], Y[k == D], torch.zeros_like(D[k == D]), 1)[0] for k in (0, 2)]
    torch.testing.assert_close(IRMPenalty(3)(logits, Y, D), torch.stack(each).mean())


def test_fishr_keeps_a_moving_average_of_the_domains_it_has_seen() -> None:
    head = nn.Linear(4, 3).double()
    fishr = FishrPenalty(3, 3, 4, ema=0.6).double()
    average = torch.zeros(3, 15, dtype=torch.float64)
    for seed in range(3):
        x = features(4, seed)
        penalty = fishr(x, head(x), Y, D)
        for k in (0, 2):
            own = x[k == D][None]
            average[k] = 0.6 * average[k] + 0.4 * head_gradient_variance(own, head(own), Y[k == D][None])[0]
        torch.testing.assert_close(penalty, spread(average[[0, 2]] / 0.4))
        average = average.detach()
    torch.testing.assert_close(fishr.state_dict()["average"], average)


def test_fishr_stores_no_average_in_evaluation_mode() -> None:
    head = nn.Linear(4, 3).double()
    fishr = FishrPenalty(3, 3, 4).double()
    x = features(4)
    fishr(x, head(x), Y, D)
    before = fishr.average.clone()
    first, second = (fishr.eval()(features(4, 1), head(features(4, 1)), Y, D) for _ in range(2))
    torch.testing.assert_close(first, second)
    assert torch.equal(fishr.average, before)
    fishr.train()(x, head(x), Y, D)
    assert not torch.equal(fishr.average, before)


def test_boda_replaces_centroids_first_and_averages_afterwards() -> None:
    x = features()
    boda = BoDALoss([[4, 2, 2], [1, 1, 1], [9, 3, 3]], 4, momentum=0.25).double()
    boda.update(x, Y, D)
    means, _ = group_means(x, Y, D, 3, 3)
    torch.testing.assert_close(boda.centroids, means)
    boda.update(x + 1, Y, D)
    torch.testing.assert_close(boda.centroids[0], (means + 0.75)[0])
    assert not boda.centroids[1].any()
    assert boda.seen.any(1).tolist() == [True, False, True]
    assert sorted(boda.state_dict()) == ["centroids", "seen"]
    assert float(boda(x, Y, D)) > 0


def test_alignment_is_the_function() -> None:
    p = features(3).softmax(1)
    torch.testing.assert_close(PrototypeAlignment()(p, Y, D), prototype_alignment(p, Y, D))
    released = PrototypeAlignment(alignment="released")
    torch.testing.assert_close(released(p, Y, D), prototype_alignment(p, Y, D, released=True))


@pytest.mark.parametrize("name", ["coral", "mmd", "irm", "vrex", "fishr", "boda", "alignment"])
def test_gradients_are_finite(name: str) -> None:
    head = nn.Linear(4, 3).double()
    x = features().requires_grad_()

    boda = BoDALoss([[4, 2, 2], [0, 1, 1], [9, 3, 3]], 4).double()
    boda.update(x.detach() + 0.1, Y, D)  # without centroids it is zero

    def loss(x: Tensor) -> Tensor:
        logits = head(x)
        values: dict[str, Callable[[], Tensor]] = {
            "coral": lambda: CORALLoss(3)(x, D),
            "mmd": lambda: MMDLoss(3)(x, D),
            "irm": lambda: IRMPenalty(3)(logits, Y, D),
            "vrex": lambda: VRExPenalty(3)(cross_entropy(logits, Y, reduction="none"), D),
            "fishr": lambda: FishrPenalty(3, 3, 4).double()(x, logits, Y, D),
            "boda": lambda: boda(x, Y, D),
            "alignment": lambda: PrototypeAlignment()(logits.softmax(1), Y, D),
        }
        return values[name]()

    value = loss(x)
    (gradient,) = torch.autograd.grad(value, x)
    assert torch.isfinite(gradient).all()
    assert gradient.abs().max() > 0


def test_errors_name_what_was_expected() -> None:
    with pytest.raises(ValueError, match=r"Expected `domains` of at least 1, but got 0\."):
        CORALLoss(0)
    with pytest.raises(ValueError, match="Expected one or more `gammas` above 0"):
        MMDLoss(2, gammas=())
    with pytest.raises(ValueError, match="Expected `ema` of at least 0 and below 1"):
        FishrPenalty(2, 2, 2, ema=1.0)
    with pytest.raises(ValueError, match="`temperature` above 0"):
        BoDALoss([[1, 1]], 2, temperature=0)
    with pytest.raises(ValueError, match="Expected `alignment` to be one of paper, released"):
        PrototypeAlignment(alignment="own")  # type: ignore[arg-type]
