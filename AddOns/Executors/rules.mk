# SPDX-License-Identifier: Apache-2.0
#
# Swift's executors on run loops, in Swift: SwiftPM builds them.

### check-swift-main programs with every kind of main, built in every way, each in a process of its own; MAIN_BUILDS="debug release static tsan foundation executors tsan-executors"
### bench-executors  hops, tasks and sleeps with Swift's own executors, these and, with NIO=PATH, SwiftNIO's; BENCH_ARGUMENTS=ROUNDS

BENCHMARKS += executors
bench-executors = $(Q)$(if $(HAS_SWIFT),$(WITHOUT_CC) AddOns/Executors/Benchmarks/compare-executors $(BENCH_ARGUMENTS),echo "$@: passed over, there is no swift here")

.PHONY: check-swift-main
MAIN_BUILDS ?=
check-swift-main:
	$(Q)$(if $(HAS_SWIFT),AddOns/Executors/Tests/Mains/check-mains $(MAIN_BUILDS),echo "$@: passed over, there is no swift here")
