"""The built wheel works without the repository: in a virtual environment, from another folder.

Not isolated: the dependencies (PyTorch and so on), which the environment takes from the one that runs the tests. So
this does not show that the list of dependencies in pyproject.toml is complete.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
COPIED = ("pyproject.toml", "README.md", "LICENSE", "MANIFEST.in", "CHANGELOG.md", "CITATION.cff")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy: building leaves files next to the source."""
    pytest.importorskip("build")
    source = tmp_path_factory.mktemp("source")
    for name in COPIED:
        shutil.copy(ROOT / name, source / name)
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    out = tmp_path_factory.mktemp("dist")
    _run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, source, cwd=source)
    (found,) = out.glob("longshift-*.whl")
    return found


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with the wheel. Its path to the dependencies makes no editable install work."""
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder, symlinks=os.name != "nt")
    scripts = folder / ("Scripts" if os.name == "nt" else "bin")
    _run(sys.executable, "-m", "pip", "--python", scripts / "python", "install", "--no-deps", "--no-index", wheel)
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    own = Path(_run(scripts / "python", "-c", where).strip())
    paths = dict.fromkeys(sysconfig.get_path(kind) for kind in ("purelib", "platlib"))
    (own / "dependencies.pth").write_text("\n".join(paths), encoding="utf-8")
    return scripts


def _run(*command: str | Path, cwd: Path | None = None) -> str:
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run([*map(str, command)], cwd=cwd, env=kept, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_wheel_has_the_data_of_the_package_and_no_tests(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for path in (ROOT / "src").rglob("*"):
        if path.is_file() and path.suffix not in (".pyc", ".pyi") and ".egg-info" not in str(path):
            assert path.relative_to(ROOT / "src").as_posix() in names
    assert "longshift/data/pacs_features.npz" in names
    assert "longshift/data/pacs_features.md" in names
    assert not [name for name in names if "oracle" in name or name.startswith(("tests/", "tools/", "results/"))]


@pytest.mark.slow
def test_the_installed_wheel_trains(environment: Path, tmp_path: Path) -> None:
    where = _run(environment / "python", "-c", "import longshift; print(longshift.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(environment.parent)
    options = [
        "--data",
        "pacs-features",
        "--target",
        "sketch",
        "--method",
        "ndcl",
        "--steps",
        "2",
        "--out",
        "run",
        "-q",
    ]
    _run(environment / "longshift", "train", *options, cwd=tmp_path)
    assert (tmp_path / "run" / "result.json").exists()
