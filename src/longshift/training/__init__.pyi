from . import checkpoint as checkpoint
from .augment import register_augmentation as register_augmentation
from .batch_source import EvaluationSource as EvaluationSource, host_tensor as host_tensor
from .build_parts import build_method as build_method
from .checkpoint import ModelFile as ModelFile, load_resume as load_resume, read_model_file as read_model_file
from .device import (
    resolve_device as resolve_device,
    training_threads as training_threads,
    use_threads as use_threads,
)
from .evaluate import (
    SETS as SETS,
    Evaluator as Evaluator,
    calibration_scores as calibration_scores,
    evaluate_set as evaluate_set,
)
from .features import (
    FeatureRequest as FeatureRequest,
    FrozenNetwork as FrozenNetwork,
    ImageSet as ImageSet,
    image_features as image_features,
    open_features as open_features,
    require_readable as require_readable,
    unreadable as unreadable,
    usable_rows as usable_rows,
)
from .inputs import Inputs as Inputs, channel_tensor as channel_tensor, normalize_pixels as normalize_pixels
from .interrupt import (
    ENDINGS as ENDINGS,
    Interrupted as Interrupted,
    graceful_stop as graceful_stop,
    ignore_signals as ignore_signals,
)
from .resolve_run import (
    OpenDataset as OpenDataset,
    ResolvedRun as ResolvedRun,
    require_version as require_version,
    resolve as resolve,
)
from .run_config import (
    PROTOCOL_WEIGHTS as PROTOCOL_WEIGHTS,
    SMALL_IMAGE as SMALL_IMAGE,
    RunConfig as RunConfig,
    Runtime as Runtime,
    parse_run_config as parse_run_config,
    parse_runtime as parse_runtime,
)
from .run_folder import (
    RunFolder as RunFolder,
    read_config as read_config,
    read_metrics as read_metrics,
    read_predictions as read_predictions,
    read_result as read_result,
)
from .task import (
    Task as Task,
    TaskCache as TaskCache,
    inputs_key as inputs_key,
    make_task as make_task,
    open_inputs as open_inputs,
    split_of as split_of,
)
from .trackers import TrackerKind as TrackerKind, open_tracker as open_tracker, tracker_kind as tracker_kind
from .train_run import TrainedRun as TrainedRun, train as train
from .trainer import Trainer as Trainer
