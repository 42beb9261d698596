"""Eigenvalues and eigenvectors of a small symmetric matrix as one static computation.

A step with `torch.linalg.eigh`, which reports its success to the host, cannot be captured as a CUDA graph. Jacobi's
method can: each rotation makes one pair of off-diagonal entries zero, and after a few sweeps over all pairs they
vanish. With the pairs in the order of a round-robin tournament, one half of the rows rotates with the other half at
once (Brent and Luk 1985).
"""

from __future__ import annotations

import torch
from torch import Tensor

# Gram matrices of walks are accurate to 1e-14 after seven or eight sweeps with ten rows, after ten with ninety.
SWEEPS, ROWS_A_SWEEP = 8, 16


def symmetric_eigen(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Return eigenvalues (n,) in ascending order and eigenvectors (n, n) in columns, like `torch.linalg.eigh`."""
    n = matrix.shape[0]
    if n < 2:
        return matrix.diagonal().clone(), torch.ones_like(matrix)
    # With an odd number of rows, an empty row is added; its eigenvalue is 0 and is removed below.
    padded = torch.nn.functional.pad(matrix, (0, n % 2, 0, n % 2))
    vectors = torch.eye(len(padded), dtype=matrix.dtype, device=matrix.device)
    for _ in range((SWEEPS + n // ROWS_A_SWEEP) * (len(padded) - 1)):
        turn = _next_round(_rotation(padded))
        padded, vectors = turn.T @ padded @ turn, vectors @ turn
    values = padded.diagonal()
    if n % 2:
        # The empty row never mixes with others: its vector is the last unit vector, in whichever column.
        empty = vectors[-1].abs() > 0.5
        values = torch.where(empty, torch.inf, values)
    order = values.argsort()[:n]
    return values[order], vectors[:n, order]


def _rotation(matrix: Tensor) -> Tensor:
    """Return the rotation that makes the entries (i, n/2 + i) zero, for all i < n/2."""
    half = len(matrix) // 2
    diagonal = matrix.diagonal()
    off = matrix[:half, half:].diagonal()
    # At most an eighth of a turn; zero if there is nothing to remove (0/0).
    angle = 0.5 * torch.atan(2 * off / (diagonal[half:] - diagonal[:half])).nan_to_num(0.0)
    cosine, sine = angle.cos().diag(), angle.sin().diag()
    return torch.cat([torch.cat([cosine, sine], 1), torch.cat([-sine, cosine], 1)])


def _next_round(columns: Tensor) -> Tensor:
    """Move columns to their places in the next round of the tournament: the first stays, the others rotate."""
    half = columns.shape[1] // 2
    top, bottom = columns[:, :half], columns[:, half:]
    return torch.cat([top[:, :1], bottom[:, :1], top[:, 1:-1], bottom[:, 1:], top[:, -1:]], 1) if half > 1 else columns
