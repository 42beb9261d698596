"""Several variants of one method in a sweep: rows of their own, runs shared where they are the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from longshift.errors import ConfigError
from longshift.methods import get_method
from longshift.report.kinds import build_tables
from longshift.report.titles import family, method_title, order_methods
from longshift.sweep.best_configs import write_best
from longshift.sweep.collecting import collect
from longshift.sweep.job_queue import make_queue
from longshift.sweep.jobs import load_plan
from longshift.sweep.run_job import execute
from longshift.sweep.sweep_file import read_sweep
from longshift.training.run_config import RunConfig, Runtime, hparam_rng
from longshift.training.task import TaskCache
from tests.sweep.small import small_plan, write_sweep

PRIOR = {"name": "ndcl_prior", "method": "NDCL", "hparams": {"prior": "domain", "alpha": 0.0}}


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


@pytest.mark.slow
def test_the_same_run_under_two_names_is_one_job(tmp_path: Path) -> None:
    wider = {"name": "wide", "method": "erm", "hparams": {"batch_size": 4}}
    same = {"name": "plain", "method": "erm", "hparams": {"lr": get_method("erm").Config.make({}, ("small",)).lr}}
    plan = small_plan(tmp_path, draws=1, variants=[same, wider])
    assert (len(plan.jobs), len(plan.runs)) == (6, 4)
    alone = small_plan(tmp_path / "alone", draws=1)
    assert {j.fingerprint for j in alone.jobs} == {j.fingerprint for j in plan.jobs if j.method == "plain"}
    job_queue = make_queue(plan)
    assert job_queue.total == 4
    tasks = TaskCache()
    while job := job_queue.next_job():
        job_queue.finish(job, execute(job, job_queue.store, Runtime(device="cpu", keep_model=False), tasks))
    assert (job_queue.done, job_queue.finished_here) == (4, 4)
    frame = collect(tmp_path)
    assert list(frame["method"]) == ["erm", "plain", "wide"] * 2
    assert list(frame["target_accuracy"][frame["method"] == "erm"]) == list(
        frame["target_accuracy"][frame["method"] == "plain"]
    )
    assert {json.loads(text)["batch_size"] for text in frame["hparams"][frame["method"] == "wide"]} == {4}
    (table, *_) = build_tables(frame, ("average",))
    assert [row.title for row in table.rows] == ["ERM", "plain", "wide"]
    paths = write_best(plan, frame, tmp_path / "best")
    assert sorted(path.name for path in paths) == sorted(["erm.toml", "plain.toml", "wide.toml"] * 2)
    wide = next(path for path in paths if path.name == "wide.toml").read_text()
    assert 'method = "erm"' in wide
    assert "batch_size = 4" in wide


@pytest.mark.slow
def test_averaged_weights_of_a_variant(tmp_path: Path) -> None:
    plan = small_plan(
        tmp_path, methods=[], targets=["ink"], draws=1,
        variants=[{"name": "ndcl mean", "method": "ndcl", "average": "ema"}, PRIOR],
    )  # fmt: skip
    tasks = TaskCache()
    for job in plan.runs:
        assert execute(job, plan.folder.store, Runtime(device="cpu", keep_model=False), tasks).kind == "done"
    (table, *_) = build_tables(collect(tmp_path, missing=True), ("average",))
    assert [row.title for row in table.rows] == ["ndcl mean", "ndcl mean + EMA", "ndcl_prior"]


def test_the_plan_file_keeps_variants(tmp_path: Path) -> None:
    plan = small_plan(tmp_path, methods=[], variants=[PRIOR])
    assert load_plan(tmp_path).jobs == plan.jobs
    small_plan(tmp_path, methods=[], variants=[{**PRIOR, "hparams": {"prior": "global"}}])
    assert load_plan(tmp_path).jobs != plan.jobs


@pytest.mark.parametrize(
    ("variants", "words"),
    [
        ([{"method": "ndcl"}], "number 1: name: is required"),
        ([{"name": " ", "method": "ndcl"}], "name: expected a word"),
        ([{"name": 3, "method": "ndcl"}], "name: expected a word"),
        ([{"name": "Bsoftmax", "method": "ndcl"}], "Bsoftmax: name: a method has this name"),
        ([PRIOR, {"name": "NDCL_prior", "method": "erm"}], "name: another variant has this name"),
        ([{"name": "ndcl+ema", "method": "ndcl"}], 'expected no "+"'),
        ([{"name": "a"}], "[[variants]] a: method: is required"),
        ([{"name": "a", "method": "ndlc"}], "[[variants]] a: method: unknown method 'ndlc'; did you mean ndcl"),
        ([{"name": "a", "method": "ndcl", "hparams": {"prior": "doman"}}], "hparams.prior"),
        ([{"name": "a", "method": "erm", "hparams": {"alpha": 1.0}}], "hparams: unknown"),
        ([{"name": "a", "method": "erm", "hparams": 3}], "[[variants]] a: hparams"),
        ([{"name": "a", "method": "erm", "stepz": 3}], "[[variants]] a: unknown key 'stepz'; did you mean steps"),
        ([{"name": "a", "method": "erm", "target": "ink"}], "[[variants]] a: target: follows from the sweep's"),
        ([{"name": "a", "method": "ndcl", "sampling": "pooled"}], "[[variants]] a: sampling: expected 'domain'"),
    ],
)  # fmt: skip
def test_one_mistake_gives_one_message(tmp_path: Path, variants: list[dict[str, Any]], words: str) -> None:
    write_sweep(tmp_path, variants=variants)
    with pytest.raises(ConfigError) as caught:
        read_sweep(tmp_path)
    assert len(caught.value.mistakes) == 1, caught.value.mistakes
    assert words in caught.value.mistakes[0]


def test_nothing_to_compare_is_a_mistake(tmp_path: Path) -> None:
    write_sweep(tmp_path, methods=[])
    with pytest.raises(ConfigError, match="to compare, got none"):
        read_sweep(tmp_path)
    assert read_sweep(write_sweep(tmp_path, methods=[], variants=[PRIOR])).cases[0].config.method == "ndcl"


def test_mistakes_of_variants_come_with_all_others(tmp_path: Path) -> None:
    write_sweep(tmp_path, methods=["emr"], trials=0, variants=[{"name": "a", "method": "ndlc", "stepz": 1}, 5])
    with pytest.raises(ConfigError) as caught:
        read_sweep(tmp_path)
    assert len(caught.value.mistakes) == 5, caught.value.mistakes


def test_mistakes_in_one_table_do_not_hide_each_other(tmp_path: Path) -> None:
    """The first is found by the type of the value, the second only with the method."""
    write_sweep(tmp_path, methods=["erm"], run={"hparams": {"lr": [1], "batch_size": "a"}})
    with pytest.raises(ConfigError) as caught:
        read_sweep(tmp_path)
    assert [line.split(": ")[0].split()[-1] for line in caught.value.mistakes] == ["hparams.lr", "hparams.batch_size"]


def test_weights_are_meant_from_the_file(tmp_path: Path) -> None:
    variants = [{"name": "v", "method": "erm", "weights": "b.pt"}]
    sweep = read_sweep(write_sweep(tmp_path, overrides={"erm": {"weights": "a.pt"}}, variants=variants))
    assert [case.config.weights for case in sweep.cases[:2]] == [str(tmp_path / "a.pt"), str(tmp_path / "b.pt")]


def test_a_variant_stands_beside_its_method() -> None:
    names = ["zeta", "ndcl_prior", "erm", "ndcl+ema", "ndcl", "NDCL, long", "ndcl_prior+ema", "ermine", "bsoftmax-2"]
    assert order_methods(names) == [
        "erm", "bsoftmax-2", "ndcl", "ndcl+ema", "NDCL, long", "ndcl_prior", "ndcl_prior+ema", "ermine", "zeta",
    ]  # fmt: skip
    assert [family(name) for name in ("ndcl_prior+ema", "bsoftmax-2", "ermine")] == ["ndcl", "imbalance", "other"]
    assert method_title("ndcl_prior+ema") == "ndcl_prior + EMA"
