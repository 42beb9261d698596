"""What of the Ray launcher can be seen without a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from longshift.errors import LongshiftError, UsageError
from longshift.io import replacing
from longshift.sweep.job_queue import make_queue
from longshift.sweep.launchers import Launch, LaunchOptions
from longshift.sweep.ray_launcher import node_store, read_files, run_ray, write_files
from longshift.training.run_config import Runtime
from tests.sweep.small import small_plan


def test_without_ray_the_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str, *arguments: Any) -> Any:
        raise ImportError(name)

    job_queue = make_queue(small_plan(tmp_path / "s"))
    monkeypatch.setattr("longshift.sweep.ray_launcher.importlib.import_module", absent)
    with pytest.raises(UsageError, match=r"pip install -e '\.\[ray\]'"):
        run_ray(Launch(job_queue, LaunchOptions(), Runtime()))


def test_files_travel_whole_and_the_result_comes_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, goal = tmp_path / "a", tmp_path / "b"
    assert read_files(source) == {}
    source.mkdir()
    for name in ("result.json", "config.json", "split.json", ".hidden"):
        (source / name).write_text(name)
    files = read_files(source)
    assert sorted(files) == ["config.json", "result.json", "split.json"]
    goal.mkdir()
    (goal / "resume.pt").write_text("old")
    order: list[str] = []

    def watched(path: Path) -> Any:
        order.append(path.name)
        return replacing(path)

    monkeypatch.setattr("longshift.sweep.ray_launcher.replacing", watched)
    write_files(goal, files)
    assert order[-1] == "result.json"
    assert read_files(goal) == files  # the checkpoint of a finished job is gone
    assert sorted(order) == sorted(files)


def test_a_cluster_that_is_not_there_is_named_at_once(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install -e '.[ray]'")
    with pytest.raises(LongshiftError, match=r"no Ray cluster at 127\.0\.0\.1:1: "):
        run_ray(Launch(make_queue(small_plan(tmp_path / "s")), LaunchOptions(address="127.0.0.1:1"), Runtime()))


def test_the_folder_of_a_node_belongs_to_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody can write to /tmp and knows the name of the folder."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = node_store().path
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.rmdir()
    (tmp_path / "elsewhere").mkdir()
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LongshiftError, match="belongs to somebody else"):
        node_store()
    folder.unlink()
    folder.mkdir()
    monkeypatch.setattr("os.getuid", lambda: folder.stat().st_uid + 1)
    (tmp_path / f"longshift-ray-{folder.stat().st_uid + 1}").mkdir()
    with pytest.raises(LongshiftError, match="belongs to somebody else"):
        node_store()
