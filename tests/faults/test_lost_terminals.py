"""Nobody reads the log any more, the terminal closes, signals come twice: the work goes on or is saved."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.commands import Command, wait_for
from tests.faults.tools import LONG, PROGRAM, tiny_sites
from tests.sweep.small import write_sweep

TRAIN = (
    "train", "--data", "digits", "--target", "ink", "--method", "erm", "--eval-every", "50", "--set", "batch_size=4",
    "--device", "cpu",
)  # fmt: skip


def popen(*arguments: str | Path, **options: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", PROGRAM, *map(str, arguments)]
    return subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, **options)  # type: ignore[call-overload, no-any-return]


@pytest.mark.slow
def test_a_sweep_outlives_the_reader_of_its_log(tmp_path: Path) -> None:
    """As with `sweep run DIR 2>&1 | head -1`."""
    folder = write_sweep(tmp_path / "s", draws=1)
    log = tmp_path / "log"
    os.mkfifo(log)
    process = Command("sweep", "run", folder, "--workers", "1", "--device", "cpu", files=(log, log))
    reader = os.open(log, os.O_RDONLY)
    assert os.read(reader, 1)
    os.close(reader)
    process.communicate()
    assert process.returncode == 0
    assert len(list(folder.glob("jobs/*/result.json"))) == 2
    assert not list(folder.glob("jobs/*/failure.json"))


@pytest.mark.slow
@pytest.mark.parametrize("stream", ["stderr", "stdout"])
def test_train_outlives_a_full_log_disk(tmp_path: Path, stream: str) -> None:
    """/dev/full gives "no space left on device" to whoever writes."""
    out, full = tmp_path / "run", Path("/dev/full")
    files = (full, None) if stream == "stdout" else (None, full)
    process = Command(*TRAIN, "--steps", "4", "--out", out, files=files)
    _, text = process.communicate()
    assert (out / "result.json").exists()
    assert not (out / "resume.pt").exists()
    if stream == "stderr":
        assert process.returncode == 0
    else:  # the run is whole, but whoever wanted its table in a file must know
        assert process.returncode == 1
        assert "cannot write standard output: the disk is full" in text


@pytest.mark.slow
def test_fit_outlives_a_full_log_disk(tmp_path: Path) -> None:
    data, out = tiny_sites(tmp_path / "sites"), tmp_path / "fit"
    flags = ("--method", "erm", "--steps", "3", "--set", "batch_size=2", "--device", "cpu")
    process = Command("fit", data, *flags, "--out", out, files=(None, Path("/dev/full")))
    process.communicate()
    assert process.returncode == 0
    assert (out / "fit.json").exists()


def test_a_reader_that_had_enough_is_no_error() -> None:
    reader, writer = os.pipe()
    process = popen("methods", stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    os.close(reader)
    _, said = process.communicate(timeout=200)
    assert (process.returncode, said) == (0, b"")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM] if LONG else [signal.SIGTERM])
def test_a_signal_saves_the_run_however_often_it_comes(tmp_path: Path, number: signal.Signals) -> None:
    out = tmp_path / "run"
    process = Command(*TRAIN, "--steps", "100000", "--checkpoint-every", "5", "--out", out)
    wait_for(lambda: (out / "resume.pt").exists() or process.poll() is not None)
    for _ in range(60):  # for three seconds: also while it ends
        process.send_signal(number)
        time.sleep(0.05)
    _, said = process.communicate()
    assert process.returncode == 130, said
    assert "resume with: longshift train --resume" in said
    assert (out / "resume.pt").exists()


def test_a_signal_while_a_stopped_command_tells_how_to_resume_does_not_end_it() -> None:
    """The second SIGTERM of `timeout` may come at any moment; here it comes at that one."""
    code = (
        "import signal\n"
        "import longshift.cli.main as module\n"
        "from longshift.training.interrupt import Interrupted, graceful_stop\n"
        "told = module.tell\n"
        "def tell(text, style=''):\n    signal.raise_signal(signal.SIGTERM)\n    told(text, style)\n"
        "def app():\n"
        "    with graceful_stop():\n        signal.raise_signal(signal.SIGTERM)\n"
        "    raise Interrupted('resume with: ...')\n"
        "module.tell, module.app = tell, app\n"
        "module.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "resume with: ...\n")


@pytest.mark.slow
def test_a_sweep_saves_its_jobs_when_the_terminal_closes(tmp_path: Path) -> None:
    """A real terminal: closing it sends SIGHUP to the command and its workers, and later writes fail."""
    folder = write_sweep(tmp_path / "s", draws=1, run={"steps": 5000, "eval_every": 5000})
    pid, terminal = pty.fork()
    if pid == 0:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup, it would be ignored here, too
        arguments = ["sweep", "run", str(folder), "--workers", "1", "--device", "cpu"]
        os.execve(sys.executable, [sys.executable, "-c", PROGRAM, *arguments], {**os.environ, "OMP_NUM_THREADS": "1"})
    wait_for(lambda: any(folder.glob("jobs/*/resume.pt")), 200)
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 130
    assert any(folder.glob("jobs/*/resume.pt"))
    assert not list(folder.glob("jobs/*/.*.part"))
    assert not list(folder.glob("jobs/*/failure.json"))


def test_nohup_goes_on(tmp_path: Path) -> None:
    from longshift.training.interrupt import graceful_stop

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with graceful_stop() as asked:
            signal.raise_signal(signal.SIGHUP)
            assert not asked()
    finally:
        signal.signal(signal.SIGHUP, before)
