"""Contrastive losses on prediction vectors: negatives-dominant (NDCL eq. con) and positives-dominant.

For anchor i, P(i) are the other samples of its class, N(i) its negatives, and A(i) = P(i) + N(i). With s the
cosine similarity of two predictions, the terms are

    infonce_nd   -log( 1/|N| sum_n f(n) / sum_a f(a) )      f = 1 - s
    supcon_nd    -1/|N| sum_n log( f(n) / sum_a f(a) )      f = 1 - s
    infonce      -log( 1/|P| sum_p f(p) / sum_a f(a) )      f = s or exp(s)
    supcon       -1/|P| sum_p log( f(p) / sum_a f(a) )      f = s or exp(s)
    released     -log( sum_n f(n) / sum_a f(a) )            f = exp(1 - s), as in the authors' code

An anchor without a negative (`*_nd`, released) or without a positive (infonce, supcon) is skipped: it enters
neither the value nor the mean.

`negatives` defines N(i): "augmented" is the mined samples of class y_i, "batch" is the batch samples of other
classes, and "both" is their union. `normalized` replaces the sum over A(i) with (mean over P(i)) + (mean over N(i)),
so that the numbers of positives and negatives do not matter.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import normalize

from longshift.losses.common import check, floor_of, full_precision

Contrast = Literal["infonce_nd", "supcon_nd", "infonce", "supcon", "released"]
Negatives = Literal["augmented", "batch", "both"]
Reduction = Literal["mean", "sum", "class", "none"]
Similarity = Literal["exp", "linear"]

CONTRASTS: tuple[Contrast, ...] = ("infonce_nd", "supcon_nd", "infonce", "supcon", "released")
NEGATIVES: tuple[Negatives, ...] = ("augmented", "batch", "both")
REDUCTIONS: tuple[Reduction, ...] = ("mean", "sum", "class")
SIMILARITIES: tuple[Similarity, ...] = ("exp", "linear")


def cosine(vectors: Tensor, candidates: Tensor | None = None) -> Tensor:
    """Compute the cosine similarity of each vector (B, K) with each candidate (C, K), by default the vectors."""
    unit = normalize(vectors, dim=1)
    return unit @ (unit if candidates is None else normalize(candidates, dim=1)).T


def same_class(labels: Tensor) -> Tensor:
    """Return a (B, B) mask of the pairs of samples with the same label."""
    return labels[:, None] == labels[None, :]


def others(n: int, device: torch.device) -> Tensor:
    """Return an (n, n) mask that is True off the diagonal."""
    return ~torch.eye(n, dtype=torch.bool, device=device)


def anchor_terms(
    f: Tensor,
    leading: Tensor,
    following: Tensor,
    *,
    log_inside: bool = False,
    averaged: bool = True,
    normalized: bool = False,
) -> tuple[Tensor, Tensor]:
    """Compute per anchor -log of the leading set's share of f, and a mask of the anchors that have a leading set.

    f (B, C) is positive; `leading` and `following` (B, C) mark the two sets of candidates. `log_inside` uses the
    mean of logs instead of the log of the mean; `averaged=False` omits the factor 1/|leading|.
    """
    count = leading.sum(1)
    valid = count > 0
    size = count.clamp(min=1).to(f.dtype)
    lead = (f * leading).sum(1)
    follow = (f * following).sum(1)
    total = lead / size + follow / following.sum(1).clamp(min=1) if normalized else lead + follow
    if log_inside:
        log_lead = (f.log() * leading).sum(1) / size
    else:
        log_lead = torch.where(valid, lead / size if averaged or normalized else lead, 1.0).log()
    # A skipped anchor passes through logarithms of one, so that its gradient is zero and not 0 * inf.
    return torch.where(valid, torch.where(valid, total, 1.0).log() - log_lead, 0.0), valid


def reduce(terms: Tensor, valid: Tensor, labels: Tensor, reduction: Reduction) -> Tensor:
    """Reduce the terms of the anchors that are not skipped: sum, mean, or mean over classes of class means.

    "none" returns the terms (B,), with 0 for skipped anchors.
    """
    check("reduction", reduction, (*REDUCTIONS, "none"))
    if reduction == "none":
        return terms
    if reduction == "sum":
        return terms.sum()
    if reduction == "mean":
        return terms.sum() / valid.sum().clamp(min=1)
    share = valid / (same_class(labels) & valid).sum(1).clamp(min=1).to(terms.dtype)
    classes = share.sum()
    return (terms * share).sum() / torch.where(classes > 0, classes, 1.0)


def candidate_sets(labels: Tensor, augmented_class: Tensor | None, negatives: Negatives) -> tuple[Tensor, Tensor]:
    """Return P(i) and N(i) as masks (B, C) over the batch, followed by the mined samples if these are used."""
    same = same_class(labels)
    positives = same & others(len(labels), labels.device)
    if augmented_class is None:
        return positives, ~same
    mined = labels[:, None] == augmented_class[None, :]
    in_batch = ~same if negatives == "both" else torch.zeros_like(same)
    return torch.cat([positives, torch.zeros_like(mined)], 1), torch.cat([in_batch, mined], 1)


def _similarities(
    predictions: Tensor,
    labels: Tensor,
    augmented: Tensor | None,
    augmented_class: Tensor | None,
    negatives: Negatives | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the cosine similarities (B, C) to all candidates in float64, P(i) and N(i)."""
    if negatives is None:
        negatives = "batch" if augmented is None else "augmented"
    check("negatives", negatives, NEGATIVES)
    if negatives == "batch":
        return cosine(predictions.double()), *candidate_sets(labels, None, negatives)
    if augmented is None or augmented_class is None:
        raise ValueError(f"Expected `augmented` and `augmented_class` with negatives={negatives!r}, but got None.")
    everyone = torch.cat([predictions, augmented.to(predictions.dtype)]).double()
    return cosine(predictions.double(), everyone), *candidate_sets(labels, augmented_class, negatives)


def _gap(s: Tensor, dtype: torch.dtype) -> Tensor:
    """Compute the cosine distance 1 - s; the difference is taken in float64.

    Predictions of one class are nearly equal, as are a mined sample and its positive if lambda is near 1. In float32
    the difference would be mostly rounding noise, which the logarithms of eq. con would amplify.
    """
    return (1 - s).to(dtype)


def _positive(gap: Tensor) -> Tensor:
    # Identical predictions have distance 0 up to rounding, which can be negative; their gradient is 0.
    return gap.clamp(min=floor_of(gap.dtype))


@full_precision
def infonce_nd(
    predictions: Tensor,
    labels: Tensor,
    augmented: Tensor | None = None,
    augmented_class: Tensor | None = None,
    *,
    negatives: Negatives | None = None,
    reduction: Reduction = "mean",
    normalized: bool = False,
) -> Tensor:
    """Negatives-dominant InfoNCE (eq. con): the negatives' share of all distances of the anchor.

    Args:
        predictions: Probabilities (B, K).
        labels: Classes (B,).
        augmented: Predictions (M, K) of the mined samples.
        augmented_class: Class (M,) that each mined sample was mined for.
        negatives: "augmented", "batch" or "both"; the default is "augmented" if mined samples are given, else "batch".
        reduction: "mean", "sum", "class" (mean of class means) or "none".
        normalized: Whether the denominator uses means over positives and negatives instead of sums.

    Returns:
        The loss as a scalar, or (B,) with reduction "none".

    Example:
        >>> import torch
        >>> p, y = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.1, 0.9]]), torch.tensor([0, 0, 1, 1])
        >>> mixed = torch.tensor([0, 1, 0, 1])
        >>> bool(infonce_nd(p, y) < infonce_nd(p, mixed))
        True
    """
    s, positives, negative = _similarities(predictions, labels, augmented, augmented_class, negatives)
    terms, valid = anchor_terms(_positive(_gap(s, predictions.dtype)), negative, positives, normalized=normalized)
    return reduce(terms, valid, labels, reduction)


@full_precision
def supcon_nd(
    predictions: Tensor,
    labels: Tensor,
    augmented: Tensor | None = None,
    augmented_class: Tensor | None = None,
    *,
    negatives: Negatives | None = None,
    reduction: Reduction = "mean",
    normalized: bool = False,
) -> Tensor:
    """Compute the negatives-dominant SupCon loss: `infonce_nd` with the logarithm inside the mean over negatives.

    Args:
        predictions: Probabilities (B, K).
        labels: Classes (B,).
        augmented: Probabilities (M, K) of the mined samples.
        augmented_class: The class (M,) whose negatives they are.
        negatives: An anchor's negatives: "augmented", "batch" or "both"; by default augmented if they are given.
        reduction: Over the anchors: "mean", "sum", "class" (mean of class means) or "none".
        normalized: Whether the denominator is the mean over positives plus the mean over negatives.

    Returns:
        A scalar; with "none", a term per anchor.

    Example:
        >>> import torch
        >>> p, y = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.1, 0.9]]), torch.tensor([0, 0, 1, 1])
        >>> mixed = torch.tensor([0, 1, 0, 1])
        >>> bool(supcon_nd(p, y) < supcon_nd(p, mixed))
        True
    """
    s, positives, negative = _similarities(predictions, labels, augmented, augmented_class, negatives)
    terms, valid = anchor_terms(
        _positive(_gap(s, predictions.dtype)), negative, positives, log_inside=True, normalized=normalized
    )
    return reduce(terms, valid, labels, reduction)


def _closeness(s: Tensor, similarity: Similarity, dtype: torch.dtype) -> Tensor:
    check("similarity", similarity, SIMILARITIES)
    s = s.to(dtype)
    # Confident predictions of two classes have a tiny similarity that is exact to the last digit (a sum of products of
    # positive numbers), so the clamp only has to keep the reciprocal in the gradient from overflowing.
    return s.exp() if similarity == "exp" else s.clamp(min=torch.finfo(dtype).tiny ** 0.5)


@full_precision
def infonce(
    predictions: Tensor,
    labels: Tensor,
    augmented: Tensor | None = None,
    augmented_class: Tensor | None = None,
    *,
    negatives: Negatives | None = None,
    reduction: Reduction = "mean",
    normalized: bool = False,
    similarity: Similarity = "linear",
) -> Tensor:
    """Compute the positives-dominant InfoNCE loss. The paper prints it with the similarity, not its exponential.

    Args:
        predictions: Probabilities (B, K).
        labels: Classes (B,).
        augmented: Probabilities (M, K) of the mined samples.
        augmented_class: The class (M,) whose negatives they are.
        negatives: An anchor's negatives: "augmented", "batch" or "both"; by default augmented if they are given.
        reduction: Over the anchors: "mean", "sum", "class" (mean of class means) or "none".
        normalized: Whether the denominator is the mean over positives plus the mean over negatives.
        similarity: "linear" uses the cosine, "exp" its exponential.

    Returns:
        A scalar; with "none", a term per anchor.

    Example:
        >>> import torch
        >>> p, y = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.1, 0.9]]), torch.tensor([0, 0, 1, 1])
        >>> mixed = torch.tensor([0, 1, 0, 1])
        >>> bool(infonce(p, y) < infonce(p, mixed))
        True
    """
    s, positives, negative = _similarities(predictions, labels, augmented, augmented_class, negatives)
    f = _closeness(s, similarity, predictions.dtype)
    terms, valid = anchor_terms(f, positives, negative, normalized=normalized)
    return reduce(terms, valid, labels, reduction)


@full_precision
def supcon(
    predictions: Tensor,
    labels: Tensor,
    augmented: Tensor | None = None,
    augmented_class: Tensor | None = None,
    *,
    negatives: Negatives | None = None,
    reduction: Reduction = "mean",
    normalized: bool = False,
    similarity: Similarity = "exp",
) -> Tensor:
    """Compute the positives-dominant SupCon loss: the form of eq. align on samples.

    Args:
        predictions: Probabilities (B, K).
        labels: Classes (B,).
        augmented: Probabilities (M, K) of the mined samples.
        augmented_class: The class (M,) whose negatives they are.
        negatives: An anchor's negatives: "augmented", "batch" or "both"; by default augmented if they are given.
        reduction: Over the anchors: "mean", "sum", "class" (mean of class means) or "none".
        normalized: Whether the denominator is the mean over positives plus the mean over negatives.
        similarity: "linear" uses the cosine, "exp" its exponential.

    Returns:
        A scalar; with "none", a term per anchor.

    Example:
        >>> import torch
        >>> p, y = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.1, 0.9]]), torch.tensor([0, 0, 1, 1])
        >>> mixed = torch.tensor([0, 1, 0, 1])
        >>> bool(supcon(p, y) < supcon(p, mixed))
        True
    """
    s, positives, negative = _similarities(predictions, labels, augmented, augmented_class, negatives)
    f = _closeness(s, similarity, predictions.dtype)
    terms, valid = anchor_terms(f, positives, negative, log_inside=True, normalized=normalized)
    return reduce(terms, valid, labels, reduction)


@full_precision
def released(
    predictions: Tensor,
    labels: Tensor,
    augmented: Tensor | None = None,
    augmented_class: Tensor | None = None,
    *,
    negatives: Negatives | None = None,
    reduction: Reduction = "class",
    normalized: bool = False,
) -> Tensor:
    """Compute the contrastive term as in the authors' code: a softmax of distances, no 1/|N|, mean of class means."""
    s, positives, negative = _similarities(predictions, labels, augmented, augmented_class, negatives)
    terms, valid = anchor_terms(
        _gap(s, predictions.dtype).exp(), negative, positives, averaged=False, normalized=normalized
    )
    return reduce(terms, valid, labels, reduction)
