import os
import threading
from pathlib import Path

import pytest
import torch

from longshift.engine.ahead import begin_ahead, keep_compiled
from longshift.engine.config import Runtime


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
    begin_ahead(Runtime(device="cpu"), 5000)
    assert threading.active_count() == before


def test_the_compiler_still_has_helpers_that_can_be_started_early() -> None:
    from torch._inductor.async_compile import AsyncCompile

    assert callable(AsyncCompile.warm_pool), torch.__version__
