"""`longshift data inspect` and `verify`: counts, warnings, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from longshift.data import benchmarks, load_dataset
from tests.cli.main_calls import Run
from tests.data.trees import encoded, make_tree, picture
from tests.golden import check_golden


def test_words(run: Run, tmp_path: Path) -> None:
    root = make_tree(tmp_path / "data")
    (root / "photo" / "dog" / "more.png").write_bytes(encoded(picture(77)))
    shown = [run("data", "inspect", root)[1], run("data", "verify", root, "-q")[1]]
    (root / "paint" / "cat" / "0.png").write_bytes(b"")
    (root / "photo" / "dog" / "[odd].jpg").write_bytes(b"text")
    shown.append(run("data", "verify", root, "-q")[1])
    np.savez(tmp_path / "v.npz", x=np.arange(8.0).reshape(4, 2), label=list("abab"), domain=list("nnss"))
    shown += [run("data", "inspect", tmp_path / "v.npz")[1], run("data", "verify", tmp_path / "v.npz", "-q")[1]]
    check_golden("data.txt", "\n".join(line.rstrip() for text in shown for line in text.splitlines()) + "\n")


@pytest.mark.parametrize(
    ("domains", "classes", "named"),
    [(("one",), ("a", "b"), "(one)"), (("one", "two"), ("a",), "(a)"), (("one", "two"), ("dog", "Dog"), "'Dog'")],
)
def test_inspect_warns(run: Run, tmp_path: Path, domains: list[str], classes: list[str], named: str) -> None:
    code, out, err = run("data", "inspect", make_tree(tmp_path / "data", domains, classes), "--json")
    assert code == 0
    assert sorted(json.loads(out)) == sorted(domains)
    assert err.startswith("warning")
    assert named in err


def test_inspect_warns_of_classes_that_look_like_domains_once(run: Run, tmp_path: Path) -> None:
    for number in range(12):
        make_tree(tmp_path / "data", (f"class{number}",), (f"patient{number}",), 1)
    code, _, err = run("data", "inspect", tmp_path / "data")
    assert code == 0
    assert err.count("warning") == 1


def test_inspect_does_not_list_every_empty_class(run: Run, tmp_path: Path) -> None:
    make_tree(tmp_path / "data", ("one", "two"), ("both",), 1)
    make_tree(tmp_path / "data", ("three",), [f"class {k:02d}" for k in range(8)], 1)
    code, _, err = run("data", "inspect", tmp_path / "data")
    assert code == 0
    assert err.count("warning") == 11  # ten, and how many more


def test_verify_lists_problems_and_fails(run: Run, tmp_path: Path) -> None:
    root = make_tree(tmp_path / "data")
    code, out, err = run("data", "verify", root, "--quiet", "--json")
    assert (code, json.loads(out), err) == (0, {"images": 12, "problems": [], "differences": []}, "")
    (root / "paint" / "cat" / "0.png").write_bytes(b"")
    (root / "photo" / "dog" / "[odd].jpg").write_bytes(b"text")
    code, out, _ = run("data", "verify", root, "--json")
    assert code == 1
    assert [(p["kind"], p["path"]) for p in json.loads(out)["problems"]] == [
        ("zero-byte", "paint/cat/0.png"),
        ("not an image", "photo/dog/[odd].jpg"),
    ]


VLCS = ("Caltech101", "LabelMe", "SUN09", "VOC2007")


def test_verify_compares_with_a_benchmark(run: Run, tmp_path: Path) -> None:
    root = make_tree(tmp_path / "data", VLCS, benchmarks.get_benchmark("VLCS").classes, each=1)
    code, out, _ = run("data", "verify", root, "--benchmark", "vlcs", "--json", "-q")
    assert code == 1
    differences = json.loads(out)["differences"]
    assert len(differences) == 20
    assert {"domain": "SUN09", "label": "bird", "expected": 14, "found": 1} in differences
    assert run("data", "verify", root, "--benchmark", "VLCS", "-q")[0] == 1


def test_more_images_than_the_published_part_of_vlcs_are_to_be_expected(tmp_path: Path) -> None:
    entry = benchmarks.get_benchmark("VLCS")
    rows = ["path,label,domain"]
    for key, totals in entry.totals.items():
        for label, total in totals.items():
            rows += [f"{key}/{label}/{i}.png,{label},{key}" for i in range(total + 1)]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    differences = benchmarks.compare_counts(load_dataset(tmp_path / "t.csv"), "VLCS")
    assert len(differences) == 20
    assert all(map(entry.explains, differences))
    assert not any(map(benchmarks.get_benchmark("PACS").explains, differences))
    assert not entry.explains(benchmarks.CountDifference("sun", "unicorn", 0, 3))
    assert not entry.explains(benchmarks.CountDifference("sun", "bird", 14, 13))
