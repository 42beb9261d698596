"""The modules for class imbalance against PyTorch's own losses and closed forms."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot

from longshift.losses import BalancedSoftmaxLoss, FocalLoss, InverseFrequencyCE, LDAMLoss, ReweightedCE
from longshift.losses.imbalance_losses import CountLoss

COUNTS = [[90, 9, 1], [1, 30, 69]]


def batch(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(11, 3, generator=generator, dtype=torch.float64).to(dtype)
    return logits, torch.tensor([0, 1, 2, 2, 1, 0, 0, 1, 2, 0, 1]), torch.tensor([1, 0, 0, 1, 1, 0, 1, 1, 1, 0, 0])


def test_balanced_softmax_per_domain_and_global() -> None:
    logits, y, d = batch()
    counts = torch.tensor(COUNTS, dtype=torch.float64)
    shares = counts[d] * logits.exp()
    expected = -(shares[range(11), y] / shares.sum(1)).log()
    torch.testing.assert_close(BalancedSoftmaxLoss(COUNTS)(logits, y, d), expected.mean())
    torch.testing.assert_close(BalancedSoftmaxLoss(COUNTS, reduction="none")(logits, y, d), expected)
    torch.testing.assert_close(BalancedSoftmaxLoss(COUNTS, reduction="sum")(logits, y, d), expected.sum())
    pooled = BalancedSoftmaxLoss(counts.sum(0))
    torch.testing.assert_close(pooled(logits, y), cross_entropy(logits + counts.sum(0).log(), y))
    torch.testing.assert_close(pooled(logits, y, d), pooled(logits, y))


def test_ldam_margins_per_domain_and_global() -> None:
    logits, y, d = batch()
    counts = torch.tensor(COUNTS, dtype=torch.float64)
    margins = counts**-0.25 / (counts**-0.25).amax(1, keepdim=True) * 0.7
    lowered = logits - margins[d, y][:, None] * one_hot(y, 3)
    criterion = LDAMLoss(COUNTS, max_margin=0.7, scale=5.0)
    torch.testing.assert_close(criterion(logits, y, d), cross_entropy(5 * lowered, y))
    lowered = logits - margins[0, y][:, None] * one_hot(y, 3)
    criterion = LDAMLoss(COUNTS[0], max_margin=0.7, scale=5.0)
    torch.testing.assert_close(criterion(logits, y), cross_entropy(5 * lowered, y))


def test_inverse_frequency_is_the_weighted_loss_of_pytorch_in_each_domain() -> None:
    logits, y, d = batch()
    weights = 1 / torch.tensor(COUNTS, dtype=torch.float64)
    each = [cross_entropy(logits[d == k], y[d == k], weight=weights[k]) for k in range(2)]
    torch.testing.assert_close(InverseFrequencyCE(COUNTS)(logits, y, d), torch.stack(each).mean())
    torch.testing.assert_close(InverseFrequencyCE(COUNTS[0])(logits, y), cross_entropy(logits, y, weight=weights[0]))
    only = InverseFrequencyCE([*COUNTS, [5, 5, 5]])  # a domain that the batch lacks
    torch.testing.assert_close(only(logits, y, d), torch.stack(each).mean())


def test_focal_loss_is_cross_entropy_at_gamma_0() -> None:
    logits, y, _ = batch()
    torch.testing.assert_close(FocalLoss(0.0)(logits, y), cross_entropy(logits, y))
    p = logits.softmax(1)[range(11), y]
    torch.testing.assert_close(FocalLoss(2.5, reduction="sum")(logits, y), (-((1 - p) ** 2.5) * p.log()).sum())


def test_reweighted_ce_without_weights_is_cross_entropy() -> None:
    logits, y, _ = batch()
    torch.testing.assert_close(ReweightedCE(weights="none")(logits, y), cross_entropy(logits, y))
    each = [cross_entropy(logits[y == k], y[y == k]) for k in range(3)]
    torch.testing.assert_close(ReweightedCE(weights="class")(logits, y), torch.stack(each).mean())


@pytest.mark.parametrize("criterion", [BalancedSoftmaxLoss(COUNTS), LDAMLoss(COUNTS), InverseFrequencyCE(COUNTS)])
def test_counts_are_exact_in_any_precision_and_not_saved(criterion: nn.Module) -> None:
    logits, y, d = batch()
    exact = criterion(logits, y, d)
    assert exact.dtype == torch.float64
    assert criterion(logits.bfloat16(), y, d).dtype == torch.float32
    torch.testing.assert_close(criterion.float()(logits, y, d), exact, rtol=0, atol=0)
    assert not criterion.state_dict()
    assert not list(criterion.parameters())


@pytest.mark.parametrize("cls", [BalancedSoftmaxLoss, LDAMLoss, InverseFrequencyCE])
def test_whole_counts_stay_exact_in_a_module_of_lower_precision(cls: type[CountLoss]) -> None:
    logits, y, _ = batch()
    counts = [1001, 257, 4099]  # none of them is a number of bfloat16
    given = cls(torch.tensor(counts, dtype=torch.float32)).bfloat16()
    torch.testing.assert_close(given(logits, y), cls(counts)(logits, y), rtol=0, atol=0)
    shares = cls(torch.tensor([0.5, 0.2, 0.3]))  # not whole: kept as they are
    assert shares.class_counts.is_floating_point()


def test_with_counts_of_all_domains_together_the_batch_is_one_domain() -> None:
    logits, y, d = batch()
    criterion = InverseFrequencyCE(COUNTS[0])
    torch.testing.assert_close(criterion(logits, y, d), criterion(logits, y), rtol=0, atol=0)


def test_errors_name_what_was_expected() -> None:
    logits, y, _ = batch()
    with pytest.raises(ValueError, match=r"Expected the domains `d` of the samples, because the counts have 2 rows\."):
        BalancedSoftmaxLoss(COUNTS)(logits, y)
    with pytest.raises(ValueError, match=r"Expected logits of shape \(B, 2\)"):
        LDAMLoss([3, 4])(logits, y)
    with pytest.raises(ValueError, match=r"Expected `class_counts` of shape"):
        BalancedSoftmaxLoss(torch.ones(2, 2, 2))
    with pytest.raises(ValueError, match=r"Expected `class_counts` of at least 0"):
        InverseFrequencyCE([3, -1])
    with pytest.raises(ValueError, match=r"Expected `reduction` to be one of mean, sum, none, but got 'avg'\."):
        FocalLoss(reduction="avg")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Expected `gamma` of at least 0"):
        FocalLoss(-1)
