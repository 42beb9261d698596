"""The faults that the suite tries: each row names its tests and what a user sees.

`make faults` runs the tests and writes results/faults.csv, from which docs/explanation/reliability.md is generated.
"""

from __future__ import annotations

from typing import NamedTuple


class FaultRow(NamedTuple):
    """One row of the table."""

    fault: str
    seen: str  # what the user sees
    tests: tuple[str, ...]  # "tests/FILE.py::test_name"; parametrized cases and tests that begin so count


F = "tests/faults/"
# Tests in these files that try no fault: they show what must stay as it is, or that another test can fail.
NO_FAULTS = (
    f"{F}test_strangers_code.py::test_a_file_that_the_user_names_does_run",
    f"{F}test_fit_faults.py::test_no_shell_and_no_pickle_anywhere_in_the_source",
    f"{F}test_changed_data.py::test_a_benchmark_keeps_its_fingerprint",
    f"{F}test_changed_data.py::test_the_table_has_the_version",
    f"{F}test_checked_files.py::test_no_contradiction_in_real_results",
    f"{F}test_odd_names.py::test_raw_cells_are_written_as_they_are",
    f"{F}test_odd_names.py::test_cells_come_back",
    "tests/data/test_content_version.py::test_a_copy_and_an_archive_are_the_same_version",
    "tests/data/test_content_version.py::test_progress_is_shown_while_many_files_are_read",
    "tests/data/test_content_version.py::test_files_are_read_once",
    "tests/data/test_content_version.py::test_lists_that_are_used_are_kept",
    "tests/data/test_content_version.py::test_vectors_have_a_version",
    "tests/sweep/test_job_store.py::test_a_finished_job_is_not_run_again",
    "tests/sweep/test_job_store.py::test_only_a_full_disk_looks_like_one",
    "tests/sweep/test_job_store.py::test_the_cache_gives_the_task_that_make_task_gives",
    "tests/sweep/test_job_store.py::test_a_column_whose_formula_changed_is_read_again",
    "tests/sweep/test_job_claims.py::test_a_claim_is_exclusive_and_given_back",
    "tests/sweep/test_job_claims.py::test_a_claim_is_renewed",
    "tests/sweep/test_ray_cluster.py::test_a_stop_keeps_checkpoints_and_the_sweep_goes_on",
    "tests/training/test_interrupt.py::test_handlers_are_those_of_before_afterwards",
)
FAULT_ROWS = (
    FaultRow(
        "A stranger's dataset, zip, table, run, model, fit or sweep holds and names Python files; every verb is called",
        "Nothing of it runs; an unknown name is an error that tells how to name a plugin.",
        (f"{F}test_strangers_code.py::test_", f"{F}test_fuzz.py::test_a_pickle"),
    ),
    FaultRow(
        "Images overwritten, removed or added between two commands",
        "`sweep plan` and `run` tell which files changed, and changed data are new jobs; `train --resume`, `evaluate` "
        "and `fit` stop; a report on two versions is refused.",
        (f"{F}test_changed_data.py::test_", "tests/data/test_content_version.py::test_"),
    ),
    FaultRow(
        "Flipped bits and edits in the caches of a sweep (index.tsv, plan.jsonl)",
        "Nothing: the cache is made again from the runs.",
        (
            f"{F}test_checked_files.py::test_no_flipped_bit_of_the_index",
            f"{F}test_checked_files.py::test_an_edited_number_of_the_index",
            f"{F}test_checked_files.py::test_an_edited_plan",
        ),
    ),
    FaultRow(
        "Damage to the image cache: bytes flipped or cut, index emptied or edited",
        "A warning; the cache is built again.",
        (
            "tests/data/test_image_cache.py::test_a_damaged_store",
            "tests/data/test_image_cache.py::test_of_a_large_store",
            f"{F}test_checked_files.py::test_verify_checks",
        ),
    ),
    FaultRow(
        "Edited numbers in result.json, with the old checksum and with one made to fit; metrics of another run",
        "The result is refused everywhere; a sweep moves it to quarantine and runs the job again.",
        (
            f"{F}test_checked_files.py::test_edited_numbers",
            f"{F}test_checked_files.py::test_evaluations_of_another_run",
            f"{F}test_train_faults.py::test_changed_numbers", f"{F}test_fit_faults.py::test_edited",
        ),
    ),
    FaultRow(
        "Classes reordered, temperature or mean changed in model.json; weights of another run",
        "`predict`, `export` and `evaluate` refuse the model.",
        (
            f"{F}test_checked_files.py::test_an_edited_description",
            f"{F}test_checked_files.py::test_weights_of_another_run",
            f"{F}test_checked_files.py::test_a_description_without",
        ),
    ),
    FaultRow(
        "`train` and `fit`: files emptied, halved, zeroed, replaced, bits flipped",
        "An error that names the file and the next command; the run then ends with the same numbers.",
        (
            f"{F}test_train_faults.py::test_damage", f"{F}test_train_faults.py::test_every_flipped",
            f"{F}test_train_faults.py::test_the_checkpoint_of", f"{F}test_fit_faults.py::test_damage",
            f"{F}test_fit_faults.py::test_one_changed",
        ),
    ),
    FaultRow(
        "SIGKILL at a random moment, two commands on one folder, full disk: `train` and `fit`",
        "The same command resumes to the same bytes; the second command is refused; a full disk is named.",
        (
            f"{F}test_fit_faults.py::test_killed", f"{F}test_fit_faults.py::test_of_two",
            f"{F}test_fit_faults.py::test_a_full", f"{F}test_fit_faults.py::test_too_little",
            f"{F}test_fit_faults.py::test_a_folder_in_use", f"{F}test_train_faults.py::test_the_stopped",
            f"{F}test_train_faults.py::test_killed", f"{F}test_train_faults.py::test_a_full",
            f"{F}test_train_faults.py::test_of_two",
        ),
    ),
    FaultRow(
        "SIGKILL at random moments of every verb that writes: train, sweep run, collect, best, fit, embed, split, "
        "predict, export, report, reproduce, demo, adapt, suggest, data prepare; finished jobs present",
        "The same command then writes what it writes without a kill; finished work is untouched.",
        (f"{F}test_every_verb.py::test_a_killed",),
    ),
    FaultRow(
        "Two commands at once that write to one place, for each of these verbs",
        "Both succeed with the same result, or the second is refused.",
        (f"{F}test_every_verb.py::test_two",),
    ),
    FaultRow(
        "Edits that keep the meaning: files formatted anew, moved, touched, with other files next to them; sweeps that "
        "gain or lose rows",
        "Nothing: finished runs count as before.",
        (f"{F}test_valid_edits.py::test_",),
    ),
    FaultRow(
        "Memory limits from 120 MiB to 4 GiB",
        "A sentence about memory; finished work is untouched, and the same command resumes.",
        (f"{F}test_memory_limits.py::test_",),
    ),
    FaultRow(
        "Folders that are read-only, are gone, or vanish during the work",
        "The folder is named; verbs that only read still work.",
        (f"{F}test_lost_folders.py::test_",),
    ),
    FaultRow(
        "No HOME, no TERM, LANG=C, tiny terminals, closed streams, other umask, missing TMPDIR or current folder",
        "The command works as always, and files have the rights of the umask; without a current folder, it says so.",
        (f"{F}test_odd_environments.py::test_",),
    ),
    FaultRow(
        "Jobs of a sweep: killed while writing, claims of a wrong clock, `train --resume` on a running job, file-size "
        "limit, read-only folder",
        "The job runs once; the sweep stops with the reason, and no job is marked as failed.",
        (
            f"{F}test_checked_files.py::test_half_written", f"{F}test_checked_files.py::test_a_claim",
            f"{F}test_checked_files.py::test_a_job_and_train", f"{F}test_checked_files.py::test_a_limit",
            f"{F}test_checked_files.py::test_a_read_only", "tests/sweep/test_job_store.py::test_",
            "tests/sweep/test_job_claims.py::test_",
        ),
    ),
    FaultRow(
        "The raylet of the command's own node dies; a node is lost",
        "The sweep stops and says that the cluster is gone; `sweep run` resumes, no job is marked as failed.",
        ("tests/sweep/test_ray_cluster.py::test_",),
    ),
    FaultRow(
        "Zip bombs, packed vectors, links to endless devices, named pipes, 16-bit and giant pictures, few descriptors",
        "The file is named and refused before memory is taken.",
        (f"{F}test_bounded_reads.py::test_",),
    ),
    FaultRow(
        "The reader of the log goes, the log disk is full, the terminal closes, SIGHUP, SIGTERM 60 times",
        "Work continues without a log; a signal saves everything and ends with exit code 130.",
        (f"{F}test_lost_terminals.py::test_", "tests/training/test_interrupt.py::test_"),
    ),
    FaultRow(
        "Names with markup, terminal escapes, formulas, HTML, shell commands",
        "They are shown as they are; control characters are escaped, spreadsheets get a quote in front.",
        (f"{F}test_odd_names.py::test_", f"{F}test_fit_faults.py::test_names"),
    ),
    FaultRow(
        "Kinds of bad input: folders, images, tables, vectors, archives, settings, configurations, options, weights, "
        "models, labels, tables of runs",
        "An error that names the file, the key or the option; what can be used is used.",
        (f"{F}test_bad_inputs.py::test_",),
    ),
    FaultRow(
        "Random texts, bytes and values as tables, datasets, configurations, sweeps, splits, models and checkpoints",
        "Read as what it says, or an error in words; never a traceback.",
        (f"{F}test_fuzz.py::test_any", f"{F}test_fuzz.py::test_depth"),
    ),
)  # fmt: skip
