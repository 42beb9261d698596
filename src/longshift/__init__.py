"""longshift: classifiers for an unseen domain, trained on domains that differ in look and in class frequencies.

Names are loaded when they are first used, so that `import longshift` is quick:

>>> import longshift
>>> data = longshift.load_dataset("digits")
>>> len(data), data.domain_names
(1797, ('chalk', 'ink', 'neon', 'stamp'))

A setting says how many samples of each class each source domain gives; a split says which:

>>> setting = longshift.setting_for(data, "TotalHeavyTail", target="ink")
>>> split = longshift.make_split(data, setting, split_seed=0)
>>> split.sources, len(split.validation), len(split.target_indices)
(('chalk', 'neon', 'stamp'), 150, 454)

One run of one method, kept in a folder; then the same folder as a model:

>>> import tempfile
>>> folder = tempfile.mkdtemp()
>>> config = longshift.RunConfig(data="digits", target="ink", method="erm", steps=2, eval_every=2)
>>> cpu = longshift.Runtime(device="cpu")
>>> result = longshift.Trainer(config, longshift.make_task(config), folder, cpu).run()
>>> result["status"], longshift.evaluate(folder, ["target"], runtime=cpu)["agrees"]
('done', True)
>>> model = longshift.load_model(folder, device="cpu")
>>> model.size, len(model.classes)
(32, 10)
>>> longshift.predict(model, ["no_such_image.png"]).skipped
(('no_such_image.png', 'there is no such file or folder'),)

The losses and the methods by themselves:

>>> loss = longshift.losses.NDCLLoss(alpha=0.3)
>>> longshift.methods.registry.get("ndcl").info.title
'NDCL'
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from longshift import losses, methods, metrics, settings
    from longshift.data import Manifest, Store, load_dataset, open_store
    from longshift.engine.config import RunConfig, Runtime
    from longshift.engine.evaluate import evaluate
    from longshift.engine.export import export
    from longshift.engine.load import LoadedModel, load_model
    from longshift.engine.predict import predict
    from longshift.engine.task import Task, make_task
    from longshift.engine.trainer import Trainer
    from longshift.experiments.fit import fit
    from longshift.settings import make_split, setting_for

_HOMES = {
    "Manifest": "longshift.data",
    "Store": "longshift.data",
    "load_dataset": "longshift.data",
    "open_store": "longshift.data",
    "make_split": "longshift.settings",
    "setting_for": "longshift.settings",
    "RunConfig": "longshift.engine.config",
    "Runtime": "longshift.engine.config",
    "Task": "longshift.engine.task",
    "make_task": "longshift.engine.task",
    "Trainer": "longshift.engine.trainer",
    "LoadedModel": "longshift.engine.load",
    "load_model": "longshift.engine.load",
    "evaluate": "longshift.engine.evaluate",
    "predict": "longshift.engine.predict",
    "export": "longshift.engine.export",
    "fit": "longshift.experiments.fit",
}
_MODULES = {
    "losses": "longshift.losses",
    "methods": "longshift.methods.registry",
    "metrics": "longshift.metrics",
    "settings": "longshift.settings",
}

__all__ = [
    "LoadedModel",
    "Manifest",
    "RunConfig",
    "Runtime",
    "Store",
    "Task",
    "Trainer",
    "__version__",
    "evaluate",
    "export",
    "fit",
    "load_dataset",
    "load_model",
    "losses",
    "make_split",
    "make_task",
    "methods",
    "metrics",
    "open_store",
    "predict",
    "setting_for",
    "settings",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
    elif name in _MODULES:
        importlib.import_module(_MODULES[name])
        value = importlib.import_module(f"longshift.{name}")
    else:
        raise AttributeError(f"module 'longshift' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
