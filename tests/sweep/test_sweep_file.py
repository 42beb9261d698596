"""The sweep file: all mistakes at once, overrides, variants, paths."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from longshift.errors import ConfigError, UsageError
from longshift.sweep.sweep_file import read_sweep
from longshift.training.run_config import RunConfig, Runtime
from tests.sweep.small import small_plan, write_sweep

PRIOR = {"name": "ndcl_prior", "method": "NDCL", "hparams": {"prior": "domain", "alpha": 0.0}}


def test_every_mistake_is_told_at_once(tmp_path: Path) -> None:
    write_sweep(tmp_path, methods=["erm", "ndlc"], settings=["TotalHeavyTial"], trials=0)
    with (tmp_path / "sweep.toml").open("a") as file:
        file.write("[overrides.erm]\nstepz = 3\n")
    with pytest.raises(ConfigError) as caught:
        read_sweep(tmp_path)
    told = caught.value.mistakes
    for words in (
        ("methods", "'ndlc'", "ndcl"),
        ("settings", "'TotalHeavyTial'", "TotalHeavyTail"),
        ("trials", "0"),
        ("overrides.erm", "'stepz'", "steps"),
    ):
        assert len([line for line in told if all(word in line for word in words)]) == 1, words
    assert len(told) == 4


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"datasets": []}, "datasets"),
        ({"datasets": [{"path": "nowhere"}]}, "nowhere"),
        ({"datasets": [{"path": "digits"}, {"path": "digits"}]}, "'digits'"),
        ({"datasets": [{"path": "digits", "benchmark": "PACS"}]}, "[[datasets]] digits: "),
        ({"datasets": [{"path": "digits", "benchmrk": "PACS"}]}, "benchmark"),
        ({"methods": "some"}, "methods"),
        ({"methods": []}, "methods"),
        ({"run": {"target": "ink"}}, "[run] target"),
        ({"run": {"steps": 0}}, "[run] steps"),
        ({"draws": 1001}, "draws"),
        ({"settings": ["GINIDG"]}, "GINIDG"),
        ({"targets": ["inc"]}, "ink"),
        ({"targets": ["ink"], "run": {"validation": 400}}, "setting TotalHeavyTail"),  # more than there are
        ({"settings": ["Balanced"], "run": {"ratio": 10}}, "Balanced"),
        ({"settings": ["Balanced"], "overrides": {"erm": {"ratio": 10.0}}}, "Balanced"),
        ({"settings": ["Balanced"], "variants": [{"name": "steep", "method": "erm", "ratio": 10}]}, "Balanced"),
        ({"runtime": {"keep_modle": True}}, "keep_model"),
        ({"runtime": {"checkpoint_every": -1}}, "[runtime] checkpoint_every"),
        ({"runtime": {"device": "cpu"}}, "[runtime] device"),
        ({"runtime": {"cache": "../other"}}, "--cache"),
        ({"runtime": {"cache": "/tmp"}}, "[runtime] cache"),
        ({"trails": 3}, "trials"),
        ({"variants": [{"method": "ndcl"}]}, "number 1: name"),
        ({"variants": [{"name": " ", "method": "ndcl"}]}, "name"),
        ({"variants": [{"name": 3, "method": "ndcl"}]}, "name"),
        ({"variants": [{"name": "Bsoftmax", "method": "ndcl"}]}, "Bsoftmax: name"),
        ({"variants": [PRIOR, {"name": "NDCL_prior", "method": "erm"}]}, "NDCL_prior: name"),
        ({"variants": [{"name": "ndcl+ema", "method": "ndcl"}]}, '"+"'),
        ({"variants": [{"name": "a"}]}, "[[variants]] a: method"),
        ({"variants": [{"name": "a", "method": "ndlc"}]}, "[[variants]] a: method: unknown method 'ndlc'"),
        ({"variants": [{"name": "a", "method": "ndcl", "hparams": {"prior": "doman"}}]}, "hparams.prior"),
        ({"variants": [{"name": "a", "method": "erm", "hparams": {"alpha": 1.0}}]}, "alpha"),
        ({"variants": [{"name": "a", "method": "erm", "hparams": 3}]}, "[[variants]] a: hparams"),
        ({"variants": [{"name": "a", "method": "erm", "stepz": 3}]}, "steps"),
        ({"variants": [{"name": "a", "method": "erm", "target": "ink"}]}, "[[variants]] a: target"),
        ({"variants": [{"name": "a", "method": "ndcl", "sampling": "pooled"}]}, "a: sampling"),
    ],
)
def test_one_mistake_gives_one_message(tmp_path: Path, changes: dict[str, Any], name: str) -> None:
    write_sweep(tmp_path, **changes)
    with pytest.raises(ConfigError) as caught:
        read_sweep(tmp_path)
    assert len(caught.value.mistakes) == 1, caught.value.mistakes
    assert name in caught.value.mistakes[0]


def test_mistakes_do_not_hide_each_other(tmp_path: Path) -> None:
    write_sweep(tmp_path, methods=["emr"], trials=0, variants=[{"name": "a", "method": "ndlc", "stepz": 1}, 5])
    with pytest.raises(ConfigError) as caught:
        read_sweep(tmp_path)
    assert len(caught.value.mistakes) == 5, caught.value.mistakes
    write_sweep(tmp_path, methods=["erm"], run={"hparams": {"lr": -1.0, "batch_size": "a"}})
    with pytest.raises(ConfigError) as caught:
        read_sweep(tmp_path)
    for words in (("hparams.lr", "-1.0"), ("hparams.batch_size", "'a'")):
        assert len([line for line in caught.value.mistakes if all(word in line for word in words)]) == 1, words


def test_a_cache_is_named_by_the_file_or_by_an_option(tmp_path: Path) -> None:
    write_sweep(tmp_path / "s", runtime={"cache": "pixels"})
    assert read_sweep(tmp_path / "s").runtime.cache == tmp_path / "s" / "pixels"
    assert read_sweep(tmp_path / "s", cache=tmp_path / "other").runtime.cache == tmp_path / "other"
    (tmp_path / "s" / "pixels").symlink_to(tmp_path)
    with pytest.raises(ConfigError, match="cache"):
        read_sweep(tmp_path / "s")


def test_no_sweep_file_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="sweep init"):
        read_sweep(tmp_path)


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
    with pytest.raises(ConfigError, match=r"hparams\.lr"):
        small_plan(tmp_path / "own", methods=["dann"], overrides={"dann": {"hparams": {"lr": 0.5}}})


def test_runtime_keys_are_those_of_a_run(tmp_path: Path) -> None:
    sweep = read_sweep(write_sweep(tmp_path, runtime={"cache": "pixels", "precision": "fp32", "compile": "off"}))
    assert sweep.runtime == Runtime(precision="fp32", compile="off", cache=tmp_path / "pixels", keep_model=False)


def test_weights_are_meant_from_the_file(tmp_path: Path) -> None:
    variants = [{"name": "v", "method": "erm", "weights": "b.pt"}]
    overrides = {"erm": {"weights": "a.pt", "backbone": "small_conv"}}
    sweep = read_sweep(write_sweep(tmp_path, overrides=overrides, variants=variants))
    assert [case.config.weights for case in sweep.cases[:2]] == [str(tmp_path / "a.pt"), str(tmp_path / "b.pt")]
