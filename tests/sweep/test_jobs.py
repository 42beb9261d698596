"""From a sweep to its jobs: seeds, names by content, and the cache that names them once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from longshift.data import benchmarks
from longshift.errors import ConfigError, LongshiftError
from longshift.methods import get_method
from longshift.sweep import jobs, load_plan, make_plan
from longshift.sweep.jobs import draw_of, hparam_seed
from longshift.sweep.sweep_file import read_sweep
from longshift.training.run_config import RunConfig, hparam_rng
from tests.sweep.small import small_plan, write_sweep

PRIOR = {"name": "ndcl_prior", "method": "NDCL", "hparams": {"prior": "domain", "alpha": 0.0}}


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


@given(st.integers(0, 999), st.integers(0, 999))
def test_seeds_of_draws_never_meet(trial: int, draw: int) -> None:
    seed = hparam_seed(trial, draw)
    assert draw_of(seed) == draw
    assert (seed == 0) == (draw == 0)
    if draw:
        assert seed // 1000 == trial


def test_two_sweeps_may_share_a_store(tmp_path: Path) -> None:
    one = small_plan(tmp_path / "one", store="../store")
    two = small_plan(tmp_path / "two", store="../store")
    assert one.folder.store == two.folder.store
    assert one.folder.store.path == tmp_path / "store"
    assert load_plan(tmp_path / "two").folder.store.path == tmp_path / "store"


def test_a_plan_is_made_anew_when_the_vectors_change(tmp_path: Path) -> None:
    def write(value: float) -> None:
        x = np.arange(240, dtype=np.float32).reshape(80, 3) + value
        np.savez(tmp_path / "table.npz", x=x, label=np.array(["a", "b"] * 40), domain=np.repeat(["s", "t"], 40))

    write(1.0)
    datasets = [{"path": "../table.npz"}]
    run = {"image_size": None, "steps": 3}
    folder = write_sweep(tmp_path / "sweep", datasets=datasets, settings=["Natural"], targets=["s"], draws=1, run=run)
    before = make_plan(folder)[1]
    assert load_plan(folder) == before
    write(2.0)
    assert {job.fingerprint for job in load_plan(folder).jobs}.isdisjoint(job.fingerprint for job in before.jobs)


def test_trials_can_be_listed(tmp_path: Path) -> None:
    listed = small_plan(tmp_path / "listed", trials=[3, 5])
    counted = small_plan(tmp_path / "counted", trials=6)
    assert {job.trial for job in listed.jobs} == {3, 5}
    assert {job.fingerprint for job in listed.jobs} == {job.fingerprint for job in counted.jobs if job.trial in (3, 5)}
    for wrong in (0, 1001, [], [-1], ["three"], "three", True):
        write_sweep(tmp_path / "wrong", trials=wrong)
        with pytest.raises(ConfigError, match="trials"):
            read_sweep(tmp_path / "wrong")


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


def test_a_variant_is_drawn_as_its_method_with_its_own_values_fixed(tmp_path: Path) -> None:
    plan = small_plan(
        tmp_path, methods=["ndcl"], variants=[{**PRIOR, "steps": 4}], draws=3, trials=2,
        run={"steps": 3, "hparams": {"batch_size": 16}}, overrides={"ndcl": {"eval_every": 2, "hparams": {"rho": 0.5}}},
    )  # fmt: skip
    assert len(plan.jobs) == len(plan.runs) == 2 * 2 * 3 * 2
    assert [job.method for job in plan.jobs[:2]] == ["ndcl", "ndcl_prior"]
    for job in plan.jobs:
        if job.method != "ndcl_prior":
            continue
        config = RunConfig.model_validate(job.run)
        cls = get_method("ndcl").Config
        drawn = (
            cls.sample(hparam_rng("ndcl", config.hparam_seed), config.contexts)
            if job.draw
            else cls.make({}, config.contexts)
        )
        fixed = {"prior": "domain", "alpha": 0.0, "batch_size": 16, "rho": 0.5}
        assert config.method_config().to_dict() == {**drawn.to_dict(), **fixed}
        assert (config.method, config.steps, config.eval_every) == ("ndcl", 4, 2)


def test_the_same_run_under_two_names_is_one_job(tmp_path: Path) -> None:
    wider = {"name": "wide", "method": "erm", "hparams": {"batch_size": 4}}
    same = {"name": "plain", "method": "erm", "hparams": {"lr": get_method("erm").Config.make({}, ("small",)).lr}}
    plan = small_plan(tmp_path, draws=1, variants=[same, wider])
    assert (len(plan.jobs), len(plan.runs)) == (6, 4)
    alone = small_plan(tmp_path / "alone", draws=1)
    assert {j.fingerprint for j in alone.jobs} == {j.fingerprint for j in plan.jobs if j.method == "plain"}


def test_jobs_are_named_once_while_the_sweep_file_and_the_code_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = small_plan(tmp_path, variants=[PRIOR])
    with monkeypatch.context() as patch:
        patch.setattr(jobs, "make_plan", None)
        assert load_plan(tmp_path) == plan
    write_sweep(tmp_path, draws=3)
    assert len(load_plan(tmp_path).jobs) == 6
    (tmp_path / "cache.parquet").write_text("{broken")
    assert len(load_plan(tmp_path).jobs) == 6
    plugin = tmp_path / "plugin.py"
    for text in ("", "# edited"):
        plugin.write_text(text)
        monkeypatch.setattr(jobs, "plugin_files", lambda: [plugin])
        with monkeypatch.context() as patch:
            patch.setattr(jobs, "make_plan", lambda directory: pytest.fail("made anew"))
            with pytest.raises(pytest.fail.Exception, match="made anew"):
                load_plan(tmp_path)
        make_plan(tmp_path)


def test_a_store_in_the_sweep_must_not_be_a_link_to_elsewhere(tmp_path: Path) -> None:
    folder = write_sweep(tmp_path / "s", store="runs")
    (tmp_path / "mine").mkdir()
    (folder / "runs").symlink_to(tmp_path / "mine")
    with pytest.raises(LongshiftError, match=str(folder / "runs")):
        make_plan(folder)
