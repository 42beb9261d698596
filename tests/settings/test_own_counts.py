"""Settings from a user's own table of counts, and errors in such files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from longshift.errors import ConfigError, LongshiftError
from longshift.settings import explicit_setting, setting_for
from tests.settings import made

COUNTS = {"d0": {"c0": 9, "c1": 1}, "d1": {"c0": 3, "c1": 7}, "d2": {"c0": 2, "c1": 2}}


def test_one_table_serves_all_targets() -> None:
    setting = explicit_setting(COUNTS, "d2", validation=3)
    assert setting.counts == {"d0": COUNTS["d0"], "d1": COUNTS["d1"]}
    assert (setting.name, setting.target, setting.validation) == ("explicit", "d2", 3)
    assert (setting.many, setting.few) == (5.0, 5.0)  # between the means 6 and 4
    assert explicit_setting(COUNTS, "d0", many=8, few=1).many == 8


@pytest.mark.parametrize("kind", ["json", "json with options", "csv"])
def test_files(kind: str, tmp_path: Path) -> None:
    manifest = made.manifest(made.even(3, 2, 30))
    path = tmp_path / ("mine.csv" if kind == "csv" else "mine.json")
    if kind == "csv":
        rows = [f"{domain},{name},{n}" for domain, row in COUNTS.items() for name, n in row.items()]
        path.write_text("\n".join(["domain,class,count", *rows]))
    elif kind == "json":
        path.write_text(json.dumps(COUNTS))
    else:
        path.write_text(json.dumps({"counts": COUNTS, "validation": 2, "many": 5, "few": 3, "name": "ours"}))
    for given in (path, str(path)):
        setting = setting_for(manifest, given, "d1")
        assert setting.counts == {"d0": COUNTS["d0"], "d2": COUNTS["d2"]}
        expected: tuple[str, float, float, float] = (
            ("ours", 2, 5, 3) if kind == "json with options" else ("mine", 5, 3.5, 3.5)
        )
        assert (setting.name, setting.validation, setting.many, setting.few) == expected
        assert setting_for(manifest, given, "d1", validation=4).validation == 4


def test_all_mistakes_are_listed() -> None:
    counts: Any = {"a": {"x": -1, "y": 2.5, "z": True}, "b": {}, "c": 3}
    with pytest.raises(ConfigError) as caught:
        explicit_setting(counts, "t", validation=-1, many=-2, origin="counts.json")
    names = ("a, x", "a, y", "a, z", "b", "c", "validation", "many")
    assert tuple(mistake.partition(":")[0] for mistake in caught.value.mistakes) == names
    with pytest.raises(ConfigError, match="target"):
        explicit_setting({"a": {"x": 1, "y": 1}}, "a")


@pytest.mark.parametrize(
    ("name", "text", "named"),
    [
        ("a.csv", "domain,label,count\n", "'class'"),
        ("a.csv", "domain,class,count\na,x,many\n", "line 2"),
        ("a.csv", "domain,class,count\na,x,1\na,x,2\n", "line 3"),
        ("a.json", "[1]", "list"),
        ("a.json", '{"counts": {}, "valdation": 3}', "'valdation'"),
        ("a.json", '{"counts": {}}', "a.json"),
        ("a.json", "{", "a.json"),
    ],
)
def test_broken_files(name: str, text: str, named: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(LongshiftError, match=named):
        setting_for(made.manifest(made.even(3, 2, 30)), tmp_path / name, "d1")


def test_a_missing_file(tmp_path: Path) -> None:
    for name in ("none.csv", "none.json"):
        with pytest.raises(LongshiftError, match="none"):
            setting_for(made.manifest(made.even(3, 2, 30)), str(tmp_path / name), "d1")
