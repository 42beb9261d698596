"""The sweep file and its plan: all mistakes at once, jobs, overrides, seeds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import longshift
from longshift.data import benchmarks
from longshift.errors import ConfigError, UsageError
from longshift.io import read_limited
from longshift.methods import get_method
from longshift.sweep import jobs as plan_module
from longshift.sweep.jobs import draw_of, hparam_seed, load_plan, make_plan
from longshift.sweep.sweep_file import read_sweep
from longshift.training.run_config import RunConfig, Runtime, hparam_rng
from tests.sweep.small import small_plan, write_sweep


def test_every_mistake_is_told_at_once(tmp_path: Path) -> None:
    write_sweep(tmp_path, methods=["erm", "ndlc"], settings=["TotalHeavyTial"], targets=["inc"], trials=0)
    with (tmp_path / "sweep.toml").open("a") as file:
        file.write("[overrides.erm]\nstepz = 3\nhparams = { lr = -1.0 }\n")
    with pytest.raises(ConfigError) as caught:
        read_sweep(tmp_path)
    told = caught.value.mistakes
    for words in (
        ("methods", "'ndlc'", "ndcl"),
        ("settings", "'TotalHeavyTial'", "TotalHeavyTail"),
        ("targets", "'inc'", "ink"),
        ("trials", "0"),
        ("overrides.erm", "'stepz'", "steps"),
        ("overrides.erm", "lr", "at least 0", "-1.0"),
    ):
        assert len([line for line in told if all(word in line for word in words)]) == 1, words
    assert len(told) == 6


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"datasets": []}, "datasets: is required"),
        ({"datasets": [{"path": "nowhere"}]}, "no file or folder 'nowhere' in "),
        ({"datasets": [{"path": "digits"}, {"path": "digits"}]}, "two datasets have the name 'digits'"),
        ({"datasets": [{"path": "digits", "benchmark": "PACS"}]}, "[[datasets]] digits: "),
        ({"methods": "some"}, 'methods: expected "all" or a list of names'),
        ({"run": {"target": "ink"}}, "[run] target: follows from the sweep's own keys"),
        ({"run": {"steps": 0}}, "[run] steps"),
        ({"draws": 1001}, "draws"),
        ({"settings": ["GINIDG"]}, "published counts"),
        ({"settings": ["Balanced"], "run": {"ratio": 10}}, "Balanced has no ratio"),
        ({"settings": ["Balanced"], "overrides": {"erm": {"ratio": 10.0}}}, "Balanced has no ratio"),
        (
            {"settings": ["Balanced"], "variants": [{"name": "steep", "method": "erm", "ratio": 10}]},
            "Balanced has no ratio",
        ),
        ({"runtime": {"keep_modle": True}}, "[runtime] unknown key 'keep_modle'; did you mean keep_model"),
        ({"runtime": {"checkpoint_every": -1}}, "[runtime] checkpoint_every"),
        ({"runtime": {"device": "cpu"}}, "[runtime] device: is an option of"),
        (
            {"datasets": [{"path": "digits", "benchmrk": "PACS"}]},
            "[[datasets]] digits: unknown key 'benchmrk'; did you mean benchmark",
        ),
        ({"trails": 3}, "unknown key 'trails'; did you mean trials"),
    ],
)
def test_one_mistake_gives_one_message(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    write_sweep(tmp_path, **changes)
    with pytest.raises(ConfigError) as caught:
        read_sweep(tmp_path)
    assert len(caught.value.mistakes) == 1
    assert words in caught.value.mistakes[0]


def test_no_sweep_file_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="sweep init"):
        read_sweep(tmp_path)


def test_the_example_is_valid(tmp_path: Path) -> None:
    from importlib import resources

    text = resources.files("longshift.sweep").joinpath("example.toml").read_text()
    (tmp_path / "sweep.toml").write_text(text)
    assert len(make_plan(tmp_path)[1].jobs) == 2 * 2 * 4 * 3 * 10


def test_jobs_are_the_product_and_named_by_content(tmp_path: Path) -> None:
    plan = small_plan(tmp_path, methods=["erm", "NDCL"], settings=["TotalHeavyTail", "duality"], trials=3, draws=4)
    assert len(plan.jobs) == 2 * 2 * 2 * 3 * 4
    assert len({job.fingerprint for job in plan.jobs}) == len(plan.jobs)
    assert len({job.id for job in plan.jobs}) == len(plan.jobs)
    for job in plan.jobs:
        config = RunConfig.model_validate(job.run)
        assert config.fingerprint() == job.fingerprint
        assert (config.split_seed, config.train_seed) == (job.trial, job.trial)
        assert config.hparam_seed == (0 if job.draw == 0 else 1000 * job.trial + job.draw)
        assert config.method == job.method
        if job.draw == 0:
            assert config.method_config() == get_method(job.method).Config.make({}, config.contexts)


def test_a_draw_is_the_same_for_every_sweep(tmp_path: Path) -> None:
    """Draw 3 of trial 2, whatever else is swept."""
    wide = small_plan(tmp_path / "wide", methods=["erm", "ndcl"], trials=3, draws=5)
    narrow = small_plan(tmp_path / "narrow", methods=["ndcl"], targets=["neon"], trials=3, draws=4)
    assert {job.fingerprint for job in narrow.jobs} <= {job.fingerprint for job in wide.jobs}
    job = next(job for job in narrow.jobs if (job.trial, job.draw) == (2, 3))
    config = RunConfig.model_validate(job.run)
    kind = get_method("ndcl").Config
    drawn = kind.sample(hparam_rng("ndcl", 2003), config.contexts)
    assert config.method_config() == kind.make({}, config.contexts, drawn)


def test_overrides_reach_their_method_alone(tmp_path: Path) -> None:
    plan = small_plan(
        tmp_path,
        methods=["erm", "ndcl"],
        run={"steps": 3, "hparams": {"batch_size": 16}},
        overrides={"ndcl": {"steps": 5, "hparams": {"alpha": 0.5}}},
    )
    for job in plan.jobs:
        values = RunConfig.model_validate(job.run).method_config().to_dict()
        assert job.run["steps"] == (5 if job.method == "ndcl" else 3)
        assert values["batch_size"] == 16
        assert values.get("alpha") == (0.5 if job.method == "ndcl" else None)


def test_common_hyper_parameters_reach_those_who_use_them(tmp_path: Path) -> None:
    plan = small_plan(tmp_path, methods=["erm", "dann"], draws=1, run={"hparams": {"lr": 0.5, "batch_size": 16}})
    for job in plan.jobs:
        assert job.run["hparams"] == ({"batch_size": 16} if job.method == "dann" else {"lr": 0.5, "batch_size": 16})
    with pytest.raises(ConfigError, match=r"\[overrides.dann\] hparams.lr: has no effect here; .*lr_g"):
        small_plan(tmp_path / "own", methods=["dann"], overrides={"dann": {"hparams": {"lr": 0.5}}})


def test_the_plan_file_is_used_only_while_it_fits(tmp_path: Path) -> None:
    plan = small_plan(tmp_path)
    assert load_plan(tmp_path) == load_plan(tmp_path)
    assert load_plan(tmp_path).jobs == plan.jobs
    small_plan(tmp_path)
    write_sweep(tmp_path, draws=3)
    assert len(load_plan(tmp_path).jobs) == 6
    (tmp_path / "plan.jsonl").write_text("{broken")
    assert len(load_plan(tmp_path).jobs) == 6


def test_runtime_keys_are_those_of_a_run(tmp_path: Path) -> None:
    sweep = read_sweep(write_sweep(tmp_path, runtime={"cache": "pixels", "precision": "fp32", "compile": "off"}))
    assert sweep.runtime == Runtime(precision="fp32", compile="off", cache=tmp_path / "pixels", keep_model=False)


def test_two_sweeps_may_share_a_store(tmp_path: Path) -> None:
    one = small_plan(tmp_path / "one", store="../store")
    two = small_plan(tmp_path / "two", store="../store")
    assert one.folder.store == two.folder.store
    assert one.folder.store.path == tmp_path / "store"
    assert load_plan(tmp_path / "two").folder.store.path == tmp_path / "store"


@given(st.integers(0, 999), st.integers(0, 999))
def test_seeds_of_draws_never_meet(trial: int, draw: int) -> None:
    seed = hparam_seed(trial, draw)
    assert draw_of(seed) == draw
    assert (seed == 0) == (draw == 0)
    if draw:
        assert seed // 1000 == trial


def test_too_many_draws_are_refused() -> None:
    with pytest.raises(ValueError, match="999"):
        hparam_seed(0, 1000)


def test_a_benchmark_is_recognized_by_its_names(tmp_path: Path) -> None:
    """As `longshift train` does: undeclared PACS is the same runs as declared PACS, unless a ratio is stated."""
    folders = {"A": "art", "C": "Cartoon", "P": "photo", "S": "sketch"}
    lines = ["path,label,domain"]
    for key, row in benchmarks.get_benchmark("PACS").totals.items():
        lines += [f"{key}-{name}-{i}.png,{name},{folders[key]}" for name, count in row.items() for i in range(count)]
    (tmp_path / "images.csv").write_text("\n".join(lines) + "\n")
    options: dict[str, Any] = {"targets": ["photo"], "run": {"steps": 3, "backbone": "mobilenetv2_100"}}
    plain = small_plan(tmp_path / "plain", datasets=[{"path": "../images.csv"}], **options)
    named = small_plan(tmp_path / "named", datasets=[{"path": "../images.csv", "benchmark": "PACS"}], **options)
    assert [job.fingerprint for job in plain.jobs] == [job.fingerprint for job in named.jobs]
    assert {(job.dataset, job.run["benchmark"]) for job in plain.jobs} == {("PACS", "PACS")}
    options["run"] = {**options["run"], "ratio": 20.0}
    other = small_plan(tmp_path / "ratio", datasets=[{"path": "../images.csv"}], **options)
    assert {(job.dataset, job.run["benchmark"]) for job in other.jobs} == {("images", None)}


def test_a_plan_is_made_anew_when_the_vectors_change(tmp_path: Path) -> None:
    def write(value: float) -> None:
        x = np.full((80, 3), value, dtype=np.float32)
        np.savez(tmp_path / "table.npz", x=x, label=np.array(["a", "b"] * 40), domain=np.repeat(["s", "t"], 40))

    write(1.0)
    datasets = [{"path": "../table.npz"}]
    run = {"image_size": None, "steps": 3}
    folder = write_sweep(tmp_path / "sweep", datasets=datasets, settings=["Natural"], targets=["s"], draws=1, run=run)
    before = (make_plan(folder)[1], (folder / "plan.jsonl").read_text().splitlines()[0])
    assert load_plan(folder) == before[0]
    write(2.0)
    load_plan(folder)
    assert (folder / "plan.jsonl").read_text().splitlines()[0] != before[1]


@pytest.mark.parametrize(
    "name", ["sweep/sweep_file.py", "training/resolve_run.py", "data/images.py", "training/run_config.py"]
)
def test_the_list_of_jobs_is_made_anew_when_code_that_names_jobs_changes(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_sweep(tmp_path)
    make_plan(tmp_path)
    monkeypatch.setattr(plan_module, "make_plan", lambda directory: pytest.fail("made anew"))
    load_plan(tmp_path)  # nothing has changed
    changed = Path(longshift.__file__).parent / name

    def read(path: Path, most: int) -> bytes:
        return read_limited(path, most) + b"#" * (path == changed)

    monkeypatch.setattr(plan_module, "read_limited", read)
    with pytest.raises(pytest.fail.Exception, match="made anew"):
        load_plan(tmp_path)


def test_trials_can_be_listed(tmp_path: Path) -> None:
    listed = small_plan(tmp_path / "listed", trials=[3, 5])
    counted = small_plan(tmp_path / "counted", trials=6)
    assert {job.trial for job in listed.jobs} == {3, 5}
    assert {job.fingerprint for job in listed.jobs} == {job.fingerprint for job in counted.jobs if job.trial in (3, 5)}
    for wrong in (0, 1001, [], [-1], ["three"], "three", True):
        write_sweep(tmp_path / "wrong", trials=wrong)
        with pytest.raises(ConfigError, match="trials"):
            read_sweep(tmp_path / "wrong")
