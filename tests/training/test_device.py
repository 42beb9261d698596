"""Compilation starts early only where it helps, and its results are cached."""

import os
import threading
from pathlib import Path

import pytest
import torch

from longshift.training import device as ahead
from longshift.training.device import keep_compiled, start_warmup
from longshift.training.run_config import Runtime


def test_compiled_code_is_kept_in_the_cache_unless_the_user_chose_a_place(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    monkeypatch.setenv("LONGSHIFT_CACHE", str(tmp_path / "cache"))
    keep_compiled(None)
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == str(tmp_path / "cache" / "compiled")
    keep_compiled(tmp_path / "other")
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == str(tmp_path / "cache" / "compiled")


def test_nothing_is_begun_for_a_run_on_the_cpu() -> None:
    before = threading.active_count()
    start_warmup(Runtime(device="cpu"), 5000)
    assert threading.active_count() == before


def test_a_command_that_ends_early_waits_for_what_was_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """A daemon thread that is stopped inside of CUDA aborts the process, whatever its exit code was to be."""
    begun: list[threading.Thread] = []
    monkeypatch.setattr(ahead, "resolve_device", lambda name: torch.device("cuda"))
    for name in ("_gpu", "_compiler"):
        monkeypatch.setattr(ahead, name, lambda *_: begun.append(threading.current_thread()))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "chosen")
    before = set(threading.enumerate())
    start_warmup(Runtime(), 5000)
    for thread in set(threading.enumerate()) - before:
        thread.join()
    assert len(begun) == 2
    assert not any(thread.daemon for thread in begun)


def test_the_compiler_still_has_helpers_that_can_be_started_early() -> None:
    from torch._inductor.async_compile import AsyncCompile

    assert callable(AsyncCompile.warm_pool), torch.__version__
