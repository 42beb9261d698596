# Used by the other packages of longshift; not public.
from . import benchmarks as benchmarks
from .benchmarks import (
    Benchmark as Benchmark,
    all_benchmarks as all_benchmarks,
    get_benchmark as get_benchmark,
    register_benchmark as register_benchmark,
)
from .digits import DIGITS as DIGITS, EMBEDDED as EMBEDDED, PACS_FEATURES as PACS_FEATURES
from .folder_layout import (
    IMAGE_SUFFIXES as IMAGE_SUFFIXES,
    is_hidden as is_hidden,
    is_image as is_image,
    is_other_format as is_other_format,
    looks_like_split as looks_like_split,
    no_shared_class as no_shared_class,
)
from .folders import list_folder as list_folder
from .image_cache import Store as Store, open_store as open_store
from .image_tables import HUB as HUB, ImageSamples as ImageSamples, keep_images as keep_images
from .images import (
    MOST_BYTES as MOST_BYTES,
    PLAIN as PLAIN,
    BadImage as BadImage,
    Preprocessing as Preprocessing,
    decode as decode,
    fitting_size as fitting_size,
    open_source as open_source,
    read_pixels as read_pixels,
    resize as resize,
    typical_side as typical_side,
)
from .manifest import Manifest as Manifest, Row as Row
from .parallel import cores as cores, ordered_map as ordered_map
from .readers import (
    load_dataset as load_dataset,
    missing_path as missing_path,
    register_reader as register_reader,
    require_dataset as require_dataset,
)
from .samples import (
    SampleReader as SampleReader,
    is_dataset as is_dataset,
    list_samples as list_samples,
    sample_file as sample_file,
    sample_names as sample_names,
    split_sample as split_sample,
)
from .tables import find_values as find_values, read_parquet as read_parquet, split_choices as split_choices
from .vectors import (
    SOURCE_ARRAY as SOURCE_ARRAY,
    SOURCE_METADATA as SOURCE_METADATA,
    VectorSource as VectorSource,
    holds_vectors as holds_vectors,
    ordered_vectors as ordered_vectors,
    read_unlabeled as read_unlabeled,
    read_vector_source as read_vector_source,
    vector_file as vector_file,
)
from .verification import DataProblem as DataProblem, layout_problems as layout_problems, verify as verify
from .version import (
    DataChanged as DataChanged,
    cache_folder as cache_folder,
    content_hashes as content_hashes,
    data_version as data_version,
    find_copies as find_copies,
    short_version as short_version,
    what_changed as what_changed,
)

__all__ = [
    "BadImage",
    "Benchmark",
    "DataProblem",
    "Manifest",
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
