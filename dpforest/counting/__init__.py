"""Stateless integer counting: binned columns in, integer histograms out.

Every query is a sum over records: of ones by class, or of the row that a public table has for the record's label
(the moments of a target on a public grid are such sums).  So the answers for two tables of records add up to the
answer for both, and the same query can be answered by threads, by files larger than memory or by a cluster: count
each block of rows, add the integers.  Nothing is kept per record between calls, nothing is random, and the same
integers come out of either kernel with any number of threads.

Two kernels answer the queries on binary candidates.  The *row* kernel (:mod:`~dpforest.counting.rows`) walks each
record down each tree and makes one increment; its cost grows with the depth.  The *bit* kernel
(:mod:`~dpforest.counting.bits`) ANDs bitmaps of 64 records per word and counts ones; its cost grows with the number
of nodes, candidates and classes (or binary digits of the table), but a unit of it is some 200 times cheaper.
:func:`costs` estimates both, and ``kernel="auto"`` takes the cheaper.  Values of released trees
that split on few features have a third: the *cell* kernel (:mod:`~dpforest.counting.cell_values`) looks the leaf of
each record up in a table.

Records
-------
``codes`` is uint8, C-contiguous, shape (n_features, n_rows): one column after the other, since a count reads few
columns of many rows.  ``labels`` is uint8, shape (n_rows,), each below ``n_classes``, or a row of the table.
``assignment`` says which tree may see each record (integers, shape (n_rows,); a record whose number is no tree's counts
nowhere); None lets every tree see every record.  Arrays may be read-only; none is written to.
"""

from dpforest.counting.cell_weights import count_sizes, cross_sums, group_sums
from dpforest.counting.node_counts import (
    apply,
    candidate_counts,
    candidate_sums,
    costs,
    feature_histograms,
    histogram_bytes,
    leaf_sums,
    node_class_counts,
    node_sums,
    sum_values,
)
from dpforest.counting.products import products
from dpforest.structure.splits import Splits

__all__ = [
    "Splits",
    "apply",
    "candidate_counts",
    "candidate_sums",
    "costs",
    "count_sizes",
    "cross_sums",
    "feature_histograms",
    "group_sums",
    "histogram_bytes",
    "leaf_sums",
    "node_class_counts",
    "node_sums",
    "products",
    "sum_values",
]
