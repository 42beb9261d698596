"""What is told where a step cannot be captured as a CUDA graph."""

from __future__ import annotations

from pathlib import Path

import pytest

from longshift.errors import LongshiftError
from longshift.methods import all_methods
from longshift.training.steppers import cannot_capture, first_error
from tests.commands import Command

ERM = all_methods()["erm"]


def _failed_capture(cause: RuntimeError) -> RuntimeError:
    """The error that leaves a capture: raised while that of the step was on its way."""
    try:
        try:
            raise cause
        finally:
            raise RuntimeError("operation failed due to a previous error during capture")
    except RuntimeError as error:
        return error


def test_the_first_error_and_both_ways_out_are_named() -> None:
    cause = RuntimeError("operation not permitted when stream is capturing\nCUDA kernel errors might be late")
    assert first_error(cause) is cause
    told = cannot_capture(ERM, first_error(_failed_capture(cause)))
    assert isinstance(told, LongshiftError)
    assert "ERM" in str(told)
    assert "--graphs off" in str(told)
    assert "capturable" in str(told)


WAITS = """
from longshift.methods.erm import ERM
from longshift.methods.registry import register

@register("waits", title="Waits", family="dg", paper="none", idea="looks at its loss")
class Waits(ERM):
    def step(self, batch):
        terms = super().step(batch)
        assert float(terms["loss"]) > 0
        return terms
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("device", "works"),
    [
        ("cpu", True),
        pytest.param("cuda", False, marks=pytest.mark.gpu),
    ],
)
def test_a_method_of_ones_own_that_waits_for_the_gpu(device: str, works: bool, tmp_path: Path) -> None:
    (tmp_path / "waits.py").write_text(WAITS)
    words = ["--plugin", f"{tmp_path}/waits.py", "train", "--data", "digits", "--target", "ink", "--method", "waits"]
    words += ["--steps", "8", "--set", "batch_size=4", "--device", device, "--out", str(tmp_path / "run")]
    process = Command(*words)  # a process of its own: a capture that went wrong may leave torch's generator unusable
    _, text = process.communicate()
    assert (process.returncode == 0) == works, text
    if not works:
        assert "Waits" in text
        assert "--graphs off" in text
        assert "Traceback" not in text
