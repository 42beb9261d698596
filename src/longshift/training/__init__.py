"""From a request to a finished run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longshift.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from longshift.progress import Bar as Bar, no_bar as no_bar
    from longshift.training import checkpoint as checkpoint
    from longshift.training.augmentation import register_augmentation as register_augmentation
    from longshift.training.batch_source import EvaluationSource as EvaluationSource, host_tensor as host_tensor
    from longshift.training.batches import (
        Inputs as Inputs,
        channel_tensor as channel_tensor,
        normalize_pixels as normalize_pixels,
    )
    from longshift.training.build_parts import build_method as build_method
    from longshift.training.checkpoint import load_resume as load_resume
    from longshift.training.device import (
        resolve_device as resolve_device,
        training_threads as training_threads,
        use_threads as use_threads,
    )
    from longshift.training.feature_cache import (
        FeatureRequest as FeatureRequest,
        FrozenNetwork as FrozenNetwork,
        features_missing as features_missing,
        frozen_module as frozen_module,
        open_features as open_features,
        require_readable as require_readable,
        unreadable as unreadable,
        usable_rows as usable_rows,
    )
    from longshift.training.interrupt import (
        ENDINGS as ENDINGS,
        Interrupted as Interrupted,
        graceful_stop as graceful_stop,
        ignore_signals as ignore_signals,
        outlive_repeated_signals as outlive_repeated_signals,
    )
    from longshift.training.model_file import ModelFile as ModelFile, read_model_file as read_model_file
    from longshift.training.resolve_run import (
        OpenDataset as OpenDataset,
        ResolvedRun as ResolvedRun,
        require_version as require_version,
        resolve as resolve,
    )
    from longshift.training.run_config import (
        SMALL_IMAGE as SMALL_IMAGE,
        RunConfig as RunConfig,
        Runtime as Runtime,
        expected_and_got as expected_and_got,
        parse_run_config as parse_run_config,
        parse_runtime as parse_runtime,
    )
    from longshift.training.run_folder import (
        RunFolder as RunFolder,
        read_config as read_config,
        read_metrics as read_metrics,
        read_predictions as read_predictions,
        read_result as read_result,
        write_result as write_result,
    )
    from longshift.training.score_sets import (
        SETS as SETS,
        Evaluator as Evaluator,
        calibration_scores as calibration_scores,
        evaluate_set as evaluate_set,
    )
    from longshift.training.step_timer import StepTimer as StepTimer, Stopwatch as Stopwatch
    from longshift.training.task import (
        Task as Task,
        TaskCache as TaskCache,
        inputs_key as inputs_key,
        make_task as make_task,
        open_inputs as open_inputs,
    )
    from longshift.training.trackers import (
        TrackerKind as TrackerKind,
        open_tracker as open_tracker,
        tracker_kind as tracker_kind,
    )
    from longshift.training.train_run import TrainedRun as TrainedRun, train as train
    from longshift.training.trainer import Trainer as Trainer

__all__, __getattr__, __dir__ = lazy_exports(__name__)
