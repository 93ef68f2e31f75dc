# SPDX-License-Identifier: Apache-2.0
#
# The Swift overlay with its add-ons, their tests and programs, which SwiftPM builds. Where there is no Swift toolchain they are passed over.

### check-swift      all of Swift, or SWIFT_PARTS="tests programs mains snippets documents names" of it: the tests (SWIFT_FLAGS="--filter x"), programs
###                  that test a process's first thread or are examples, pieces of the documents and programs that must not compile, programs
###                  of the tutorial and the cookbook, and the page of Foundation's names beside the toolchain's declarations
### asan-swift tsan-swift   the Swift tests under a tool
### soak-requests soak-actors soak-both-loops   10,000 requests with deadlines and deaths, distributed actors of 100 processes, 100,000 random
###                  programs with this package's loop and Foundation's

# SwiftPM compiles C with its own clang unless CC is in the environment.
WITHOUT_CC := env -u CC -u CFLAGS -u LDFLAGS
SWIFT_PARTS ?= tests programs mains snippets documents names

# The examples end by themselves, and their exit status says whether all went well. The programs main-thread* test a process's first thread.
# The queue of swift-jobs goes over machines as well, where nats-server and the bridge are.
SWIFT_PROGRAMS := swift-service swift-sources swift-chat swift-fetch swift-jobs main-thread main-thread-foundation requests actors network secure-streams bridges
swift-tests = $(WITHOUT_CC) swift test $(SWIFT_FLAGS)
swift-programs = $(WITHOUT_CC) swift build -q && SWIFT_JOBS=$$bin/swift-jobs MESSAGEPORT_BRIDGE=$(BRIDGE) \
	scripts/run-programs "programs in Swift" 300 $(SWIFT_PROGRAMS:%=$$bin/%) Examples/swift-jobs/machines
swift-mains = AddOns/Executors/Tests/Mains/check-mains debug
swift-snippets = Tests/Snippets/check-snippets "$$bin"
swift-documents = $(PYTHON) scripts/check-documents --jobs $(TEST_JOBS) --swift "$$bin"
swift-names = AddOns/Foundation/Tests/check-foundation-names "$$bin"

.PHONY: check-swift asan-swift tsan-swift
check-swift: $(if $(HAS_nats),$(BRIDGE))
	$(Q)$(if $(HAS_SWIFT),bin=$$(swift build --show-bin-path) && $(foreach part,$(SWIFT_PARTS),$(swift-$(part)) &&) true,echo "$@: passed over, there is no swift here")

# Each of these runs has a build folder of its own.
SWIFT_TEST = $(WITHOUT_CC) swift test -j $(TEST_JOBS)
asan-swift:
	$(Q)LSAN_OPTIONS=suppressions=$(CURDIR)/Tests/lsan-swift.supp:$$LSAN_OPTIONS $(SWIFT_TEST) --sanitize=address --scratch-path .build/asan --skip Exits $(SWIFT_FLAGS)
	$(Q)ASAN_OPTIONS=detect_leaks=0:$$ASAN_OPTIONS $(SWIFT_TEST) --sanitize=address --scratch-path .build/asan --filter Exits
tsan-swift:
	$(Q)$(if $(HAS_SWIFT),$(SWIFT_TEST) --sanitize=thread -Xswiftc -DCRL_TSAN --scratch-path .build/tsan $(SWIFT_FLAGS),echo "$@: passed over, there is no swift here")

SOAK += requests actors both-loops
swift_soak = $(Q)$(if $(HAS_SWIFT),$(1),echo "$@: passed over, there is no swift here")
soak-requests = $(call swift_soak,$(WITHOUT_CC) swift build -q --product requests && "$$(swift build --show-bin-path)/requests" 10000)
soak-actors = $(call swift_soak,$(WITHOUT_CC) swift build -q --product actors && "$$(swift build --show-bin-path)/actors" 100)
soak-both-loops = $(call swift_soak,CORERUNLOOP_PROGRAMS=1-100000 $(WITHOUT_CC) swift test --filter "Random programs with both")
