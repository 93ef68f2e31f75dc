# SPDX-License-Identifier: Apache-2.0
#
# The Swift overlay, its tests and its programs, which SwiftPM builds. Without a Swift toolchain the targets of `make check` are passed over.

### swift-programs   builds and runs the programs in Swift: examples, services and their clients, the main thread, distributed actors
### swift-snippets   checks that the documentation's pieces of Swift compile, that misuse does not, and that programs written from it run
### foundation-names compares the declarations of the toolchain's Foundation with this package's and with AddOns/Foundation/foundation-names.md
### requests-soak    10,000 requests with deadlines, cancellations and deaths of either side, a part of soak; REQUESTS=10000
### actors-soak      distributed actors of 100 processes, a part of soak; ACTORS_PROCESSES=100
### both-loops-soak  runs random programs with both loops beside a model, a part of soak; BOTH_LOOPS_PROGRAMS=1-100000
### check-swift-release asan-swift tsan-swift   the Swift tests with optimization, or under a tool; SWIFT_FLAGS="--filter x"

# SwiftPM compiles C with its own clang unless CC is in the environment.
WITHOUT_CC := env -u CC -u CFLAGS -u LDFLAGS

.PHONY: check-swift swift-programs swift-snippets foundation-names requests-soak actors-soak both-loops-soak check-swift-release asan-swift tsan-swift
check-swift:
	$(Q)if command -v swift > /dev/null; then $(WITHOUT_CC) swift test $(SWIFT_FLAGS) && $(MAKE) --no-print-directory swift-programs swift-snippets swift-documents foundation-names; \
	else echo "check-swift: skipped, there is no swift here"; fi

swift-snippets:
	$(Q)if command -v swift > /dev/null && command -v $(PYTHON) > /dev/null; then scripts/check-swift-snippets "$$(swift build --show-bin-path)"; \
	else echo "swift-snippets: skipped, there is no swift or no $(PYTHON) here"; fi

foundation-names:
	$(Q)if command -v swift > /dev/null && command -v $(PYTHON) > /dev/null; then scripts/check-foundation-names "$$(swift build --show-bin-path)"; \
	else echo "foundation-names: skipped, there is no swift or no $(PYTHON) here"; fi

# Random programs with items in this package's loop and in Foundation's, beside a model: FIRST-LAST.
BOTH_LOOPS_PROGRAMS ?= 1-100000
both-loops-soak:
	$(Q)if command -v swift > /dev/null; then CORERUNLOOP_PROGRAMS=$(BOTH_LOOPS_PROGRAMS) $(WITHOUT_CC) swift test --filter "Random programs with both"; \
	else echo "both-loops-soak: skipped, there is no swift here"; fi

REQUESTS ?= 10000
requests-soak:
	$(Q)if command -v swift > /dev/null; then $(WITHOUT_CC) swift build -q --product requests && "$$(swift build --show-bin-path)/requests" $(REQUESTS); \
	else echo "requests-soak: skipped, there is no swift here"; fi

ACTORS_PROCESSES ?= 100
actors-soak:
	$(Q)if command -v swift > /dev/null; then $(WITHOUT_CC) swift build -q --product actors && "$$(swift build --show-bin-path)/actors" $(ACTORS_PROCESSES); \
	else echo "actors-soak: skipped, there is no swift here"; fi

# The examples end by themselves, and their exit status says whether all went well. The programs main-thread* test a process's first thread.
# The queue goes over machines as well, where nats-server and the bridge are.
SWIFT_PROGRAMS := swift-service swift-sources swift-chat swift-fetch swift-jobs main-thread main-thread-foundation requests actors network bridges
swift-programs: $(if $(HAS_NATS),$(BRIDGE))
	$(Q)if command -v swift > /dev/null; then \
	    for program in $(SWIFT_PROGRAMS); do $(WITHOUT_CC) swift build -q --product $$program || exit 1; done; \
	    binaries=$$(swift build --show-bin-path) && \
	    SWIFT_JOBS=$$binaries/swift-jobs MESSAGEPORT_BRIDGE=$(BRIDGE) \
	    scripts/run-programs "programs in Swift" 300 $(SWIFT_PROGRAMS:%=$$binaries/%) Examples/swift-jobs/machines; \
	else echo "swift-programs: skipped, there is no swift here"; fi

# Each of these runs has a build folder of its own.
SWIFT_TEST = $(WITHOUT_CC) swift test -j $(TEST_JOBS)
check-swift-release:
	$(Q)$(SWIFT_TEST) -c release --scratch-path .build/release-tests $(SWIFT_FLAGS)
asan-swift:
	$(Q)LSAN_OPTIONS=suppressions=$(CURDIR)/Tests/lsan-swift.supp:$$LSAN_OPTIONS $(SWIFT_TEST) --sanitize=address --scratch-path .build/asan --skip Exits $(SWIFT_FLAGS)
	$(Q)ASAN_OPTIONS=detect_leaks=0:$$ASAN_OPTIONS $(SWIFT_TEST) --sanitize=address --scratch-path .build/asan --filter Exits
tsan-swift:
	$(Q)$(SWIFT_TEST) --sanitize=thread -Xswiftc -DCRL_TSAN --scratch-path .build/tsan $(SWIFT_FLAGS)
