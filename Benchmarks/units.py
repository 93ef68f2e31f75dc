# SPDX-License-Identifier: Apache-2.0
"""Short texts for times and sizes, in tables and pictures."""


def duration(nanoseconds):
    """A short text for a time, such as 250 ns or 1.5 µs."""
    for limit, divisor, unit in ((1e3, 1, "ns"), (1e6, 1e3, "µs"), (1e9, 1e6, "ms")):
        if nanoseconds < limit:
            return "%.3g %s" % (nanoseconds / divisor, unit)
    return "%.3g s" % (nanoseconds / 1e9)


def size_name(size):
    """A short text for a number of bytes, such as 64 KiB."""
    for limit, divisor, name in ((1 << 10, 1, "B"), (1 << 20, 1 << 10, "KiB"), (1 << 30, 1 << 20, "MiB")):
        if size < limit:
            return "%d %s" % (size // divisor, name)
    return str(size)
