"""Tables of spectra: labelled samples that are no pixels of a map.

A table is a CSV or Parquet file with a label column; or an array (N, bands), or series
(N, dates, bands), with N labels. Rows may belong to groups, such as the fields that they were
measured in. No group lies on two sides of a split.
"""
