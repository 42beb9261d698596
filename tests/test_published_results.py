"""Published runs belong to their sweep files, and the tables on the pages are those of the runs."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
from scipy import stats

from longshift.io import read_toml
from longshift.paper.published_tables import overall_results
from longshift.report.titles import method_title
from longshift.sweep import make_plan
from results.docs_tables import filled, make_table, names, pages, table_names
from results.methods_pages import methods_pages
from results.style_choice import ROUNDS, survivors, validation, variants, winner
from tests.data.trees import pacs

ROOT = Path(__file__).parents[1]
SWEEPS = sorted(
    file.with_name("sweep.toml") for file in (ROOT / "results").rglob("runs.parquet") if file.parent.name != "probe"
)
PAIR = ["setting", "target", "trial"]
FINE_TUNED = ROOT / "results" / "pacs-mobilenetv2"
WEIGHTS = "mobilenetv2_100_in1k.safetensors"


@pytest.mark.parametrize("file", SWEEPS, ids=[str(file.parent.relative_to(ROOT / "results")) for file in SWEEPS])
def test_published_runs_are_of_their_sweep(file: Path) -> None:
    frame, sweep = pd.read_parquet(file.with_name("runs.parquet")), read_toml(file)
    named = set(frame.method.str.removesuffix("+ema"))
    wanted = set(sweep["methods"])
    if "all" in wanted:
        published = set(overall_results().method)
        assert published <= named
        wanted |= published
    wanted |= {variant["name"] for variant in sweep.get("variants", ())}
    assert not frame.duplicated(["fingerprint", "method"]).any()
    assert named <= wanted
    assert set(frame.setting) <= set(sweep["settings"])
    trials = sweep["trials"]
    assert set(frame.trial) <= set(trials if isinstance(trials, list) else range(trials))
    by_steps = ~frame.method.str.startswith("logistic")  # which is solved in one
    assert set(frame.steps[by_steps]) == {sweep["run"]["steps"]}
    assert (frame.status == "done").all()
    assert (frame.selected_step > 0).all()
    assert frame.commit.notna().all()


@pytest.mark.slow
def test_tables_on_the_pages_are_those_of_the_runs() -> None:
    texts = {page: page.read_text(encoding="utf-8") for page in pages()}
    stale = [page.relative_to(ROOT).as_posix() for page, text in texts.items() if filled(text) != text]
    assert not stale, "run: make tables (or: python -m results.docs_tables)"
    assert sorted({name for text in texts.values() for name in names(text)}) == table_names()


def test_the_pages_of_methods_are_those_of_the_registry_and_the_runs() -> None:
    stale = [page for page, text in methods_pages().items() if page.read_text(encoding="utf-8") != text]
    assert not stale, "run: make tables (or: python -m results.docs_tables)"


def rows(name: str) -> dict[str, list[str]]:
    """The cells of a table by the name of the row, without bold."""
    lines = [line.strip("| ").replace("**", "").split(" | ") for line in make_table(name).splitlines()[2:]]
    return {line[0]: line[1:] for line in lines}


def runs(folder: str) -> pd.DataFrame:
    frame = pd.read_parquet(ROOT / "results" / folder / "runs.parquet")
    return frame[frame.draw == 0].assign(method=frame.method.map(method_title))


def points(cell: str) -> list[float]:
    """`+4.7 (+2.6 to +6.7)`: the mean and the ends of its interval."""
    return [float(number) for number in re.findall(r"-?\d+\.\d+", cell)]


def expected_interval(gaps: pd.Series[float]) -> list[float]:
    """Mean and 95 % interval by Student's t, in points."""
    half = stats.t.ppf(0.975, len(gaps) - 1) * gaps.std() / len(gaps) ** 0.5
    return [100 * value for value in (gaps.mean(), gaps.mean() - half, gaps.mean() + half)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "folder", "place"),
    [
        ("fine-tuned", "pacs-mobilenetv2", {"TotalHeavyTail": 0, "Duality": 2, "GINIDG": 4}),
        ("networks", "pacs-efficientnet", {"TotalHeavyTail": 0, "Duality": 1, "GINIDG": 2}),
    ],
)
def test_means_by_another_route(name: str, folder: str, place: dict[str, int]) -> None:
    frame = runs(folder)
    found = {method: cells for method, cells in rows(name).items() if method in set(frame.method)}
    assert len(found) >= 6
    for method, cells in found.items():
        if name == "fine-tuned":
            few = 100 * frame[frame.method == method].groupby("setting").target_few.mean().mean()
            assert float(cells[6]) == pytest.approx(few, abs=0.051)
        for setting, column in place.items():
            part = frame[(frame.method == method) & (frame.setting == setting)].groupby("trial")
            means = 100 * part.target_accuracy.mean()
            expected = [means.mean(), means.std(ddof=0) / len(means) ** 0.5]
            assert [float(text) for text in cells[column].split(" ± ")] == pytest.approx(expected, abs=0.051)


@pytest.mark.slow
def test_leads_by_another_route() -> None:
    tuned = pd.concat([runs("pacs-mobilenetv2"), runs("pacs-mobilenetv2/style-confirm")])
    series = [(runs("pacs-resnet50"), " + EMA"), (tuned, ""), (runs("pacs-frozen"), "")]
    for title, (_, *cells) in rows("leads").items():
        compared, _, setting = title.rpartition(": ")
        for (frame, average), cell in zip(series, cells, strict=True):
            part = frame[frame.setting == setting].set_index(PAIR)
            one, two = (part[part.method == method + average].target_accuracy for method in compared.split(" - "))
            gaps = (one - two).dropna()
            assert points(cell) == pytest.approx(expected_interval(gaps), abs=0.051)


@pytest.mark.slow
def test_the_confirmation_by_another_route() -> None:
    frame = runs("pacs-mobilenetv2/style-confirm")
    for title, (every, _, ahead, many, few) in rows("confirmation").items():
        compared, _, where = title.rpartition(": ")
        part = frame[frame.setting.isin(where.split(" and "))].set_index(PAIR)
        one, two = (part[part.method == method] for method in compared.split(" - "))
        for cell, measure in ((every, "target_accuracy"), (many, "target_many"), (few, "target_few")):
            assert points(cell) == pytest.approx(expected_interval(one[measure] - two[measure]), abs=0.051)
        gaps = one.target_accuracy - two.target_accuracy
        assert ahead == f"{(gaps > 0).sum()} of {len(gaps)}"


def test_ranks_by_another_route() -> None:
    frame = runs("pacs-mobilenetv2")
    own = frame[~frame.method.str.contains(",")]
    cases = own.pivot_table(index="method", columns=["setting", "target"], values="target_accuracy")
    expected = cases.rank(ascending=False).mean(axis=1)
    found = {method: cells[-1] for method, cells in rows("fine-tuned").items()}
    assert set(found) == set(expected.index)
    assert list(found) == sorted(found, key=lambda method: expected[method])
    for method, rank in found.items():
        assert float(rank) == pytest.approx(expected[method], abs=0.051)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """As after a clone, with the data beside the sweep files; fingerprints name weights by their contents."""
    images = pacs()
    weights = images.parent / "weights" / WEIGHTS
    if not weights.exists():
        pytest.skip(f"no weights at {weights}")
    for path in (images, weights):
        (tmp_path / path.name).symlink_to(path.resolve())
    # Fingerprints name a published benchmark by its name, so the original images stand for the re-encoded ones.
    (tmp_path / "PACS-192.zip").symlink_to(images.resolve())
    for file in FINE_TUNED.rglob("sweep.toml"):
        copy = tmp_path / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(
    "folder",
    [".", "study", "long", "five-at-224px"]
    + [f"style-{name}" for name in ("choice", "choice/finalists", "confirm", "for-others")],
)
def test_a_sweep_file_plans_the_published_runs(clone: Path, folder: str) -> None:
    _, plan = make_plan(clone / FINE_TUNED.relative_to(ROOT) / folder)
    planned = {(job.fingerprint, job.method, job.trial, job.draw) for job in plan.jobs}
    rows = pd.read_parquet(FINE_TUNED / folder / "runs.parquet")
    assert not rows.duplicated(["fingerprint", "method"]).any()
    made = zip(rows.fingerprint, rows.method.str.removesuffix("+ema"), rows.trial, rows.draw, strict=True)
    assert set(made) <= planned


def test_the_published_rounds_choose_the_preset() -> None:
    one, two = ROUNDS
    assert survivors(validation(one)) == list(variants(two))
    assert variants(two)[winner(validation(two))]["style"] == {"mix": "both", "share": 0.5}
    means = pd.Series({"simple": 80.0, "better": 81.0, "best": 81.1, "tied": 80.0, "low": 70.0})
    assert survivors(means) == ["better", "best"]
    assert survivors(means.drop("better")) == ["simple", "best"]  # of two equal ones, the simpler
    assert winner(means) == "better"
