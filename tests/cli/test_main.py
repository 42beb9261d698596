"""The command itself: help, exit codes, one line per error, names that cannot control the terminal, streams."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import longshift.cli.main as module
from longshift.cli.main import VERBS
from longshift.errors import LongshiftError
from tests.cli.main_calls import Run


def test_the_help_begins_with_the_verbs_for_own_data(run: Run) -> None:
    code, out, err = run()
    assert (code, err) == (2, "")
    intro, _, listed = out.partition("Commands")
    assert intro.index("longshift fit") < intro.index("longshift demo")
    assert min(VERBS, key=lambda verb: listed.index(f" {verb} ")) == "fit"


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(run: Run, verb: str) -> None:
    code, out, _ = run(verb, "--help")
    assert code == 0
    assert "--help" in out


@pytest.mark.slow
def test_help_imports_neither_torch_nor_pandas() -> None:
    code = "import sys\nimport longshift.cli.main\nprint({'torch', 'pandas', 'jinja2'} & {*sys.modules})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"


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
    assert f"{file}, line 2" in run()[2]


@pytest.mark.slow
@pytest.mark.parametrize("words", [("methods",), ("methods", "--json")])
def test_a_reader_that_had_enough_is_no_error(words: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    program = [sys.executable, "-m", "longshift", *words]
    done = subprocess.run(program, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, b"")
