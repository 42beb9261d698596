"""Eigenvalues and eigenvectors of a small symmetric matrix as one static computation.

`torch.linalg.eigh` reports its success to the host, so that a step with it cannot be captured as a CUDA graph. Jacobi's
method needs no such report: every rotation makes one pair of off-diagonal entries zero, and after a few sweeps over all
pairs nothing is left of them. With the pairs in the order of a round-robin tournament, half of the rows can rotate
with the other half at once (Brent and Luk 1985).
"""

from __future__ import annotations

import torch
from torch import Tensor

# Gram matrices of walks are accurate to 1e-14 after seven or eight sweeps with ten rows, after ten with ninety.
SWEEPS, ROWS_A_SWEEP = 8, 16


def symmetric_eigen(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues (n,) in ascending order and eigenvectors (n, n) in columns, as `torch.linalg.eigh` gives them."""
    n = matrix.shape[0]
    if n < 2:
        return matrix.diagonal().clone(), torch.ones_like(matrix)
    # An odd row out plays against an empty one, whose eigenvalue is known to be 0 and is cut off again below.
    padded = torch.nn.functional.pad(matrix, (0, n % 2, 0, n % 2))
    vectors = torch.eye(len(padded), dtype=matrix.dtype, device=matrix.device)
    for _ in range((SWEEPS + n // ROWS_A_SWEEP) * (len(padded) - 1)):
        turn = _next_round(_rotation(padded))
        padded, vectors = turn.T @ padded @ turn, vectors @ turn
    values = padded.diagonal()
    if n % 2:
        # The empty row never mixes with others: its vector is the last unit vector, wherever it sits by now.
        empty = vectors[-1].abs() > 0.5
        values = torch.where(empty, torch.inf, values)
    order = values.argsort()[:n]
    return values[order], vectors[:n, order]


def _rotation(matrix: Tensor) -> Tensor:
    """The rotation that makes the entries (i, n/2 + i) zero, for all i < n/2."""
    half = len(matrix) // 2
    diagonal = matrix.diagonal()
    off = matrix[:half, half:].diagonal()
    # At most an eighth of a turn; where there is nothing to remove (0/0), none.
    angle = 0.5 * torch.atan(2 * off / (diagonal[half:] - diagonal[:half])).nan_to_num(0.0)
    cosine, sine = angle.cos().diag(), angle.sin().diag()
    return torch.cat([torch.cat([cosine, sine], 1), torch.cat([-sine, cosine], 1)])


def _next_round(columns: Tensor) -> Tensor:
    """Move columns to their places of the tournament's next round: the first stays, the others go round in a ring."""
    half = columns.shape[1] // 2
    top, bottom = columns[:, :half], columns[:, half:]
    return torch.cat([top[:, :1], bottom[:, :1], top[:, 1:-1], bottom[:, 1:], top[:, -1:]], 1) if half > 1 else columns
