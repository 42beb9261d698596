# Used by the other packages of longshift; not public.
from . import benchmarks as benchmarks
from .benchmarks import (
    Benchmark as Benchmark,
    all_benchmarks as all_benchmarks,
    get_benchmark as get_benchmark,
    register_benchmark as register_benchmark,
)
from .content_version import (
    DataChanged as DataChanged,
    cache_folder as cache_folder,
    data_version as data_version,
    short_version as short_version,
    what_changed as what_changed,
)
from .copies import find_copies as find_copies
from .embedded import DIGITS as DIGITS, EMBEDDED as EMBEDDED, PACS_FEATURES as PACS_FEATURES, vector_file as vector_file
from .folder_layout import (
    holds_images as holds_images,
    no_shared_class_warning as no_shared_class_warning,
    split_names_warning as split_names_warning,
)
from .folder_reader import list_folder as list_folder
from .image_bytes import MOST_BYTES as MOST_BYTES, open_source as open_source
from .image_cache import Store as Store, open_store as open_store
from .image_decoding import BadImage as BadImage, decode as decode, resize as resize
from .image_size import fitting_size as fitting_size, typical_side as typical_side
from .image_suffixes import (
    IMAGE_SUFFIXES as IMAGE_SUFFIXES,
    is_hidden as is_hidden,
    is_image as is_image,
    is_other_format as is_other_format,
)
from .lost_paths import missing_path as missing_path
from .manifest import Manifest as Manifest, Row as Row
from .parallel import cores as cores, ordered_map as ordered_map
from .parquet_file import read_parquet as read_parquet
from .pixels import open_pixels as open_pixels
from .readers import (
    load_dataset as load_dataset,
    register_reader as register_reader,
    require_dataset as require_dataset,
)
from .vector_source import (
    SOURCE_ARRAY as SOURCE_ARRAY,
    SOURCE_METADATA as SOURCE_METADATA,
    VectorSource as VectorSource,
    read_vector_source as read_vector_source,
)
from .vectors import (
    holds_vectors as holds_vectors,
    ordered_vectors as ordered_vectors,
    read_unlabeled as read_unlabeled,
)
from .verification import Problem as Problem, layout_problems as layout_problems, verify as verify

__all__ = [
    "BadImage",
    "Benchmark",
    "Manifest",
    "Problem",
    "Row",
    "Store",
    "all_benchmarks",
    "decode",
    "get_benchmark",
    "load_dataset",
    "open_store",
    "register_benchmark",
    "register_reader",
    "resize",
    "verify",
]
