"""longshift: classifiers for an unseen domain, trained on domains that differ in appearance and in class frequencies.

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

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
