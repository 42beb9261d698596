"""Prove that the tests of faults can fail: take one check out of the code at a time and run the tests of that check.

    python -m benchmarks.fault_mutations [--only TEXT]

Works in a temporary copy of the tree. First the tests must pass there as it is; then, for each mutation, each of its
tests must fail. The exit code is 1 if a mutation survives. --only keeps the mutations whose promise, file or tests
contain the text. All of them take about ten minutes on one processor.

The list covers the faults that were once in the code and the promises of docs/explanation/reliability.md. A test of
the suite checks that each old text occurs exactly once in its file: whoever changes such a line changes the list.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from benchmarks.faults import outcomes

ROOT = Path(__file__).parents[1]
TREE = ("src", "tests", "benchmarks", "pyproject.toml")
LONGEST = 600  # seconds of the tests of one mutation


class Mutation(NamedTuple):
    """A change that breaks a promise."""

    promise: str
    file: str  # below src/longshift
    old: str
    new: str
    tests: tuple[str, ...]  # "tests/FILE.py::test_name"; of a parametrized test, one case must fail


F = "tests/faults/"
CHECKED, READS, NAMES = f"{F}test_checked_files.py::", f"{F}test_bounded_reads.py::", f"{F}test_odd_names.py::"
CODE = "Code of a stranger does not run"
DATA = "Changed data are noticed"
CACHES = "Caches and results are checked"
MODELS = "A model's description and weights belong together"
RAY = "A dead raylet fails no job"
BOUNDS = "Reads are bounded"
TERMINALS = "Work outlives its log, and signals save it"
ODD_NAMES = "Names mean nothing to terminals, spreadsheets and file systems"
RESTS = "What is left behind or half there"

MUTATIONS = (
    Mutation(
        CODE, "methods/registry.py",
        "    known = all_methods()\n    spellings = ",
        '    if name.partition(":")[0].endswith(".py"):\n'
        '        __import__("runpy").run_path(name.partition(":")[0])\n'
        "    known = all_methods()\n    spellings = ",
        (
            f"{F}test_strangers_code.py::test_a_run_and_a_model",
            f"{F}test_strangers_code.py::test_a_sweep_and_results", f"{F}test_strangers_code.py::test_a_fit",
        ),
    ),
    Mutation(
        CODE, "data/vectors.py", "np.load(path, allow_pickle=False)", "np.load(path, allow_pickle=True)",
        (f"{F}test_fuzz.py::test_a_pickle_does_not_run",),
    ),
    Mutation(
        CODE, "training/checkpoint.py", "weights_only=True", "weights_only=False",
        (f"{F}test_fuzz.py::test_a_pickle_does_not_run",),
    ),
    Mutation(
        CODE, "data/image_decoding.py", ", formats=_formats())", ")",
        (f"{F}test_strangers_code.py::test_a_picture_starts_no_program",),
    ),
    Mutation(
        CODE, "sweep/local_launcher.py", "        with _safe_path():\n", "        if True:\n",
        (f"{F}test_strangers_code.py::test_workers_import_nothing_from_the_current_folder",),
    ),
    Mutation(
        CODE, "sweep/job_claims.py", "        if self.path.is_symlink():", "        if False:",
        (f"{F}test_strangers_code.py::test_links_in_a_sweep_lead_to_no_other_file",),
    ),
    Mutation(
        CODE, "sweep/job_store.py", "        if store.index.is_symlink():", "        if False:",
        (f"{F}test_strangers_code.py::test_links_in_a_sweep_lead_to_no_other_file",),
    ),
    Mutation(
        CODE, "locks.py", "    if path.is_symlink():", "    if False:",
        (f"{F}test_strangers_code.py::test_links_in_a_sweep_lead_to_no_other_file",),
    ),
    Mutation(
        DATA, "training/resolve_run.py", '{"data_version": "" if config.benchmark else self.version}',
        '{"data_version": ""}', (f"{F}test_changed_data.py::test_a_sweep_runs_changed_data_anew",),
    ),
    Mutation(
        DATA, "training/resolve_run.py", "    if expected and found != expected:\n", "    if False:\n",
        (
            f"{F}test_changed_data.py::test_a_run_is_not_resumed_on_other_data",
            f"{F}test_changed_data.py::test_a_run_counts_by_content_and_not_by_place",
        ),
    ),
    Mutation(
        DATA, "fitting/fit_run.py",
        "(plan.fingerprint, plan.version) != (dataset.manifest.fingerprint(), dataset.version)",
        "plan.fingerprint != dataset.manifest.fingerprint()",
        (f"{F}test_changed_data.py::test_a_fit_is_not_resumed_on_other_data",),
    ),
    Mutation(
        DATA, "report/run_filters.py", "if len(versions) < 2:", "if len(versions) < 9:",
        (f"{F}test_changed_data.py::test_a_report_refuses_two_versions",),
    ),
    Mutation(
        CACHES, "sweep/job_store.py", "checksum == _sum(rest)", "checksum",
        (
            f"{CHECKED}test_no_flipped_bit_of_the_index_changes_a_number",
            f"{CHECKED}test_an_edited_number_of_the_index_is_not_believed",
        ),
    ),
    Mutation(
        CACHES, "sweep/jobs.py", 'hashlib.sha256(text.encode()).hexdigest() == head["jobs"]', "True",
        (f"{CHECKED}test_an_edited_plan_is_made_again",),
    ),
    Mutation(
        CACHES, "files.py", "    if found != content_hash(value):\n", "    if False:\n",
        (
            f"{CHECKED}test_edited_numbers_of_a_result_are_refused_everywhere",
            f"{CHECKED}test_an_edited_description_is_refused",
        ),
    ),
    Mutation(
        CACHES, "training/run_folder.py", " or _contradiction(value)", "",
        (
            f"{CHECKED}test_edited_numbers_of_a_result_are_refused_everywhere",
            f"{F}test_fit_faults.py::test_edited_numbers_of_a_site_are_noticed",
        ),
    ),
    Mutation(
        CACHES, "training/result_checks.py", "        if not _same(found, value):\n", "        if False:\n",
        (f"{CHECKED}test_edited_numbers_of_a_result_are_refused_everywhere",),
    ),
    Mutation(
        CACHES, "training/run_folder.py", "expected is not None and file_hash(path) != expected", "False",
        (f"{CHECKED}test_evaluations_of_another_run_are_refused",),
    ),
    Mutation(
        CACHES, "data/image_cache.py", "if _damaged_rows(pixels, sums, CHECKED_BYTES):", "if False:",
        ("tests/data/test_image_cache.py::test_a_damaged_store_is_built_again",),
    ),
    Mutation(
        CACHES, "data/image_cache.py", " and not _damaged_rows(pixels, sums, pixels.nbytes or 1)", "",
        (f"{CHECKED}test_verify_checks_all_of_the_image_cache",),
    ),
    Mutation(
        MODELS, "training/model_file.py", "value = read_sealed(path)",
        "value = __import__('json').loads(path.read_text())",
        (f"{CHECKED}test_an_edited_description_is_refused",),
    ),
    Mutation(
        MODELS, "training/checkpoint.py", "    if named and named != found:\n", "    if False:\n",
        (f"{CHECKED}test_weights_of_another_run_are_refused",),
    ),
    Mutation(
        RAY, "sweep/ray_launcher.py",
        "isinstance(error, (exceptions.WorkerCrashedError, exceptions.OutOfMemoryError))\n"
        "        if len(self.losses) >= MOST_IN_A_ROW and",
        "True\n        if False and",
        ("tests/sweep/test_ray_cluster.py::test_a_dead_raylet_fails_no_job",),
    ),
    Mutation(
        BOUNDS, "data/image_bytes.py", "            if entry.file_size > MOST_BYTES:\n", "            if False:\n",
        (f"{READS}test_a_zip_bomb_is_not_unpacked",),
    ),
    Mutation(
        BOUNDS, "files.py", "    if not stat.S_ISREG(status.st_mode):\n", "    if stat.S_ISDIR(status.st_mode):\n",
        (f"{READS}test_what_is_not_a_file_is_refused_at_once[device]",),
    ),
    Mutation(
        BOUNDS, "data/image_decoding.py", "BAND = 64 ", "BAND = 1 << 20 ",
        (f"{READS}test_sixteen_bits_cost_no_wider_copies",),
    ),
    Mutation(
        BOUNDS, "data/image_decoding.py", "_one_large if width * height > LARGE else nullcontext()", "nullcontext()",
        (f"{READS}test_large_pictures_are_decoded_one_at_a_time",),
    ),
    Mutation(
        BOUNDS, "data/image_decoding.py", "        if width * height > PIXEL_LIMIT:\n", "        if False:\n",
        (f"{READS}test_a_picture_over_the_limit_is_refused_without_a_warning",),
    ),
    Mutation(
        BOUNDS, "data/vectors.py", "        refuse_bomb(path, unpacked)\n", "",
        (f"{READS}test_packed_vectors_are_refused_before_they_are_unpacked",),
    ),
    Mutation(
        BOUNDS, "data/parquet_file.py", "sum(_length(table.column(name)) for name in texts)", "0",
        (f"{READS}test_texts_of_a_table_are_not_multiplied",),
    ),
    Mutation(
        BOUNDS, "inference/loading.py", "2 * trained.feature_dim * len(info.classes) > file.stat().st_size", "False",
        (f"{READS}test_more_classes_than_weights_are_refused",),
    ),
    Mutation(
        TERMINALS, "cli/output_streams.py", "            self.lost = error\n", "            raise\n",
        (
            f"{F}test_lost_terminals.py::test_train_outlives_a_full_log_disk",
            f"{F}test_lost_terminals.py::test_a_sweep_outlives_the_reader_of_its_log",
        ),
    ),
    Mutation(
        TERMINALS, "training/interrupt.py", '("SIGTERM", "SIGHUP")', '("SIGTERM",)',
        (f"{F}test_lost_terminals.py::test_a_sweep_saves_its_jobs_when_the_terminal_closes",),
    ),
    Mutation(
        TERMINALS, "training/interrupt.py", "        signal.signal(signal.SIGINT, before[signal.SIGINT])\n",
        "        for each, previous in before.items():\n            signal.signal(each, previous)\n",
        ("tests/training/test_interrupt.py::test_repeated_sigterm_asks_once_and_never_kills",),
    ),
    Mutation(
        BOUNDS, "cli/main.py", "        _require_memory()\n", "",
        (f"{F}test_memory_limits.py::test_too_little_memory_ends_in_words",),
    ),
    Mutation(
        TERMINALS, "cli/main.py", "    outlive_repeated_signals()\n", "",
        (f"{F}test_lost_terminals.py::test_a_signal_while_a_stopped_command_tells_how_to_resume_does_not_end_it",),
    ),
    Mutation(
        ODD_NAMES, "cli/common.py", "console.print(Text(printable(text), style), soft_wrap=True)",
        "console.print(printable(text), style=style, soft_wrap=True)",
        (f"{NAMES}test_lines_tables_and_bars_have_no_markup",),
    ),
    Mutation(
        ODD_NAMES, "cli/common.py", "    return Text(printable(f", "    return str(printable(f",
        (f"{NAMES}test_names_are_shown_as_they_are", f"{NAMES}test_lines_tables_and_bars_have_no_markup"),
    ),
    Mutation(
        ODD_NAMES, "text.py", "return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)", "return text",
        (
            f"{NAMES}test_names_are_shown_as_they_are",
            f"{NAMES}test_warnings_logs_tracebacks_and_usage_errors_are_escaped",
        ),
    ),
    Mutation(
        ODD_NAMES, "text.py", "        return f\"'{value}\"\n", "        return value\n",
        (f"{NAMES}test_cells_of_spreadsheets_are_not_formulas",),
    ),
    Mutation(
        ODD_NAMES, "sweep/best_configs.py", "return plain if plain == name else", "return plain if True else",
        (f"{NAMES}test_best_configurations_of_similar_names_are_two_files",),
    ),
    Mutation(
        RESTS, "fitting/job_runner.py", "            checkpoint.check_weights(final.model, described.weights)\n", "",
        ("tests/cli/test_fit.py::test_an_incomplete_final_model_is_trained_again[model.safetensors]",),
    ),
    Mutation(
        RESTS, "locks.py", "            remove_parts(folder)", "            pass",
        (f"{CHECKED}test_half_written_checkpoints_of_killed_jobs_are_removed",),
    ),
    Mutation(
        RESTS, "sweep/job_claims.py", "abs(time.time() - path.stat().st_mtime)", "time.time() - path.stat().st_mtime",
        (f"{CHECKED}test_a_claim_of_tomorrow_blocks_nothing",),
    ),
    Mutation(
        RESTS, "sweep/jobs.py", "with contextlib.suppress(LongshiftError):  # only a cache",
        "with contextlib.nullcontext():  #",
        (f"{CHECKED}test_a_read_only_sweep_without_a_plan_can_be_looked_at",),
    ),
    Mutation(
        RESTS, "data/image_cache.py", "ValueError, EOFError, KeyError, TypeError, AttributeError",
        "ValueError, EOFError",
        ("tests/data/test_image_cache.py::test_a_damaged_store_is_built_again",),
    ),
    Mutation(
        RESTS, "sweep/run_job.py", "errno.EFBIG, ", "",
        (f"{CHECKED}test_a_limit_on_file_sizes_stops_the_sweep_and_fails_no_job",),
    ),
    Mutation(
        RESTS, "sweep/run_job.py", "with lock_folder(store.job(job.fingerprint)):", "with contextlib.nullcontext():",
        (f"{CHECKED}test_a_job_and_train_resume_do_not_meet",),
    ),
    Mutation(
        RESTS, "data/image_decoding.py", 'warnings.filterwarnings("ignore"', 'warnings.filterwarnings("default"',
        (f"{READS}test_a_picture_over_the_limit_is_refused_without_a_warning",),
    ),
    Mutation(
        RESTS, "data/vectors.py", "        if not zipfile.is_zipfile(path):\n", "        if False:\n",
        (f"{READS}test_a_text_called_npz_is_told_as_it_is",),
    ),
    Mutation(
        RESTS, "data/vectors.py", '    x, good = _finite(path, columns["x"])\n',
        '    x, good = _finite(path, _numbers(path, columns["x"]))\n',
        (f"{READS}test_two_bad_vectors_do_not_cost_the_others",),
    ),
    Mutation(
        RESTS, "cli/fit.py", "if quiet or as_json:  # otherwise they were", "if as_json:  # otherwise they were",
        ("tests/cli/test_fit.py::test_quiet_does_not_hide_warnings_about_the_data",),
    ),
    Mutation(
        RESTS, "cli/fit.py", "    require_dataset(data)\n", "    import torch\n\n    require_dataset(data)\n",
        ("tests/cli/test_fit.py::test_a_typo_is_told_before_heavy_packages_are_imported",),
    ),
    Mutation(
        RESTS, "inference/evaluate_run.py", "calibration_scores(logits, task.labels(indices), temperature)",
        "calibration_scores(logits, task.labels(indices), 1.0)",
        ("tests/cli/test_evaluate.py::test_calibration_is_that_of_predictions",),
    ),
)  # fmt: skip


def run_tests(tree: Path, tests: Iterable[str]) -> dict[str, str]:
    """Test case -> outcome in a copy of the tree."""
    command = [sys.executable, "-m", "pytest", "-v", "--no-header", "-p", "no:cacheprovider", *dict.fromkeys(tests)]
    environment = {**os.environ, "PYTHONPATH": os.fspath(tree / "src")}
    done = subprocess.run(
        command, cwd=tree, env=environment, capture_output=True, text=True, check=False, timeout=LONGEST
    )
    return outcomes(done.stdout.splitlines())


def survived(mutation: Mutation, found: dict[str, str]) -> list[str]:
    """Tests of a mutation that did not fail; an error before the test begins is not a failure."""
    return [
        test
        for test in mutation.tests
        if not any(case.startswith(test) and outcome == "FAILED" for case, outcome in found.items())
    ]


def mutated(tree: Path, mutation: Mutation) -> Path:
    """Change the file in the tree; return its path."""
    path = tree / "src" / "longshift" / mutation.file
    text = path.read_text(encoding="utf-8")
    assert text.count(mutation.old) == 1, (mutation.file, mutation.old)
    path.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
    return path


def main() -> None:
    """Run the mutations one after the other."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    wanted = parser.parse_args().only
    chosen = [one for one in MUTATIONS if wanted in " ".join((one.promise, one.file, *one.tests))]
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        for name in TREE:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy2(ROOT / name, tree / name)
        before = run_tests(tree, (test for one in chosen for test in one.tests))
        if not before or set(before.values()) != {"PASSED"}:
            sys.exit("Expected all tests to pass before a mutation, got:\n" + "\n".join(map(" ".join, before.items())))
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"  # compiled files of the tree as it is stay valid
        left = 0
        for number, mutation in enumerate(chosen, start=1):
            began, kept = time.monotonic(), tree / "kept.py"
            shutil.copy2(tree / "src" / "longshift" / mutation.file, kept)
            path = mutated(tree, mutation)
            passed = survived(mutation, run_tests(tree, mutation.tests))
            shutil.copy2(kept, path)  # with its time stamp
            left += bool(passed)
            verdict = f"SURVIVED {', '.join(passed)}" if passed else "noticed"
            what = " ".join(mutation.old.split())[:60]
            print(
                f"{number}/{len(chosen)} {mutation.file}: {what}: {verdict}, {time.monotonic() - began:.0f} s",
                flush=True,
            )
    print(f"{len(chosen) - left} of {len(chosen)} mutations were noticed by all of their tests.")
    sys.exit(1 if left else 0)


if __name__ == "__main__":
    main()
