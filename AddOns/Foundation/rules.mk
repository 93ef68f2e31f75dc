# SPDX-License-Identifier: Apache-2.0
#
# The overlay with Foundation's types, and both loops on one thread, in Swift: SwiftPM builds and tests it (make check-swift).

### bench-foundation what it costs that the loops of both, this package's and Foundation's, serve each other's items

BENCHMARKS += foundation
bench-foundation = $(call bench_in_swift,bench-foundation)
