"""A sweep that is killed with SIGKILL at random moments must end with the same table as an undisturbed one.

    python -m benchmarks.sweep_kill [--kills 3] [--seed 0] [--workers 2] [--small]

6 methods x 2 settings x 4 targets x 2 trials x 2 draws = 192 jobs on the embedded digits (8 with --small). Kills take
turns: the command alone (its workers notice), then the command with all its workers. Ends with exit code 1 unless the
two CSV files agree byte for byte (without times, memory, commit and device) and no finished job was touched again.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from longshift.sweep import run_columns, write_runs
from longshift.sweep.run_table import collect

METHODS = ["erm", "coral", "groupdro", "bsoftmax", "mixup", "ndcl"]
SWEEP = """
settings = {settings}
targets = {targets}
methods = {methods}
trials = {trials}
draws = 2

[[datasets]]
path = "digits"

[run]
steps = {steps}
eval_every = 2
evaluate = "full"

[runtime]
checkpoint_every = 1
"""
Snapshot = dict[str, tuple[int, str]]


def write_sweep(folder: Path, small: bool) -> None:
    """Write the sweep file."""
    folder.mkdir(parents=True)
    text = SWEEP.format(
        settings=["TotalHeavyTail"] if small else ["TotalHeavyTail", "Duality"],
        targets=["ink", "neon"] if small else '"all"',
        methods=["erm", "ndcl"] if small else METHODS,
        trials=1 if small else 2,
        steps=6,
    )
    (folder / "sweep.toml").write_text(text)


def start(folder: Path, workers: int) -> subprocess.Popen[bytes]:
    """Start `longshift sweep run` in a process group of its own."""
    program = "from longshift.cli.main import main; main()"
    command = [sys.executable, "-c", program, "sweep", "run", str(folder), "--workers", str(workers)]
    return subprocess.Popen([*command, "--device", "cpu", "--quiet"], start_new_session=True)


def snapshot(folder: Path) -> Snapshot:
    """Time stamp and content of each result."""
    found = {}
    for path in folder.glob("jobs/*/result.json"):
        found[path.parent.name] = (path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest())
    return found


def table(folder: Path) -> bytes:
    """The runs as CSV, without what depends on the machine."""
    path = folder / "table.csv"
    of_machine = [column.name for column in run_columns() if column.machine]
    write_runs(collect(folder).drop(columns=of_machine), path)
    return path.read_bytes()


def disturb(folder: Path, kills: int, workers: int, rng: random.Random, total: int) -> tuple[Snapshot, int]:
    """Run with kills; the results that were there at each kill, and how many of the kills met a running sweep."""
    seen: Snapshot = {}
    done = 0
    for number in range(kills):
        process = start(folder, workers)
        # Wait until new jobs get done, then for a random while: kills at start-up only would show little.
        floor = len(snapshot(folder)) + rng.randint(1, max(1, total // (kills + 2)))
        while process.poll() is None and len(snapshot(folder)) < floor:
            time.sleep(0.02)
        time.sleep(rng.random())
        if process.poll() is None:
            done += 1
            if number % 2:
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
        process.wait()
        now = snapshot(folder)
        print(f"kill {number + 1}: {len(now)} of {total} jobs were finished", flush=True)
        seen.update({name: value for name, value in now.items() if name not in seen})
    return seen, done


def main() -> None:
    """Run both and compare."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    total = 8 if options.small else 192
    with tempfile.TemporaryDirectory(prefix="longshift-kill-") as name:
        calm, killed = Path(name) / "calm", Path(name) / "killed"
        write_sweep(calm, options.small)
        write_sweep(killed, options.small)
        begun = time.monotonic()
        code = start(calm, options.workers).wait()
        print(f"undisturbed: exit code {code}, {time.monotonic() - begun:.0f} s", flush=True)
        begun = time.monotonic()
        seen, done = disturb(killed, options.kills, options.workers, random.Random(options.seed), total)
        last = start(killed, options.workers).wait()
        print(f"killed {done} times: exit code {last}, {time.monotonic() - begun:.0f} s", flush=True)
        end = snapshot(killed)
        again = [name for name, value in seen.items() if end.get(name) != value]
        first, second = table(calm), table(killed)
        same = first == second
        rows = first.count(b"\n") - 1
        print(f"{rows} runs; tables {'agree byte for byte' if same else 'DIFFER'} ({len(first)} bytes)")
        print(f"{len(seen)} jobs were finished before the last kill; {len(again)} of them were run again")
        if code or last or not same or again or rows != total or done != options.kills:
            sys.exit(1)


if __name__ == "__main__":
    main()
