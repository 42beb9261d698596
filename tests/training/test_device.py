"""Compilation starts early only where it helps, and its results are cached; deterministic kernels."""

import contextlib
import os
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from longshift.sweep.columns import run_columns
from longshift.training import device as ahead
from longshift.training.device import deterministic_kernels, keep_compiled, start_warmup
from longshift.training.run_config import Runtime
from longshift.training.run_folder import RunFolder
from longshift.training.task import make_task
from longshift.training.trainer import Trainer
from tests.training.small_runs import config, train


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


def _settings() -> tuple[object, ...]:
    return (
        torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled(),
        torch.backends.cudnn.benchmark, vars(ahead)["_FILLING"].fill_uninitialized_memory,
        os.environ.get("CUBLAS_WORKSPACE_CONFIG"),
    )  # fmt: skip


@pytest.mark.parametrize("workspace", [None, ":16:8"])
@pytest.mark.parametrize("benchmark", [True, False])
def test_deterministic_kernels_are_used_inside_the_block_and_only_there(
    monkeypatch: pytest.MonkeyPatch, workspace: str | None, benchmark: bool
) -> None:
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    if workspace:
        monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", workspace)
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", benchmark)
    before = _settings()
    with deterministic_kernels(False):
        assert _settings() == before
    with deterministic_kernels(True):
        assert _settings() == (True, False, False, False, workspace or ":4096:8")
    assert _settings() == before
    with contextlib.suppress(KeyError), deterministic_kernels(True):
        raise KeyError
    assert _settings() == before
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        with deterministic_kernels(True):
            assert _settings()[:2] == (True, False)
        assert _settings()[:2] == (True, True)
    finally:
        torch.use_deterministic_algorithms(False)


def test_a_deterministic_run_says_so_and_leaves_no_trace(tmp_path: Path) -> None:
    before, inside = _settings(), []
    runtime = Runtime(device="cpu", deterministic=True)
    trainer = Trainer(
        config(), make_task(config()), tmp_path, runtime, on_row=lambda row: inside.append(_settings()[:3])
    )
    result = trainer.run()
    assert set(inside) == {(True, False, False)}
    assert _settings() == before
    assert result["environment"]["deterministic"] == "yes"
    assert train(config(), tmp_path / "plain")["environment"]["deterministic"] == "no"


@pytest.mark.gpu
@pytest.mark.parametrize("how", [{"graphs": "off"}, {"graphs": "on"}, {"compile": "on"}, {"stream": True}], ids=str)
@pytest.mark.parametrize("method", ["erm", "ndcl_plus", "coral", "ginidg", "boda"])
def test_repeated_deterministic_runs_on_a_gpu_end_with_the_same_bits(
    method: str, how: dict[str, Any], tmp_path: Path
) -> None:
    """Pretrained-like ResNet-18 on 64 pixels: convolutions, pooling and batch norm of real networks."""
    run = config(method=method, steps=30, eval_every=10, backbone="resnet18", image_size=64)
    runtime = Runtime(device="cuda", deterministic=True, **how)
    weights = []
    for name in ("one", "two"):
        Trainer(run, make_task(run), tmp_path / name, runtime).run()
        weights.append(load_file(RunFolder(tmp_path / name).model))
    assert weights[0].keys() == weights[1].keys()
    assert all(torch.equal(weights[0][key], weights[1][key]) for key in weights[0])


def test_tables_say_which_runs_on_a_gpu_are_deterministic() -> None:
    column = next(column for column in run_columns() if column.name == "device")
    machine = {"device": "NVIDIA H200", "cpu": "x"}
    assert column.read
    found = [column.read({"environment": machine | more}) for more in ({}, {"deterministic": "yes"})]
    assert found == ["NVIDIA H200", "NVIDIA H200 (deterministic)"]
