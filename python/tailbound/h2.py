# SPDX-License-Identifier: MIT OR Apache-2.0
"""The base-2 log-linear ("H2") bucket layout, exactly as the recorder has it.

For grouping power g, values below 2^(g+1) have a bucket each; above, every power of two is cut
into 2^g equal buckets, so that a bucket is never wider than 2^-g of its value.
"""

RANGE_BITS = 34
"""Values of 2^34 ns (17.2 s) and above share the top bucket."""


def bucket_bounds(index, precision):
    """Lowest value and width of bucket `index` for grouping power `precision`, both ints."""
    if index < 0 or not 1 <= precision <= 16:
        raise ValueError(f"no bucket {index} at precision {precision}")
    if index < 2 << precision:
        return index, 1
    shift = (index >> precision) - 1
    return (index - (shift << precision)) << shift, 1 << shift


def bucket_index(value, precision):
    """The bucket that `value` (an int, 0 or more) falls into."""
    if value < 0 or not 1 <= precision <= 16:
        raise ValueError(f"no bucket for {value} at precision {precision}")
    value = min(value, (1 << RANGE_BITS) - 1)
    shift = (value | 1 << precision).bit_length() - 1 - precision
    return (shift << precision) + (value >> shift)
