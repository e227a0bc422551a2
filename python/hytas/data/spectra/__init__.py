"""Tables of spectra: labelled samples that are no pixels of a map.

A table is a CSV or Parquet file with a label column; or an array (N, bands), or series
(N, dates, bands), with N labels. Rows may belong to groups, such as the fields that they were
measured in. No group lies on two sides of a split.
"""

from hytas.data.spectra.columns import SUFFIXES, describe_columns
from hytas.data.spectra.load import is_table, load_spectra, read_rows
from hytas.data.spectra.table import Spectra, as_spectra

__all__ = [
    "SUFFIXES",
    "Spectra",
    "as_spectra",
    "describe_columns",
    "is_table",
    "load_spectra",
    "read_rows",
]
