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

One run of one method, kept in a folder, as `longshift train` does it; then the same folder as a model:

>>> import tempfile
>>> config = longshift.RunConfig(data="digits", target="ink", method="erm", steps=2, eval_every=2)
>>> cpu = longshift.Runtime(device="cpu")
>>> run = longshift.train(config, out=tempfile.mkdtemp(), runtime=cpu)
>>> run.result["status"], longshift.evaluate(run.folder, ["target"], runtime=cpu)["agrees"]
('done', True)
>>> model = longshift.load_model(run.folder, device="cpu")
>>> model.size, len(model.classes)
(32, 10)
>>> longshift.predict(model, ["no_such_image.png"]).skipped
(('no_such_image.png', 'there is no such file or folder'),)

The losses and the methods by themselves (`longshift.create_method` creates one around your network):

>>> loss = longshift.losses.NDCLLoss(alpha=0.3)
>>> longshift.list_methods("ndcl*")
['ndcl', 'ndcl_plus']
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from longshift.lazy_exports import lazy_exports

__version__ = "0.1.0"

if TYPE_CHECKING:
    from longshift import (
        data as data,
        losses as losses,
        methods as methods,
        metrics as metrics,
        settings as settings,
    )
    from longshift.data import (
        Manifest as Manifest,
        Store as Store,
        load_dataset as load_dataset,
        open_store as open_store,
    )
    from longshift.fitting import DomainClassifier as DomainClassifier, fit as fit
    from longshift.inference import (
        LoadedModel as LoadedModel,
        evaluate as evaluate,
        export as export,
        load_model as load_model,
        predict as predict,
    )
    from longshift.methods import create_method as create_method, list_methods as list_methods
    from longshift.settings import make_split as make_split, setting_for as setting_for
    from longshift.training import (
        RunConfig as RunConfig,
        Runtime as Runtime,
        resolve as resolve,
        train as train,
    )

__all__, __getattr__, __dir__ = lazy_exports(__name__)
