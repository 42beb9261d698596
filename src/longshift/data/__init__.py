"""What a dataset is: manifests, readers, benchmarks, the embedded datasets, the cache of decoded images."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longshift.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from longshift.data.benchmarks import (
        Benchmark as Benchmark,
        all_benchmarks as all_benchmarks,
        get_benchmark as get_benchmark,
        register_benchmark as register_benchmark,
    )
    from longshift.data.image_cache import Store as Store, open_store as open_store
    from longshift.data.image_decoding import BadImage as BadImage, decode as decode, resize as resize
    from longshift.data.manifest import Manifest as Manifest, Row as Row
    from longshift.data.readers import load_dataset as load_dataset, register_reader as register_reader
    from longshift.data.verification import Problem as Problem, verify as verify

if TYPE_CHECKING:  # shared with the other packages of longshift, not public
    from longshift.data import benchmarks as benchmarks
    from longshift.data.content_version import (
        DataChanged as DataChanged,
        cache_folder as cache_folder,
        data_version as data_version,
        short_version as short_version,
        what_changed as what_changed,
    )
    from longshift.data.copies import find_copies as find_copies
    from longshift.data.embedded import (
        DIGITS as DIGITS,
        EMBEDDED as EMBEDDED,
        PACS_FEATURES as PACS_FEATURES,
        vector_file as vector_file,
    )
    from longshift.data.folder_layout import (
        holds_images as holds_images,
        no_shared_class_warning as no_shared_class_warning,
        split_names_warning as split_names_warning,
    )
    from longshift.data.folder_reader import list_folder as list_folder
    from longshift.data.image_bytes import MOST_BYTES as MOST_BYTES, open_source as open_source
    from longshift.data.image_size import fitting_size as fitting_size, typical_side as typical_side
    from longshift.data.image_suffixes import (
        IMAGE_SUFFIXES as IMAGE_SUFFIXES,
        is_hidden as is_hidden,
        is_image as is_image,
        is_other_format as is_other_format,
    )
    from longshift.data.lost_paths import missing_path as missing_path
    from longshift.data.parallel import cores as cores, ordered_map as ordered_map
    from longshift.data.parquet_file import read_parquet as read_parquet
    from longshift.data.pixels import open_pixels as open_pixels
    from longshift.data.readers import require_dataset as require_dataset
    from longshift.data.vector_source import (
        SOURCE_ARRAY as SOURCE_ARRAY,
        SOURCE_METADATA as SOURCE_METADATA,
        VectorSource as VectorSource,
        read_vector_source as read_vector_source,
    )
    from longshift.data.vectors import (
        holds_vectors as holds_vectors,
        ordered_vectors as ordered_vectors,
        read_unlabeled as read_unlabeled,
    )
    from longshift.data.verification import layout_problems as layout_problems

__all__, __getattr__, __dir__ = lazy_exports(__name__)
