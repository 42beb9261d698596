"""Domain-level resampling omitted: batches come from the pooled sources, which are one domain to the method."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.special import log_softmax

from longshift.errors import ConfigError
from longshift.methods.bsoftmax import BSoftmax
from longshift.rng import HostDraws
from longshift.training.run_config import RunConfig, Runtime, parse_run_config
from longshift.training.run_folder import RunFolder, read_metrics
from longshift.training.task import Task, make_task
from longshift.training.trainer import Trainer

COMMON = {"target": "ink", "setting": "Duality", "image_size": 16, "steps": 2, "eval_every": 1}


@pytest.fixture(scope="module")
def task() -> Task:
    return make_task(parse_run_config({**COMMON, "method": "bsoftmax"}))


def trainer(task: Task, out: Path, **keys: object) -> Trainer:
    config = parse_run_config({**COMMON, "method": "bsoftmax", "hparams": {"batch_size": 200}, **keys})
    return Trainer(config, task, out, Runtime(device="cpu", keep_model=False, save_predictions=True))


def test_pooled_batches_follow_the_sizes_of_the_sources(task: Task, tmp_path: Path) -> None:
    pooled = trainer(task, tmp_path / "pooled", sampling="pooled")
    batch = pooled.source.batch(HostDraws(0, 0, torch.device("cpu")))
    sources = len(task.split.sources)
    assert (batch.domains, len(batch)) == (1, 200 * sources)  # one domain, as many samples as otherwise
    train = task.split.train
    expected = np.bincount(task.labels(train), minlength=10) / len(train)
    found = np.bincount(batch.y.numpy(), minlength=10) / len(batch)
    error = np.sqrt(expected * (1 - expected) / len(batch))
    assert (np.abs(found - expected) < 5 * error).all()
    usual = trainer(task, tmp_path / "usual").source.batch(HostDraws(0, 0, torch.device("cpu")))
    assert (usual.domains, len(usual)) == (sources, 200 * sources)


def test_balanced_softmax_takes_the_pooled_counts(task: Task, tmp_path: Path) -> None:
    method = trainer(task, tmp_path, sampling="pooled").method
    assert isinstance(method, BSoftmax)
    sums = task.split.counts.sum(axis=0)
    np.testing.assert_array_equal(method.criterion.class_counts.numpy()[0], sums)
    assert method.criterion.class_counts.shape == (1, 10)


def test_a_pooled_run_is_still_judged_per_domain(task: Task, tmp_path: Path) -> None:
    made = trainer(task, tmp_path / "run", sampling="pooled", hparams={"batch_size": 4})
    result = made.run()
    assert set(result["selected"]["test"]["per_domain"]) == set(task.split.sources)
    with np.load(RunFolder(tmp_path / "run").predictions) as arrays:
        log_p = log_softmax(arrays["validation_logits"].astype(np.float64), axis=1)
        nll = -log_p[np.arange(len(log_p)), arrays["validation_labels"]]
        names = np.array(task.manifest.domain_names)[arrays["validation_domains"]]
    for source, value in result["selected"]["validation"]["nll_per_domain"].items():
        assert value == pytest.approx(nll[names == source].mean(), rel=1e-5)
    assert set(read_metrics(RunFolder(tmp_path / "run"))[0]["validation"]["nll_per_domain"]) == set(task.split.sources)


def test_names_of_runs() -> None:
    plain = RunConfig(target="ink", method="bsoftmax")
    assert plain.fingerprint() == RunConfig(target="ink", method="bsoftmax", sampling="domain").fingerprint()
    assert plain.fingerprint() != RunConfig(target="ink", method="bsoftmax", sampling="pooled").fingerprint()


def test_methods_that_compare_domains_are_refused() -> None:
    with pytest.raises(ConfigError, match="pooled"):
        parse_run_config({"target": "ink", "method": "ndcl", "sampling": "pooled"})
    for name in ("erm", "focal", "ldam", "reweight", "bsoftmax"):
        assert parse_run_config({"target": "ink", "method": name, "sampling": "pooled"}).pooled
