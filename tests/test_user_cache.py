"""Tests have a cache of their own, and one that writes into the user's cache fails."""

from __future__ import annotations

import pytest

from longshift.data import cache_folder


def test_the_cache_of_tests_is_not_the_users(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cache_folder().is_relative_to(tmp_path_factory.getbasetemp())
    monkeypatch.delenv("LONGSHIFT_CACHE")
    assert cache_folder().is_relative_to(tmp_path_factory.getbasetemp())
