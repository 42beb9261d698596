"""Eigenvalues of symmetric matrices against LAPACK, also for degenerate matrices."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays

from longshift.nn.jacobi import symmetric_eigen


def _check(matrix: torch.Tensor) -> None:
    values, vectors = symmetric_eigen(matrix)
    size = float(matrix.abs().max()) + 1e-300
    expected = torch.linalg.eigvalsh(matrix)
    torch.testing.assert_close(values, expected, rtol=0, atol=1e-13 * size * len(matrix))
    eye = torch.eye(len(matrix), dtype=matrix.dtype)
    torch.testing.assert_close(vectors.T @ vectors, eye, rtol=0, atol=1e-12)
    torch.testing.assert_close(matrix @ vectors, vectors * values, rtol=0, atol=1e-12 * size * len(matrix))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 9, 10, 13, 16])
def test_agrees_with_lapack(n: int) -> None:
    generator = torch.Generator().manual_seed(n)
    a = torch.randn(n, n, dtype=torch.float64, generator=generator)
    _check(a + a.T)


@pytest.mark.parametrize("n", [4, 7, 10])
def test_degenerate_matrices(n: int) -> None:
    _check(torch.zeros(n, n, dtype=torch.float64))
    _check(torch.eye(n, dtype=torch.float64))
    _check(torch.ones(n, n, dtype=torch.float64))
    _check(torch.diag(torch.tensor([1e-30, 1e30, *[1.0] * (n - 2)], dtype=torch.float64)))


def test_gram_matrix_of_a_walk_with_eigenvalues_over_twelve_decades() -> None:
    generator = torch.Generator().manual_seed(0)
    walk = torch.randn(10, 50, dtype=torch.float64, generator=generator) * torch.logspace(0, -6, 10)[:, None]
    _check((walk - walk.mean(0)) @ (walk - walk.mean(0)).T)


@pytest.mark.parametrize("n", [10, 31, 46, 91])  # three snapshots a domain and one: up to thirty source domains
def test_gram_matrix_of_a_random_walk_through_many_domains(n: int) -> None:
    generator = torch.Generator().manual_seed(n)
    walk = torch.randn(n, 300, dtype=torch.float64, generator=generator).cumsum(0)
    _check((walk - walk.mean(0)) @ (walk - walk.mean(0)).T)


@settings(deadline=None, max_examples=50)
@given(arrays(np.float64, st.integers(2, 11).map(lambda n: (n, n)), elements=st.floats(-1e3, 1e3)))
def test_any_symmetric_matrix(values: np.ndarray) -> None:
    a = torch.from_numpy(values)
    _check(a + a.T)
