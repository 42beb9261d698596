"""The package must import where the modules and functions of Unix are missing."""

from __future__ import annotations

import subprocess
import sys

# The first pass loads third-party packages, which use what this system has. The second pass imports only our modules.
CODE = """
import importlib, os, pkgutil, signal, sys

def import_all():
    import longshift
    names = [m.name for m in pkgutil.walk_packages(longshift.__path__, "longshift.") if not m.name.endswith("__main__")]
    for name in names:
        importlib.import_module(name)
    return names

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name in BLOCKED:
            raise ImportError(f"no module {name} on Windows")

BLOCKED = {"fcntl", "resource", "pwd", "grp", "termios"}
before = import_all()
for name in list(sys.modules):
    if name.split(".")[0] == "longshift" or name in BLOCKED:
        del sys.modules[name]
sys.meta_path.insert(0, Blocker())
for name in ("fork", "getuid", "geteuid", "sched_getaffinity", "uname", "pread", "pwrite", "O_CLOEXEC", "O_DIRECTORY"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGKILL", "SIGALRM", "SIGHUP", "SIGUSR1", "SIGPIPE"):
    if hasattr(signal, name):
        delattr(signal, name)
after = import_all()
assert before == after and len(after) > 150, len(after)
assert not BLOCKED & set(sys.modules)
print("imported", len(after))
"""


def test_every_module_imports_without_the_modules_of_unix() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.startswith("imported")
