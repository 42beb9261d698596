"""Names of domains, classes and files that mean something to terminals, markup, spreadsheets or file systems."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from longshift.cli.common import print_table, progress, say
from longshift.cli.main import app
from longshift.inference.prediction import Prediction, Predictions
from longshift.results import read_runs, write_runs
from longshift.sweep.best_configs import _safe
from longshift.text import csv_cell, from_csv_cell, printable
from tests.faults.tools import outcome, tiny_sites
from tests.report.fake import frame

NAMES = ("[/red]", "[b]ob", "s:x:1", "[bold", "a\x1b[31mred", "a\x9b2J", "\u202egnp", "a\u200fb", "=1+1", "b|c")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("verb", ["inspect", "verify"])
def test_names_are_shown_as_they_are(tmp_path: Path, verb: str, name: str) -> None:
    data = tiny_sites(tmp_path / "sites", each=1)
    odd = name.replace("/", "")
    (data / "north" / "red" / "0.png").rename(data / f"{odd}.png")
    (data / f"{odd}.png").write_bytes(b"")
    with (data / "t.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["path", "label", "domain"])
        writer.writerows([[f"{odd}.png", name, name], ["north/blue/0.png", "plain", name]])
        writer.writerows([["south/red/0.png", name, "other"], ["south/blue/0.png", "plain", "other"]])
    shown = CliRunner().invoke(app, ["data", verb, str(data / "t.csv")])
    assert shown.exception is None or isinstance(shown.exception, SystemExit), shown.exception
    text = "".join(shown.output.replace("│", "").replace("┃", "").split())
    assert "".join(printable(name if verb == "inspect" else odd).split()) in text
    assert not set(shown.output) & {"\x1b", "\x9b", "\u202e", "\u200f"}


def test_lines_tables_and_bars_have_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    say("[/red] :smile: \x1b[2J")
    print_table("[/b]", ["[/red]"], [["[b]ob"], ["s:x:1"]], caption="[/i] \x07")
    with progress("decoding [/red]", 1) as tick:
        tick(1, "[/b]")
    out, err = capsys.readouterr()
    for text in ("[/red] :smile: \\x1b[2J", "[/b]", "[b]ob", "s:x:1", "[/i]"):
        assert text in out
    assert "decoding [/red]" in err
    assert "\x1b" not in out + err


def test_cells_of_spreadsheets_are_not_formulas(tmp_path: Path) -> None:
    rows = [Prediction("=cmd|x.png", (("@SUM(1)", 0.9), ("-1", 0.1)), False)]
    cells = list(csv.reader(Predictions(tuple(rows), ()).to_csv().splitlines()))[1]
    assert cells == ["'=cmd|x.png", "'@SUM(1)", "0.900000", "no", "-1", "0.100000"]
    runs = frame().assign(target="=2+2", dataset="'=x", device="+x")
    write_runs(runs, tmp_path / "runs.csv")
    with (tmp_path / "runs.csv").open(newline="") as written:
        assert {row["target"] for row in csv.DictReader(written)} == {"'=2+2"}
    again = read_runs(tmp_path / "runs.csv")
    assert {name: set(again[name]) for name in ("target", "dataset", "device")} == {
        "target": {"=2+2"}, "dataset": {"'=x"}, "device": {"+x"},
    }  # fmt: skip
    assert set(again["fingerprint"]) == set(runs["fingerprint"])
    assert outcome("report", str(tmp_path / "runs.csv"), "--out", str(tmp_path / "out")) is None
    for file in (tmp_path / "out").glob("*.csv"):
        with file.open(newline="") as lines:
            found = [cell for row in csv.reader(lines) for cell in row]
        assert not [cell for cell in found if csv_cell(cell) != cell and not cell.startswith("'")], file


def test_raw_cells_are_written_as_they_are(tmp_path: Path) -> None:
    rows = [Prediction("=cmd|x.png", (("@SUM(1)", 0.9),), False)]
    cells = list(csv.reader(Predictions(tuple(rows), ()).to_csv(raw=True).splitlines()))[1]
    assert cells[:2] == ["=cmd|x.png", "@SUM(1)"]
    write_runs(frame().assign(target="=2+2"), tmp_path / "runs.csv", raw=True)
    with (tmp_path / "runs.csv").open(newline="") as written:
        assert {row["target"] for row in csv.DictReader(written)} == {"=2+2"}
    assert outcome("report", str(tmp_path / "runs.csv"), "--raw", "--out", str(tmp_path / "out")) is None
    texts = [file.read_text() for file in (tmp_path / "out").glob("*.csv")]
    assert any("=2+2" in text for text in texts)
    assert not any("'=2+2" in text for text in texts)


def test_warnings_logs_tracebacks_and_usage_errors_are_escaped() -> None:
    """In a process of its own, which `main` changes for good."""
    code = (
        "import logging, sys, warnings\n"
        "from longshift.cli.main import main\n"
        "from longshift.cli.safe_messages import escape_warnings_and_logs\n"
        "escape_warnings_and_logs()\n"
        "warnings.warn('warned \\x1b[2J')\n"
        "logging.getLogger('longshift').warning('logged \\x1b[2J')\n"
        "sys.argv = ['longshift', 'predict', 'm', 'i', '--odd\\x1b[2J']\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert end.code == 2\n"
        "def fail():\n    raise RuntimeError('failed \\x1b[2J')\n"
        "import longshift.cli.main as module\n"
        "module.app = fail\n"
        "main()\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "\x1b[2J" not in run.stdout + run.stderr
    for text in ("warned", "logged", "failed", "--odd"):
        assert f"{text}\\x1b" in run.stderr.replace(" ", ""), run.stderr


@pytest.mark.parametrize("text", ["=1", "'=1", "''=1", "-", "-1", "+1e3", "cat", "", "'quoted'", "\t=1"])
def test_cells_come_back(text: str) -> None:
    assert from_csv_cell(str(csv_cell(text))) == text


def test_best_configurations_of_similar_names_are_two_files() -> None:
    assert _safe("a_b") == "a_b"
    assert len({_safe(name) for name in ("a b", "a_b", "a/b", "a:b", ".a", "a")}) == 6
    assert not _safe("../x").startswith(".")
    assert "/" not in _safe("../x")
