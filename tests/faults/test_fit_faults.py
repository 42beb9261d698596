"""`fit`, killed, with damaged files, on a full disk, twice at once, and with names that mean something to others."""

from __future__ import annotations

import csv
import random
import re
import shutil
import signal
from html.parser import HTMLParser
from pathlib import Path

import pytest

import longshift
from longshift.files import read_json, read_sealed, write_sealed
from longshift.inference.loading import load_model
from tests.commands import Command, wait_for
from tests.faults.tools import (
    DAMAGES,
    leftovers,
    on_small_disk,
    outcome,
    tiny_sites,
)  # fmt: skip

FLAGS = (
    "--method", "erm", "--steps", "4", "--set", "batch_size=4", "--backbone", "small_conv", "--image-size", "16",
    "--device", "cpu", "--quiet",
)  # fmt: skip
RUNS = ("sites/erm-1-north", "sites/erm-2-south", "final")
NASTY = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "$(touch x)\"; touch y; '`touch z`",
    "[b](javascript:c)|*d*",
)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_sites(tmp_path_factory.mktemp("data") / "sites")


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGSHIFT_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture(scope="module")
def calm(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The fit that nothing happens to."""
    out = tmp_path_factory.mktemp("calm") / "fit"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LONGSHIFT_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
        assert outcome("fit", str(data), *FLAGS, "--out", str(out)) is None
    return out


def same(one: Path, other: Path) -> bool:
    """Whether two fits ended alike: what they say, and the model to the last byte."""
    names = ("fit.json", "final/model.safetensors", "final/model.json")
    return all((one / name).read_bytes() == (other / name).read_bytes() for name in names)


@pytest.mark.slow
def test_killed_at_any_moment_it_goes_on_to_the_same_end(data: Path, calm: Path, tmp_path: Path) -> None:
    out, rng = tmp_path / "fit", random.Random()
    process = Command("fit", data, *FLAGS, "--out", out)
    first = out / rng.choice(["plan.json", f"{RUNS[0]}/resume.pt", f"{RUNS[1]}/config.json", "final/config.json"])
    wait_for(lambda: first.exists() or process.poll() is not None)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL, "the fit ended before it could be killed"
    finished = {
        name: (out / name / "result.json").read_bytes() for name in RUNS if (out / name / "result.json").exists()
    }
    assert outcome("fit", str(data), *FLAGS, "--out", str(out)) is None
    assert same(calm, out)
    assert all((out / name / "result.json").read_bytes() == raw for name, raw in finished.items())
    assert not leftovers(out)
    assert not list(out.rglob("resume.pt"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["plan.json", f"{RUNS[0]}/result.json"])
def test_damage_to_a_file_that_a_fit_needs_is_named(data: Path, calm: Path, tmp_path: Path, name: str) -> None:
    copy = shutil.copytree(calm, tmp_path / "fit")
    whole, again = (copy / name).read_bytes(), ("fit", str(data), *FLAGS, "--out", str(copy))
    for damage in DAMAGES.values():
        (copy / name).write_bytes(damage(whole))
        error = outcome(*again)
        assert error is not None
        assert str(copy / name) in str(error)
        assert re.search("[Rr]emove (it|that file) and run the same command", str(error))
    (copy / name).unlink()
    assert outcome(*again) is None
    assert same(calm, copy)


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["half", "object", "not UTF-8"])
def test_damage_to_files_that_a_fit_only_writes_is_undone(data: Path, calm: Path, tmp_path: Path, damage: str) -> None:
    copy = shutil.copytree(calm, tmp_path / "fit")
    for name in ("fit.json", "report.html"):
        (copy / name).write_bytes(DAMAGES[damage]((copy / name).read_bytes()))
    assert outcome("fit", str(data), *FLAGS, "--out", str(copy)) is None
    assert same(calm, copy)
    assert len((copy / "report.html").read_bytes()) > 1000


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["empty", "half"])
def test_damage_to_kept_predictions(data: Path, calm: Path, tmp_path: Path, damage: str) -> None:
    """They only choose the pictures of the report: the message says to do without."""
    copy = shutil.copytree(calm, tmp_path / "fit")
    file = copy / RUNS[0] / "predictions.npz"
    file.write_bytes(DAMAGES[damage](file.read_bytes()))
    error = outcome("fit", str(data), *FLAGS, "--out", str(copy))
    if error is not None:
        assert f"cannot read {file}" in str(error)
        assert "Remove it" in str(error)
        file.unlink()
        assert outcome("fit", str(data), *FLAGS, "--out", str(copy)) is None
    else:
        assert "predictions.npz" in (copy / "report.html").read_text()
    assert same(calm, copy)


@pytest.mark.slow
def test_one_changed_number_in_a_plan_is_noticed(data: Path, calm: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(calm, tmp_path / "fit")
    text = (copy / "plan.json").read_text()
    assert '"eval_every": 1' in text
    (copy / "plan.json").write_text(text.replace('"eval_every": 1', '"eval_every": 3'))
    error = outcome("fit", str(data), *FLAGS, "--out", str(copy))
    assert "expected the values that were saved" in str(error)


def test_edited_numbers_of_a_site_are_noticed(data: Path, calm: Path, tmp_path: Path) -> None:
    """Also with a checksum that fits: accuracies of single classes must agree with the confusion matrix."""
    copy = shutil.copytree(calm, tmp_path / "fit")
    file = copy / RUNS[0] / "result.json"
    value = read_sealed(file)
    classes = value["selected"]["target"]["per_class"]
    classes[next(iter(classes))] = 0.123
    write_sealed(file, value)
    error = outcome("fit", str(data), *FLAGS, "--out", str(copy))
    assert "is 0.123, but the confusion matrix gives" in str(error) or "but the other numbers give" in str(error)
    assert str(file) in str(error)


@pytest.mark.slow
def test_a_full_disk_costs_nothing(data: Path, calm: Path, tmp_path: Path) -> None:
    """There is room for one checkpoint (the weights four times) and not for the next."""
    disk, after = tmp_path / "disk", tmp_path / "after"
    kib = (calm / "final" / "model.safetensors").stat().st_size * 6 // 1024
    arguments = ("fit", str(data), *FLAGS, "--out", str(disk / "fit"))
    code, said = on_small_disk(disk, kib, None, after, arguments)
    assert code == 1, said
    assert "the disk is full. Free some space" in said
    assert "Traceback" not in said
    assert not leftovers(after)
    assert not (after / "fit" / "fit.json").exists()
    assert (after / "fit" / RUNS[0] / "resume.pt").exists()
    for path in after.rglob("*.json"):
        read_json(path)  # whole, or not there
    assert outcome("fit", str(data), *FLAGS, "--out", str(after / "fit")) is None
    assert same(calm, after / "fit")


def test_too_little_space_is_refused_before_anything_is_done(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longshift.fitting.fit_run.SPARE_BYTES", 2**60)
    error = outcome("fit", str(data), *FLAGS, "--out", str(tmp_path / "fit"))
    assert "of free space in" in str(error)
    assert not (tmp_path / "fit").exists()


@pytest.mark.slow
def test_of_two_at_once_one_wins(data: Path, calm: Path, tmp_path: Path) -> None:
    out = tmp_path / "fit"
    pair = [Command("fit", data, *FLAGS, "--out", out) for _ in range(2)]
    said = [process.communicate(timeout=120)[1] for process in pair]
    codes = [process.returncode for process in pair]
    assert 0 in codes, said
    for code, text in zip(codes, said, strict=True):
        assert code == 0 or "another command is using" in text, text
        assert "Traceback" not in text
    assert same(calm, out)
    assert not leftovers(out)


def test_a_folder_in_use_is_refused_and_a_mistake_leaves_none(data: Path, tmp_path: Path) -> None:
    from longshift.locks import lock_folder

    out = tmp_path / "fit"
    with lock_folder(out):
        error = outcome("fit", str(data), *FLAGS, "--out", str(out))
    assert f"another command is using {out}" in str(error)
    with lock_folder(out / "sites" / "erm-1-north"):  # `train` in the folder of one of its runs
        error = outcome("fit", str(data), *FLAGS, "--out", str(out))
    assert f"another command is using {out / 'sites' / 'erm-1-north'}" in str(error)
    assert outcome("fit", str(data), *FLAGS, "--out", str(tmp_path / "none"), "--target", "west") is not None
    assert not (tmp_path / "none").exists()


class Page(HTMLParser):
    """The tags of a page in order, those of its charts apart, and the text that is neither script nor style."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.chart_tags: list[tuple[str, tuple[str, ...]]] = []
        self.charts = 0  # how many are open
        self.links: list[str] = []
        self.text, self.inside = "", ""
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.charts += tag == "svg"
        (self.chart_tags if self.charts else self.tags).append((tag, tuple(name for name, _ in attrs)))
        self.links += [str(value) for name, value in attrs if name in ("href", "src")]
        self.inside = tag

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""
        self.charts -= tag == "svg"

    def handle_data(self, data: str) -> None:
        if self.inside not in ("script", "style"):
            self.text += data


def named(folder: Path, names: tuple[str, ...]) -> Path:
    """The same images with other names for their classes, in a table."""
    tiny_sites(folder, tuple(f"class{k}" for k in range(len(names))))
    with (folder / "table.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["path", "label", "domain"])
        for path in sorted(folder.rglob("*.png")):
            site, label, _ = path.relative_to(folder).parts
            writer.writerow([path.relative_to(folder).as_posix(), names[int(label[-1])], site])
    return folder / "table.csv"


@pytest.mark.slow
def test_names_are_only_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Classes called like markup, scripts and shell commands: the pages have the same tags as with harmless names."""
    monkeypatch.chdir(tmp_path)
    nasty = tuple(sorted(NASTY))
    pages = []
    for kind, names in (("odd", nasty), ("even", tuple(f"p{k}" for k in range(len(nasty))))):
        table, out = named(tmp_path / kind, names), tmp_path / f"fit-{kind}"
        assert outcome("fit", str(table), *FLAGS, "--compare", "--out", str(out)) is None
        assert load_model(out, device="cpu").classes == names
        pages.append(Page(out / "report.html"))
        predictions = tmp_path / f"{kind}.csv"
        assert outcome("predict", str(out), str(tmp_path / kind), "--out", str(predictions), "--quiet") is None
        with predictions.open(newline="", encoding="utf-8") as file:
            assert {row["class"] for row in csv.DictReader(file)} <= set(names)
    assert pages[0].tags == pages[1].tags
    assert set(pages[0].chart_tags) <= {*pages[1].chart_tags, ("g", ())}  # long names are split into lines, in a group
    assert not any(link.startswith("javascript:") for link in pages[0].links)
    assert not any(
        name.startswith("on") for _, attributes in (*pages[0].tags, *pages[0].chart_tags) for name in attributes
    )
    for name in nasty:
        assert name in pages[0].text  # it is there, as text
    card = (tmp_path / "fit-odd" / "MODEL_CARD.md").read_text()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in card
    assert "<" not in card
    for active in ("](", "`touch", "|*d"):  # a link, code, the end of a cell: all have a backslash before them
        assert len(re.findall(re.escape(active), card)) == len(re.findall(r"\\" + re.escape(active), card))
    made = {path.name for path in tmp_path.iterdir()}
    assert made == {"odd", "even", "fit-odd", "fit-even", "odd.csv", "even.csv"}  # no x, y, z


def test_no_shell_and_no_pickle_anywhere_in_the_source() -> None:
    """Names from data can't reach a shell where none is ever started, nor run where nothing is unpickled."""
    forbidden = re.compile(
        r"shell\s*=\s*True|os\.(system|popen)\b|getoutput|\bpickle\.loads?\b|weights_only\s*=\s*False|"
        r"allow_pickle\s*=\s*True|(?<![.`\w])(eval|exec)\(|yaml\.load\b"
    )
    found = []
    for path in Path(longshift.__file__).parent.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        found += [f"{path}: {match.group()}" for match in forbidden.finditer(text)]
    assert found == []
