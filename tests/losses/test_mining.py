"""Mining against plain loops: the right quarter, the right negatives, the right shares, order without influence."""

from __future__ import annotations

from fractions import Fraction

import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor

from longshift.losses.mining import Mined, Share, batch_counts, mine, mined_counts, mix
from tests.losses import loops

seeds = st.integers(0, 2**31 - 1)
sizes = st.integers(2, 40)
class_numbers = st.integers(2, 60)  # also more classes than samples


def make(seed: int, size: int, classes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Probabilities, labels and long-tailed training counts."""
    g = torch.Generator().manual_seed(seed)
    p = torch.randn(size, classes, generator=g, dtype=torch.float64).softmax(1)
    low = torch.randint(classes, (size,), generator=g)
    y = torch.minimum(low, torch.randint(classes, (size,), generator=g))
    counts = torch.randint(1, 2 + 10 ** int(torch.randint(4, (1,), generator=g)), (classes,), generator=g)
    return p, y, counts


def shares_of(p: Tensor, y: Tensor, counts: Tensor | None, share: Share) -> dict[int, int]:
    mined = mined_counts(batch_counts(y, p.shape[1]), len(y), share, counts)
    return {k: n for k, n in enumerate(mined.tolist()) if n}


def triples(mined: Mined) -> list[tuple[int, int, int]]:
    return list(zip(mined.cls.tolist(), mined.low.tolist(), mined.high.tolist(), strict=True))


@settings(max_examples=150, deadline=None)
@given(seeds, sizes, class_numbers)
def test_shares_follow_the_rule(seed: int, size: int, classes: int) -> None:
    p, y, counts = make(seed, size, classes)
    present = sorted(set(y.tolist()))
    for share, weights in (
        ("inverse", {k: Fraction(1, int(counts[k])) for k in present}),
        ("uniform", {k: Fraction(1) for k in present}),
    ):
        quota = loops.quotas(weights, size)
        actual = shares_of(p, y, counts, "inverse" if share == "inverse" else "uniform")
        assert sorted(actual) == present  # every class present, and at least one each
        assert sum(actual.values()) == size
        exact = loops.largest_remainder(quota, size)
        differing = [quota[k] % 1 for k in present if actual[k] != exact[k]]
        # Only classes with the same remainder may have swapped the sample that was left.
        assert not differing or max(differing) - min(differing) < 1e-9
        assert all(abs(actual[k] - quota[k]) < 1 for k in present)


@settings(max_examples=100, deadline=None)
@given(seeds, sizes, class_numbers)
def test_released_shares(seed: int, size: int, classes: int) -> None:
    p, y, counts = make(seed, size, classes)
    actual = shares_of(p, y, counts, "released")
    assert sum(actual.values()) == size
    assert sorted(actual) == sorted(set(y.tolist()))
    in_batch = batch_counts(y, classes).double()
    quota = in_batch.div(size).exp() * (in_batch > 0)
    quota *= size / quota.sum()
    assert all(abs(actual.get(k, 0) - quota[k]) <= 1 for k in range(classes))


def test_released_shares_of_a_known_batch() -> None:
    assert mined_counts(torch.tensor([60, 20, 10, 4, 2]), 96, "released").tolist() == [29, 19, 17, 16, 15]
    for n in (5, 10, 17, 96):  # all classes different: one each, where the original rounds some class to none
        assert mined_counts(torch.ones(n, dtype=torch.int64), n, "released").tolist() == [1] * n


def test_inverse_shares_of_a_known_batch() -> None:
    in_batch = torch.tensor([6, 3, 2, 1, 0])
    # Quotas 1.09, 2.18, 4.36, 4.36: one sample is left for the largest remainder, a tie that the lower class wins.
    assert mined_counts(in_batch, 12, "inverse", torch.tensor([100, 50, 25, 25, 1])).tolist() == [1, 2, 5, 4, 0]
    # Quotas 0.04 and 2.99 of 3: the first is lifted to one, the second shares what is left.
    assert mined_counts(torch.tensor([2, 1]), 3, "inverse", torch.tensor([100, 1])).tolist() == [1, 2]
    # Without training counts the batch's own are taken; a class in the batch but not in the counts weighs as one.
    assert mined_counts(torch.tensor([3, 1]), 4, "inverse").tolist() == [1, 3]
    assert mined_counts(torch.tensor([3, 1]), 4, "inverse", torch.tensor([3, 0])).tolist() == [1, 3]


@settings(max_examples=150, deadline=None)
@given(seeds, sizes, class_numbers, st.sampled_from(["inverse", "uniform", "released"]))
def test_pairs_are_those_of_plain_loops(seed: int, size: int, classes: int, share: Share) -> None:
    p, y, counts = make(seed, size, classes)
    mined = mine(p, y, counts, share=share)
    assert len(mined.low) == len(mined.high) == len(mined.cls) == size
    if len(set(y.tolist())) == 1:
        assert mined.cls.tolist() == [-1] * size
        return
    assert triples(mined) == loops.mined_pairs(p, y.tolist(), shares_of(p, y, counts, share))


@settings(max_examples=100, deadline=None)
@given(seeds, sizes, class_numbers, st.booleans())
def test_order_of_samples_does_not_matter(seed: int, size: int, classes: int, ties: bool) -> None:
    p, y, counts = make(seed, size, classes)
    if ties:
        p = (p * 4).round() / 4
    order = torch.randperm(size, generator=torch.Generator().manual_seed(seed + 1))
    straight, shuffled = mine(p, y, counts), mine(p[order], y[order], counts)
    assert straight.cls.tolist() == shuffled.cls.tolist()
    low, high = order[shuffled.low], order[shuffled.high]
    if not ties:
        assert torch.equal(straight.low, low)
        assert torch.equal(straight.high, high)
    # Tied samples may stand in for each other: same side, same p_k. (A one-class batch marks its class with -1.)
    cls = torch.where(straight.cls >= 0, straight.cls, y[0])
    assert torch.equal(p[straight.low, cls], p[low, cls])
    assert torch.equal(p[straight.high, cls], p[high, cls])
    if straight.cls[0] >= 0:
        assert torch.equal(y[low], straight.cls)
        assert bool((y[high] != straight.cls).all())


def test_underflowed_probabilities_stay_on_their_side() -> None:
    p = torch.zeros(8, 2)
    y = torch.tensor([0, 1, 0, 1, 0, 1, 0, 0])
    mined = mine(p, y)
    assert torch.equal(y[mined.low], mined.cls)
    assert bool((y[mined.high] != mined.cls).all())


def test_hard_negatives_start_over_where_there_are_too_few() -> None:
    y = torch.tensor([0, 0, 0, 1])
    p = torch.tensor([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5], [0.4, 0.6]])
    mined = mine(p, y, torch.tensor([1, 1]), share="uniform")
    assert triples(mined) == [(0, 1, 3), (0, 1, 3), (1, 3, 1), (1, 3, 2)]


@settings(max_examples=200, deadline=None)
@given(seeds, sizes, class_numbers, st.sampled_from([1.0, 1.5]), st.sampled_from([0.3, 1.0, 3.0]))
def test_released_pairs_are_those_of_plain_loops(
    seed: int, size: int, classes: int, scaler: float, confidence: float
) -> None:
    p, y, _ = make(seed, size, classes)
    p = (p.log() * confidence).softmax(1)  # from nearly uniform, where nothing passes a threshold, to confident
    if len(set(y.tolist())) == 1:
        return
    total = int(size * scaler)
    x, lam = torch.randn(size, 3, dtype=torch.float64), torch.rand(1 + total, dtype=torch.float64)
    mined = mine(p, y, share="released", pairs="released", total=total)
    shares = {k: n for k, n in enumerate(torch.bincount(mined.cls).tolist()) if n}
    expected = loops.released_mix(
        x, p, y.tolist(), shares, lam[0].item(), lambda start: lam[1 + min(start, total - 1)].item(),
        lambda turn, n: (range(n), [(i + turn) % n for i in range(n)]),
    )  # fmt: skip
    torch.testing.assert_close(mix(x, mined, lam), torch.stack(expected), rtol=1e-12, atol=1e-12)


def test_more_samples_than_the_batch_has_can_be_mined() -> None:
    p, y, counts = make(0, 12, 4)
    shares: tuple[Share, ...] = ("inverse", "uniform", "released")
    for share in shares:
        mined = mine(p, y, counts, share=share, total=18)
        assert len(mined.low) == 18
        found = {k: n for k, n in enumerate(torch.bincount(mined.cls, minlength=4).tolist()) if n}
        assert triples(mined) == loops.mined_pairs(p, y.tolist(), found)


def test_mix() -> None:
    x = torch.arange(12.0).reshape(3, 2, 2)
    mined = Mined(torch.tensor([0, 1, 2]), torch.tensor([1, 2, 0]), torch.tensor([0, 0, 1]))
    lam = torch.tensor([0.0, 1.0, 0.75])
    expected = torch.stack([x[1], x[1], 0.75 * x[2] + 0.25 * x[0]])
    torch.testing.assert_close(mix(x, mined, lam), expected)
    halved = torch.stack([x[1], x[2], 0.25 * x[2] + 0.75 * x[0]])
    torch.testing.assert_close(mix(x, mined, lam, lambda_max_half=True), halved)
    torch.testing.assert_close(mix(x, mined, torch.tensor([0.5])), 0.5 * (x[mined.low] + x[mined.high]))


def test_mix_keeps_channels_last() -> None:
    x = torch.rand(4, 3, 5, 5).to(memory_format=torch.channels_last)
    mined = Mined(torch.tensor([0, 1]), torch.tensor([3, 2]), torch.tensor([0, 1]))
    assert mix(x, mined, torch.rand(2)).is_contiguous(memory_format=torch.channels_last)
