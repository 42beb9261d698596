"""Time and memory of commands on large data: 1x, 2x and 4x of four kinds of load.

    python -m benchmarks.load [--out results/load.csv] [--only rows,vectors,jobs,images] [--share 0.01]

Loads: 300,000 rows of a dataset (tiny images in a .zip, and a table that lists them), 200,000 vectors, 20,000 finished
jobs of a sweep, 100,000 images to predict. Each command runs in a process of its own, which reports its CPU seconds
and its peak memory. CPU seconds do not depend on what else the machine does; a growth from 1x to 4x by much more than
4 would mean that the work per item grows. --share tries everything with a part of each load. Needs 6 GB of disk.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.common import machine, write_rows

OUT = Path(__file__).parents[1] / "results" / "load.csv"
FACTORS = (1, 2, 4)
DOMAINS, CLASSES = 4, 10
LENGTH = 64  # of a vector
# The peak is the kernel's count for this process; getrusage would count the process that started it as well.
PROGRAM = """
import atexit, json, pathlib, resource, sys
from longshift.cli.main import main
report = pathlib.Path(sys.argv.pop(1))
def tell():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    peak = int(pathlib.Path("/proc/self/status").read_text().split("VmHWM:")[1].split("kB")[0])
    report.write_text(json.dumps([sum(u.ru_utime + u.ru_stime for u in used), peak / 2**10]))
atexit.register(tell)
main()
"""


class Command(NamedTuple):
    """A command to measure; without a label it only prepares the next ones."""

    label: str
    arguments: tuple[str, ...]


class Preparation(NamedTuple):
    """Python to run between two commands."""

    code: str


Steps = list[Command | Preparation]


class Load(NamedTuple):
    """One kind of load: how many items are 1x, and a function that makes n of them and names the commands."""

    unit: str
    size: int
    prepare: Callable[[Path, int], Steps]


def png(pixels: bytes, side: int) -> bytes:
    """A grayscale image file, without the detour over Pillow: a million of them are needed."""
    lines = b"".join(b"\0" + pixels[row * side : (row + 1) * side] for row in range(side))
    parts = [
        (b"IHDR", side.to_bytes(4, "big") * 2 + b"\x08\0\0\0\0"),
        (b"IDAT", zlib.compress(lines, 0)),
        (b"IEND", b""),
    ]
    chunks = [
        len(body).to_bytes(4, "big") + kind + body + zlib.crc32(kind + body).to_bytes(4, "big") for kind, body in parts
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def place(index: int) -> str:
    """domain/class/name of a sample."""
    return f"domain{index % DOMAINS}/class{index // DOMAINS % CLASSES}/{index}.png"


def rows(folder: Path, n: int) -> Steps:
    """A zip of n images of 4 x 4 pixels, and a table that names n images."""
    data, table = folder / "rows.zip", folder / "rows.csv"
    rng = np.random.default_rng(0)
    with zipfile.ZipFile(data, "w") as archive:
        for index in range(n):
            archive.writestr(place(index), png(rng.bytes(16), 4))
    with table.open("w", encoding="utf-8") as file:
        file.write("path,label,domain\n")
        for index in range(n):
            domain, label, _ = place(index).split("/")
            file.write(f"{place(index)},{label},{domain}\n")
    split = ("--setting", "TotalHeavyTail", "--target", "domain0", "--out", str(folder / "split.json"))
    return [
        Command("data inspect, a table", ("data", "inspect", str(table))),
        Command("data inspect, a zip", ("data", "inspect", str(data))),
        Command("data verify, a zip", ("data", "verify", str(data), "--quiet")),
        Command("split make, a zip", ("split", "make", str(data), *split)),
    ]


def vectors(folder: Path, n: int) -> Steps:
    """A file of n vectors."""
    data, run, rng = folder / "vectors.npz", folder / "run", np.random.default_rng(0)
    index = np.arange(n)
    x = rng.standard_normal((n, LENGTH), dtype=np.float32)
    x[index, index // DOMAINS % CLASSES] += 3
    np.savez(data, x=x, label=index // DOMAINS % CLASSES, domain=index % DOMAINS)
    train = ("--setting", "TotalHeavyTail", "--target", "0", "--method", "erm", "--steps", "20", "--eval-every", "10")
    return [
        Command("data inspect, vectors", ("data", "inspect", str(data))),
        Command("train, 20 steps", ("train", "--data", str(data), *train, "--device", "cpu", "-q", "--out", str(run))),
        Command("predict, vectors", ("predict", str(run), str(data), "--out", str(folder / "p.csv"), "-q")),
    ]


def jobs(folder: Path, n: int) -> Steps:
    """A sweep of at least n jobs, each with the result of the first one under its own name."""
    sweep, trials = folder / "sweep", 4
    draws = -(-n // (3 * 4 * 5 * trials))  # settings, targets, methods
    sweep.mkdir()
    methods = '["erm", "ndcl", "coral", "irm", "mixup"]'
    (sweep / "sweep.toml").write_text(
        f'settings = ["TotalHeavyTail", "Duality", "Balanced"]\nmethods = {methods}\n'
        f"trials = {trials}\ndraws = {draws}\n"
        '[[datasets]]\npath = "digits"\n[run]\nsteps = 2\neval_every = 1\n'
    )
    return [
        Command("sweep plan", ("sweep", "plan", str(sweep))),
        Preparation(f"from benchmarks.load import finish_jobs; finish_jobs({str(sweep)!r})"),
        Command("sweep status, first time", ("sweep", "status", str(sweep))),
        Command("sweep status", ("sweep", "status", str(sweep))),
        Command("sweep collect", ("sweep", "collect", str(sweep))),
        Command("report", ("report", str(sweep), "--format", "csv")),
    ]


def finish_jobs(folder: str) -> None:
    """Run the first job; write its result for every other job."""
    from longshift.sweep import make_plan
    from longshift.sweep.worker import execute
    from longshift.training import Runtime, TaskCache

    plan = make_plan(Path(folder))[1]
    first, store = plan.jobs[0], plan.folder.store
    outcome = execute(first, store, Runtime(device="cpu", keep_model=False), TaskCache())
    if outcome.kind != "done":
        sys.exit(f"the first job: {outcome}")
    origin = store.job(first.fingerprint)
    pattern = json.loads((origin / "result.json").read_text())
    for job in plan.jobs[1:]:
        value = {**pattern, "fingerprint": job.fingerprint, "run": job.run}
        value["hparams"] = job.config.method_config().to_dict()
        target = store.job(job.fingerprint)
        target.mkdir()
        shutil.copy(origin / "metrics.jsonl", target)
        (target / "result.json").write_text(json.dumps(value))


def images(folder: Path, n: int) -> Steps:
    """A folder of n images of 8 x 8 pixels and a small network."""
    site, run, rng = folder / "site", folder / "run", np.random.default_rng(0)
    for start in range(0, n, 1000):
        (site / str(start)).mkdir(parents=True)
        for index in range(start, min(n, start + 1000)):
            (site / str(start) / f"{index}.png").write_bytes(png(rng.bytes(64), 8))
    train = ("--data", "digits", "--target", "ink", "--method", "erm", "--steps", "5", "--device", "cpu")
    make = Command("", ("train", *train, "-q", "--out", str(run)))
    words = ("predict", str(run), str(site), "--device", "cpu", "--threads", "1", "-q", "--out", str(folder / "p.csv"))
    return [make, Command("predict, images", words)]


LOADS = {
    "rows": Load("rows of a dataset", 300_000, rows),
    "vectors": Load("vectors", 200_000, vectors),
    "jobs": Load("jobs of a sweep", 20_000, jobs),
    "images": Load("images to predict", 100_000, images),
}


def measure(step: Command | Preparation, folder: Path) -> dict[str, float]:
    """Run a command; its wall-clock seconds, CPU seconds and peak memory."""
    report, begun = folder / "report.json", time.monotonic()
    words = [step.code] if isinstance(step, Preparation) else [PROGRAM, str(report), *step.arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "LONGSHIFT_CACHE": str(folder / "cache")}
    command = [sys.executable, "-c", *words]
    process = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if process.returncode:
        sys.exit(f"{step} ended with {process.returncode}:\n{process.stderr[-3000:]}")
    if isinstance(step, Preparation):
        return {}
    seconds, peak = json.loads(report.read_text())
    wall = time.monotonic() - begun
    return {"seconds": round(wall, 1), "cpu_seconds": round(seconds, 1), "peak_mib": round(peak)}


def main() -> None:
    """Measure all loads, print a line each, write the file."""
    import torch

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--only", default=",".join(LOADS))
    parser.add_argument("--share", type=float, default=1.0, help="part of each load, to try the benchmark itself")
    options = parser.parse_args()
    about, found = machine(torch.device("cpu")), list[dict[str, Any]]()
    for name in options.only.split(","):
        load = LOADS[name]
        for factor in FACTORS:
            n = int(load.size * factor * options.share)
            with tempfile.TemporaryDirectory(prefix="longshift-load-") as folder:
                for step in load.prepare(Path(folder), n):
                    numbers = measure(step, Path(folder))
                    if isinstance(step, Command) and step.label:
                        row = {"load": load.unit, "command": step.label, "factor": factor, "n": n, **numbers}
                        print(json.dumps(row), file=sys.stderr, flush=True)
                        found.append({**row, **about})
            write_rows(options.out, found)


if __name__ == "__main__":
    main()
