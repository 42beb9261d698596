"""What all verbs print with."""

from __future__ import annotations

import pytest

from longshift.cli.common import caution


def test_a_caution_is_one_line_on_standard_error_with_its_brackets(capsys: pytest.CaptureFixture[str]) -> None:
    line = f"warning: folder/[red] {'long ' * 40}[/red]"
    caution(line)
    out, err = capsys.readouterr()
    assert (out, err) == ("", line + "\n")
