from . import data as data, losses as losses, methods as methods, metrics as metrics, settings as settings
from .data import Manifest as Manifest, Store as Store, load_dataset as load_dataset, open_store as open_store
from .fitting import DomainClassifier as DomainClassifier, fit as fit
from .inference import (
    LoadedModel as LoadedModel,
    evaluate as evaluate,
    export as export,
    load_model as load_model,
    predict as predict,
)
from .methods import create_method as create_method, list_methods as list_methods
from .settings import make_split as make_split, setting_for as setting_for
from .training import RunConfig as RunConfig, Runtime as Runtime, resolve as resolve, train as train

__version__: str
__all__: list[str]
