"""How long `status` and the table of runs take for a sweep of 20,000 finished jobs.

    python benchmarks/big_sweep.py [--keep DIR]

One real job gives the pattern; its result is written under the name of every job of a sweep of all methods x 3 settings
x 4 targets x 3 trials x 24 draws on the embedded digits. Each command is timed in a process of its own, first without
the index of finished jobs and then with it. Needs about 400 MB of disk.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from longshift.sweep.jobs import make_plan
from longshift.sweep.run_job import execute
from longshift.training.run_config import Runtime
from longshift.training.task import TaskCache

SWEEP = """
settings = ["TotalHeavyTail", "Duality", "Balanced"]
methods = "all"
trials = 3
draws = 24

[[datasets]]
path = "digits"

[run]
steps = 2
eval_every = 1
"""
# The most memory a process had, as the kernel counts it; getrusage would count its parent's as well.
MEMORY = """
import atexit, pathlib, sys
def tell():
    status = pathlib.Path("/proc/self/status").read_text()
    sys.stderr.write(status.split("VmHWM:")[1].split("kB")[0])
atexit.register(tell)
"""
STATUS = MEMORY + "from longshift.cli.main import main; main()"
COLLECT = (
    MEMORY
    + """
from longshift.sweep.collecting import collect
from longshift.results.selection import averages, choose, per_target
frame = collect(sys.argv[1], missing=True)
chosen = choose(frame)
print(len(frame), "runs,", len(per_target(chosen)), "cells,", len(averages(chosen)), "averages")
"""
)


def fill(folder: Path) -> int:
    """Write the sweep and a result for every job."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sweep.toml").write_text(SWEEP)
    begun = time.monotonic()
    _, plan = make_plan(folder)
    print(f"{len(plan.jobs)} jobs named in {time.monotonic() - begun:.1f} s", flush=True)
    torch.set_num_threads(1)
    first, store = plan.jobs[0], plan.folder.store
    outcome = execute(first, store, Runtime(device="cpu", keep_model=False), TaskCache())
    if outcome.kind != "done":
        sys.exit(f"the first job: {outcome}")
    pattern = json.loads((store.job(first.fingerprint) / "result.json").read_text())
    for job in plan.jobs[1:]:
        value = {**pattern, "fingerprint": job.fingerprint, "run": job.run}
        value["hparams"] = job.config.method_config().to_dict()
        place = store.job(job.fingerprint)
        place.mkdir()
        (place / "result.json").write_text(json.dumps(value, indent=2))
    return len(plan.jobs)


def timed(label: str, *command: str) -> None:
    """Run a command; print its time and the most memory it had."""
    begun = time.monotonic()
    process = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=True)
    seconds = time.monotonic() - begun
    lines = [line.strip() for line in process.stdout.splitlines() if line.strip()]
    print(f"{label}: {seconds:.2f} s, {int(process.stderr.split()[-1]) / 2**20:.2f} GiB; {lines[0]}", flush=True)


def main() -> None:
    """Fill a folder and time the commands."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep", type=Path, help="use this folder, and leave it there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="longshift-big-") as name:
        folder = options.keep or Path(name) / "sweep"
        begun = time.monotonic()
        print(f"{fill(folder)} jobs written in {time.monotonic() - begun:.0f} s", flush=True)
        for index in ("without the index", "with the index"):
            for label, command in (
                ("status", ("-c", STATUS, "sweep", "status", str(folder))),
                ("collect and aggregate", ("-c", COLLECT, str(folder))),
            ):
                if index.startswith("without"):
                    (folder / "index.tsv").unlink(missing_ok=True)
                timed(f"{label} {index}", *command)


if __name__ == "__main__":
    main()
