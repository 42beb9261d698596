"""Every kind of bad input ends in words that name what is wrong, or is accepted; never in a traceback."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from longshift.cli.main import app
from longshift.errors import LongshiftError
from tests.faults.bad_inputs import CASES, Models
from tests.faults.tools import outcome


@pytest.fixture(scope="module")
def models(digits_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Models:
    folder = tmp_path_factory.mktemp("fit")
    x = np.random.default_rng(0).standard_normal((40, 4)).astype(np.float32)
    np.savez(folder / "v.npz", x=x, label=np.arange(40) % 2, domain=np.arange(40) // 20)
    flags = ("--method", "erm", "--steps", "3", "--set", "batch_size=4", "--device", "cpu", "--quiet")
    assert outcome("fit", str(folder / "v.npz"), *flags, "--out", str(folder / "fit")) is None
    return Models(digits_run, folder / "fit")


@pytest.mark.parametrize("name", CASES)
def test_bad_input(name: str, models: Models, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGSHIFT_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    make, expected = CASES[name]
    found = CliRunner().invoke(app, list(map(str, make(tmp_path, models))))
    assert found.exception is None or isinstance(found.exception, (LongshiftError, SystemExit)), repr(found.exception)
    said = f"{found.output}\n{found.exception}"
    if expected is None:
        assert found.exit_code == 0, said
    else:
        assert found.exit_code != 0, said
        assert re.search(expected, said.replace("\n", " ")), said
    assert not (tmp_path / "run" / "result.json").exists()
