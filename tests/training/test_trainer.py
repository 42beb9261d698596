"""Training runs: the run folder, selection, resuming, repeatability."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from longshift.analysis import posterior_discrepancy
from longshift.analysis.domains import by_domain
from longshift.errors import LongshiftError
from longshift.inference import evaluate
from longshift.metrics.evaluation import Evaluation, evaluate_predictions
from longshift.progress import Stage
from longshift.sweep.columns import make_row
from longshift.training.batch_source import ResidentSource
from longshift.training.evaluate import Evaluator, Outputs, evaluate_set, selection_accuracy
from longshift.training.interrupt import Interrupted
from longshift.training.resolve_run import resolve
from longshift.training.run_folder import RunFolder, read_metrics, read_predictions, read_result
from longshift.training.task import Task, make_task
from longshift.training.trainer import Trainer
from tests.training.small_runs import CPU, config, train


@pytest.fixture(scope="module")
def task() -> Task:
    return make_task(config())


def _weights(folder: Path) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = load_file(RunFolder(folder).model)
    return found


def _same(a: Path, b: Path) -> bool:
    left, right = _weights(a), _weights(b)
    return left.keys() == right.keys() and all(torch.equal(left[k], right[k]) for k in left)


def _measured(folder: Path) -> list[dict[str, Any]]:
    """Terms and validation at each evaluation, without the time."""
    return [{**row, "seconds": 0} for row in read_metrics(RunFolder(folder))]


def test_a_run_leaves_a_complete_folder(task: Task, tmp_path: Path) -> None:
    result = train(config(method="ndcl"), tmp_path / "run", task)
    folder = RunFolder(tmp_path / "run")
    for path in (folder.config, folder.environment, folder.split, folder.metrics, folder.result, folder.model):
        assert path.exists(), path
    assert not folder.resume.exists()
    assert read_result(folder) == result
    rows = [json.loads(line) for line in folder.metrics.read_text().splitlines()]
    assert [row["step"] for row in rows] == [3, 6]
    assert rows[0]["terms"].keys() == {"loss", "ce", "con", "const"}
    assert result["status"] == "done"
    assert result["environment"]["torch"] == torch.__version__.split("+")[0]
    selected = result["selected"]
    assert selected["step"] in (3, 6)
    assert selected["target"]["n"] == len(task.split.target_indices)
    assert set(selected["validation"]["per_domain"]) == set(task.split.sources)
    assert list(selected["target"]["per_domain"]) == ["ink"]


def test_each_set_is_predicted_once_for_each_weights(
    task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    plain = Evaluator._over_chunks

    def counted(self: Evaluator, function: Any, indices: Any) -> Any:
        seen.extend(name for name, own in self.sets.items() if np.array_equal(own, indices))
        return plain(self, function, indices)

    monkeypatch.setattr(Evaluator, "_over_chunks", counted)
    runtime = dataclasses.replace(CPU, save_predictions=True)
    result = Trainer(config(steps=4, eval_every=2), task, tmp_path / "run", runtime).run()
    others = 1 if result["selected"]["step"] == 4 else 2
    # Validation twice, for the rows; test and target once for each of the last and the selected weights.
    assert Counter(seen) == {"validation": 2, "test": others, "target": others}
    arrays = read_predictions(RunFolder(tmp_path / "run").predictions)
    hits = arrays["target_logits"].argmax(1) == arrays["target_labels"]
    assert hits.mean() == pytest.approx(result["selected"]["target"]["accuracy"])


def test_selection_takes_the_weights_of_the_first_best_validation(
    task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = Trainer(config(steps=4, eval_every=1), task, tmp_path / "run", CPU)
    accuracies, seen = iter([0.2, 0.6, 0.4, 0.6]), []
    measure = trainer.evaluator.measure

    def pretended(outputs: Outputs) -> dict[str, Evaluation]:
        seen.append({name: tensor.clone() for name, tensor in trainer.method.state_dict().items()})
        accuracy = next(accuracies)
        classes: dict[str, float | None] = dict.fromkeys(task.split.classes, accuracy)
        return {n: dataclasses.replace(e, accuracy=accuracy, per_class=classes) for n, e in measure(outputs).items()}

    monkeypatch.setattr(trainer.evaluator, "measure", pretended)
    result = trainer.run()
    assert (result["selected"]["step"], result["last"]["step"]) == (2, 4)
    saved = _weights(tmp_path / "run")
    assert all(torch.equal(saved[name], tensor) for name, tensor in seen[1].items())
    assert not all(torch.equal(saved[name], tensor) for name, tensor in seen[3].items())


def test_selection_weighs_classes_alike_where_validation_is_unbalanced() -> None:
    logits = np.eye(2)[[0, 0, 0, 0]] * 9.0
    found = evaluate_predictions(logits, np.array([0, 0, 0, 1]), None, classes=("a", "b"))
    assert (found.accuracy, found.balanced_accuracy) == (0.75, 0.5)


def test_on_natural_data_the_mean_over_cells_selects(tmp_path: Path) -> None:
    """Of constant predictions it is the share of cells with that class: each cell counts alike, whatever its size."""
    rows = [("a", "x", 40), ("a", "y", 2), ("b", "x", 10), ("b", "y", 30), ("b", "z", 3), ("c", "x", 5), ("c", "y", 5)]
    table: dict[str, Any] = {"domain": np.repeat([d for d, *_ in rows], [n for *_, n in rows])}
    table["label"] = np.repeat([k for _, k, _ in rows], [n for *_, n in rows])
    np.savez(tmp_path / "table.npz", x=np.random.default_rng(0).normal(size=(95, 3)), **table)
    run = resolve(
        {"data": str(tmp_path / "table.npz"), "target": "c", "setting": "Natural", "method": "erm", "steps": 1}
    )
    natural = make_task(run)
    assert natural.split.held.tolist() == [[8, 1, 0], [2, 6, 1]]
    trainer = Trainer(run.config, natural, tmp_path / "run", CPU)
    found = evaluate_set(natural, "validation", torch.eye(3)[[0] * len(natural.split.validation)])
    assert found.accuracy == selection_accuracy(natural.split, found) == pytest.approx(2 / 5)
    result = trainer.run()
    assert trainer.best.accuracy == result["selected"]["validation"]["accuracy"]
    assert evaluate(tmp_path / "run", ["validation"], runtime=CPU)["validation"]["accuracy"] == trainer.best.accuracy


def test_resuming_on_other_files_is_refused(task: Task, tmp_path: Path) -> None:
    run = config()
    trainer = Trainer(run, task, tmp_path, CPU, stop=lambda: trainer.progress.step >= 2)
    with pytest.raises(Interrupted):
        trainer.run()
    other = make_task(config(split_seed=1))
    with pytest.raises(LongshiftError, match="changed"):
        train(run, tmp_path, other)


def test_a_setting_without_validation_or_training_samples_is_refused(tmp_path: Path) -> None:
    classes = [str(k) for k in range(10)]
    full = dict.fromkeys(classes, 3)
    for counts, validation, named in (
        ({"chalk": full, "neon": full}, 0, "validation"),
        ({"chalk": full, "neon": dict.fromkeys(classes, 0)}, 2, "neon"),
    ):
        path = tmp_path / f"{validation}.json"
        path.write_text(json.dumps({"counts": counts, "validation": validation, "many": 5, "few": 2}))
        with pytest.raises(LongshiftError, match=named):
            make_task(config(setting=str(path)))


@pytest.mark.slow
def test_same_seeds_same_weights_and_another_seed_others(task: Task, tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        train(config(method="ndcl", train_seed=seed), tmp_path / name, task)
    assert _same(tmp_path / "a", tmp_path / "b")
    assert not _same(tmp_path / "a", tmp_path / "c")


@pytest.mark.slow
@pytest.mark.parametrize("stop_after", [1, 4])
def test_a_stopped_run_goes_on_to_the_same_weights(task: Task, tmp_path: Path, stop_after: int) -> None:
    run = config(method="ndcl", hparams={"dropout": 0.5}, steps=8)
    train(run, tmp_path / "whole", task)
    trainer = Trainer(run, task, tmp_path / "broken", CPU, stop=lambda: trainer.progress.step >= stop_after)
    with pytest.raises(Interrupted, match=f"step {stop_after} of 8") as caught:
        trainer.run()
    assert caught.value.exit_code == 130
    assert RunFolder(tmp_path / "broken").resume.exists()
    train(run, tmp_path / "broken", task)
    assert _same(tmp_path / "whole", tmp_path / "broken")
    whole, broken = (json.loads((tmp_path / n / "result.json").read_text()) for n in ("whole", "broken"))
    assert whole["selected"] == broken["selected"]
    assert whole["last"] == broken["last"]
    assert _measured(tmp_path / "whole") == _measured(tmp_path / "broken")


def test_a_run_out_of_time_ends_with_its_best_weights(task: Task, tmp_path: Path) -> None:
    trainer = Trainer(config(steps=1000, eval_every=2), task, tmp_path, CPU, out_of_time=lambda step: step >= 3)
    result = trainer.run()
    assert (result["status"], result["steps_done"], result["last"]["step"]) == ("done", 3, 3)
    assert result["selected"]["step"] in (2, 3)
    assert [row["step"] for row in read_metrics(RunFolder(tmp_path))] == [2, 3]


@pytest.mark.parametrize("method", ["bsoftmax", "ndcl_plus"])
def test_the_first_steps_of_a_longer_run_are_those_of_a_shorter_one(method: str, task: Task, tmp_path: Path) -> None:
    # Both have no schedules. Runs of different lengths can then be compared step by step.
    for steps in (4, 6):
        run = config(method=method, steps=steps, eval_every=2, schedules="scaled", style={"mix": "both"})
        train(run, tmp_path / str(steps), task)
    assert _measured(tmp_path / "4") == _measured(tmp_path / "6")[:2]


def test_the_end_says_what_it_measures(task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of two evaluations is the best one: both the last and the selected weights are measured."""
    scores = iter((0.9, 0.1))
    monkeypatch.setattr(Evaluation, "balanced_accuracy", property(lambda _: next(scores)))
    notes: list[str] = []
    Trainer(config(), task, tmp_path, CPU).run(lambda done=1, note="": notes.append(note))
    number = sum(len(part) for part in (task.split.validation, task.split.test, task.split.target_indices))
    assert str(number) in notes[-1]
    assert isinstance(notes[-1], Stage)


def test_a_diverged_run_says_so(task: Task, tmp_path: Path) -> None:
    result = train(config(hparams={"lr": 1e30}, steps=9), tmp_path, task)
    assert result["status"] == "diverged"
    assert result["diverged_at"] is not None
    assert result["last"] is None
    json.dumps(result, allow_nan=False)


@pytest.mark.slow
def test_streamed_and_resident_data_give_the_same_weights(task: Task, tmp_path: Path) -> None:
    run = config(method="ndcl", style={"mix": "both"})
    train(run, tmp_path / "resident", task)
    train(run, tmp_path / "streamed", task, dataclasses.replace(CPU, stream=True))
    assert _same(tmp_path / "resident", tmp_path / "streamed")


def test_batches_are_domain_major_and_drawn_with_replacement(task: Task) -> None:
    trainer = Trainer(config(hparams={"batch_size": 64}), task, Path("unused"), CPU)
    assert isinstance(trainer.source, ResidentSource)
    batch = trainer.source.batch(trainer.method.draws)
    assert batch.x.shape == (3 * 64, 3, 16, 16)
    assert batch.d.tolist() == [0] * 64 + [1] * 64 + [2] * 64
    train, domains = task.split.train, task.source_domains(task.split.train)
    pools = [{row.tobytes() for row in task.store.inputs[train[domains == d]]} for d in range(3)]
    mean, std = trainer.inputs.mean, trainer.inputs.std
    seen = (batch.x * std + mean).mul(255).round().to(torch.uint8).permute(0, 2, 3, 1).contiguous().numpy()
    for d, pool in enumerate(pools):
        drawn = [row.tobytes() for row in seen[64 * d : 64 * (d + 1)]]
        assert set(drawn) <= pool  # its own domain's training images, and no others
    # A domain with fewer images than the batch has must give some of them twice.
    few = Trainer(config(hparams={"batch_size": 200}), task, Path("unused"), CPU)
    assert max(len(pool) for pool in pools) < 200 == few.source.batch(few.method.draws).per_domain


def test_erm_learns_the_digits(task: Task, tmp_path: Path) -> None:
    run = config(setting="Balanced", steps=60, eval_every=60, hparams={"lr": 3e-3, "batch_size": 16})
    result = train(run, tmp_path)
    assert result["last"]["test"]["accuracy"] > 0.3, "chance is 0.1"


@pytest.mark.slow
def test_posterior_gaps_are_those_of_the_analysis(task: Task, tmp_path: Path) -> None:
    run = config()
    result = train(run, tmp_path / "run", task, dataclasses.replace(CPU, save_predictions=True))
    with np.load(RunFolder(tmp_path / "run").predictions) as saved:
        arrays = {name: saved[name] for name in saved.files}
    held = {
        what: np.concatenate([arrays[f"{n}_{what}"] for n in ("validation", "test")])
        for what in ("logits", "labels", "domains")
    }
    names = task.manifest.domain_names
    sources = by_domain(held["logits"], held["labels"], held["domains"], names)
    target = by_domain(arrays["target_logits"], arrays["target_labels"], arrays["target_domains"], names)[0]
    expected = posterior_discrepancy(sources, target)
    found = result["selected"]["posterior"]
    assert found["target"] == pytest.approx(expected.average, abs=1e-6)
    assert found["sources"] == pytest.approx(expected.between_sources, abs=1e-6)
    row = make_row(result)
    assert row["posterior_target"] == found["target"]
    assert row["last_posterior_sources"] == result["last"]["posterior"]["sources"]
