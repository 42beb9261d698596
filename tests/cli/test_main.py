"""The command itself: help, exit codes, one line per error, names that cannot control the terminal."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

import longshift.cli.main as module
from longshift.cli.main import VERBS
from longshift.errors import LongshiftError
from tests.cli.main_calls import Run


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(run: Run, verb: str) -> None:
    code, out, _ = run(verb, "--help")
    assert code == 0
    assert "--help" in out


@pytest.mark.parametrize("words", [("fitt",), ("fit",), ("fit", "a", "--odd\x1b[2J"), ("predict", "m", "\x1b[2J")])
def test_bad_usage_is_one_line(run: Run, words: tuple[str, ...]) -> None:
    code, out, err = run(*words)
    assert code in (1, 2)
    assert (out, err.count("\n")) == ("", 1)
    assert "\x1b" not in err


@pytest.mark.parametrize(
    ("error", "named"),
    [
        (LongshiftError("bad \x1b[2J"), "bad \\x1b"),
        (MemoryError(), "batch_size"),
        (RuntimeError("CUDA out of memory. Tried to allocate"), "batch_size"),
        (PermissionError(13, "Permission denied", "/x/y"), "/x/y"),
        (KeyError("x"), "--debug"),
    ],
)
def test_an_error_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch, error: Exception, named: str) -> None:
    def fail(**options: object) -> None:
        raise error

    monkeypatch.setattr(module, "app", fail)
    code, out, err = run()
    assert (code, out) == (1, "")
    assert named in err
    assert "Traceback" not in err
    assert "\x1b" not in err + warnings.formatwarning("\x1b[2J", UserWarning, "", 1)
    monkeypatch.setenv("LONGSHIFT_DEBUG", "1")
    assert "Traceback" in run()[2]


def test_an_error_in_a_plugin_names_its_line(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "mine.py"
    monkeypatch.setattr(module, "plugin_files", lambda: [file])
    monkeypatch.setattr(module, "app", lambda **_: exec(compile("\n{}['x']", str(file), "exec"), {}))
    assert str(file) in run()[2]
