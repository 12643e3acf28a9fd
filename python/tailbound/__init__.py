# SPDX-License-Identifier: MIT OR Apache-2.0
"""Reads the run files of tailbound and libtailbound.

>>> import tailbound
>>> run = tailbound.read("run.tailbound.jsonl")   # doctest: +SKIP
>>> run.histogram()                               # doctest: +SKIP

`read` gives a `Run`; `bucket_bounds` and `bucket_index` are the histogram's layout.
"""

from .h2 import bucket_bounds, bucket_index
from .run import Run, RunFileError, read

__all__ = ["Run", "RunFileError", "bucket_bounds", "bucket_index", "read"]
__version__ = "0.2.0"
