# SPDX-License-Identifier: Apache-2.0
#
# The C library and every check. `make help` lists the daily targets, `make help-all` the others too.
#
# CC, CPPFLAGS, CFLAGS, LDFLAGS, PREFIX, DESTDIR, LIBDIR, INCLUDEDIR, BINDIR and MANDIR may be given; what the library itself needs is added to them.
# What is built lies under build/<compiler>-<flavour>/, and what SwiftPM builds under .build/. FLAVOUR is release, asan, tsan, schedule, ubsan or coverage.

## all            the libraries (the default)
## deps           installs what is missing, by apt
## demo           builds and runs the demonstration
## check          every test; check-c the C library's alone, check-swift the overlay's
## examples       builds every folder of Examples
## lint           layers, comments, symbols, headers, style; format mends the style
## asan tsan ubsan valgrind   the C tests under a tool
## bench          all benchmarks, beside as many other libraries as deps-bench has installed
## docs man       the overlay's documentation, and the man pages, into build
## install uninstall   PREFIX=/usr/local DESTDIR= LIBDIR= INCLUDEDIR= MANDIR=
## clean          removes what was built
## help-all       the other targets: parts of check, tools, fuzzing, models, simulation, soak
##
## CC=clang picks the compiler; CFLAGS, CPPFLAGS and LDFLAGS are added to; V=1 shows the commands.

### Parts of check:
###   check-c        the C tests; TEST_FLAGS="--filter x --verbose", --help for more; LAYERS="Support Runtime" builds only some
###   listings       the guide's listings, as programs
###   check-examples a loop hosted by epoll and by GLib, and the demonstration
###   conformance    traces compared with those of the Swift toolchain's Core Foundation
###   check-symbols  what the library exports, against the headers and corerunloop.symbols
###   check-plain    libCoreFoundation.so through Python's ctypes
###   check-headers  each public header alone, C89 to C23 and C++
###   check-install  a staged installation, and programs built against it
###   check-swift    the Swift import and the overlay, Foundation in the same process, the programs in Swift
###   check-tool     the command messageport
###   check-rules    which rules the tests cover
###   check-faults   docs/faults.md against the tests
### Beyond check:
### deps-integration deps-bench deps-architecture   what those targets need besides
### integration    programs of others with real servers: Redis, PostgreSQL, D-Bus, ZeroMQ, HTTP by libcurl; after deps-integration
### swift-programs builds and runs the examples in Swift: a service, its client, a signal
### check-swift-release asan-swift tsan-swift   the Swift tests with optimization, or under a tool; SWIFT_FLAGS="--filter x"
### check-swift-package   a package that depends on this one, linked dynamically, with a static Swift library, and all static
### coverage       what the C tests run of each file of Sources/CCoreRunLoop: with clang lines, branches and conditions, with gcc lines; COVERAGE_MIN=90
### soak           for hours, each part with its time: soak-stress soak-failures model-soak sim-soak schedule-soak; SOAK_PARTS picks some
### check-architecture   ARCHITECTURE=arm64 the C tests on another architecture, emulated; also armhf, i386, s390x; after deps-architecture
### bench-loop     the loop beside libuv, libev, libevent, GLib, sd-event, libdispatch and the toolchain's; BENCH_ARGUMENTS=--help
### bench-messages message ports beside sockets, ZeroMQ, nng and D-Bus
### bench-swift    the overlay beside the C calls under it, and hops between executors
### bench-check    system calls and instructions of one operation against Benchmarks/baseline.tsv; bench-baseline writes it
### symbols        writes corerunloop.symbols, Support/link_names.h and the names for Swift's importer anew

.PHONY: all
all:

.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

ifeq ($(origin CC),default)
CC := $(if $(shell command -v gcc 2>/dev/null),gcc,clang)
endif
FLAVOUR ?= release
COMPILER := $(notdir $(firstword $(filter-out ccache,$(CC))))
B := build/$(COMPILER)-$(FLAVOUR)
IS_CLANG := $(if $(shell $(CC) --version 2>/dev/null | grep -i clang),yes)

PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
MANDIR ?= $(PREFIX)/share/man
BINDIR ?= $(PREFIX)/bin
COMPLETIONDIR ?= $(PREFIX)/share/bash-completion/completions
CFLAGS ?= -O2 -g
# A warning stops the build in CI, where the compilers are known; a newer compiler's new warning should not stop who only wants the library.
WERROR ?= $(if $(CI),-Werror)
TEST_JOBS ?= 2
TEST_FLAGS ?=
VERSION := $(shell sed -n 's/^\#define CRL_VERSION_STRING "\(.*\)"/\1/p' Headers/CRLRunLoop.h 2>/dev/null)
VERSION := $(or $(VERSION),0.1.0)
SOVERSION := 0

COMMA := ,

# LAYERS limits the sources and the tests to some layers, for working on one while another does not compile: make check-c LAYERS="Support Runtime".
LAYERS ?= Support Runtime Kernel Loop Descriptor Port
SOURCES := $(sort $(wildcard $(LAYERS:%=Sources/CCoreRunLoop/%/*.c)))
TESTS := $(sort $(wildcard Tests/CTests/*.c $(LAYERS:%=Tests/CTests/%/*.c)))
# The tests of the n-th failure need all layers, and see the runner's allocations before the C library does.
ifneq ($(filter Port,$(LAYERS)),)
TESTS += $(sort $(wildcard Tests/CTests/Failure/*.c))
RUNNER_LDFLAGS := $(patsubst %,-Wl$(COMMA)--wrap=%,malloc calloc realloc aligned_alloc free)
endif
HEADERS := $(sort $(wildcard Headers/*.h Headers/*/*.h))

WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes $(WERROR)
WARNINGS_OF_PROGRAMS := -Wall -Wextra $(WERROR)
INCLUDES := -IHeaders -ISources/CCoreRunLoop
# Files beyond 2 GB where the machine's words have 32 bits; exceptions of callbacks pass also where C is not unwound by itself.
OWN_CFLAGS := -std=gnu11 -D_FILE_OFFSET_BITS=64 -fexceptions -fPIC -fvisibility=hidden -pthread $(WARNINGS) $(INCLUDES)
OWN_LDFLAGS := -pthread -Wl,--as-needed
# The library needs no libm, whose loading would be a tenth of a small program's start; the tests do.
LIBRARY_LIBS := -lbsd
LIBS := $(LIBRARY_LIBS) -lm

# What a flavour adds.
FLAGS_release :=
FLAGS_asan := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
FLAGS_ubsan := -fsanitize=undefined,float-cast-overflow -fno-sanitize-recover=all
FLAGS_tsan := -fsanitize=thread
FLAGS_schedule := $(FLAGS_tsan)
# gcc's own fork for coverage would forget what ran in the fork's handlers.
FLAGS_coverage := $(if $(IS_CLANG),-fprofile-instr-generate -fcoverage-mapping,--coverage -fprofile-update=atomic -fno-builtin-fork)
FLAVOUR_FLAGS := $(FLAGS_$(FLAVOUR))
# The clang of a Swift toolchain needs that toolchain's libdispatch for its thread sanitizer.
ifneq ($(filter tsan-yes schedule-yes,$(FLAVOUR)-$(IS_CLANG)),)
SWIFT_LIBRARIES := $(wildcard $(dir $(realpath $(shell command -v $(firstword $(CC)))))../lib/swift/linux)
TEST_LIBS += $(if $(SWIFT_LIBRARIES),-L$(SWIFT_LIBRARIES) -Wl$(COMMA)-rpath$(COMMA)$(SWIFT_LIBRARIES) -ldispatch -lBlocksRuntime)
endif
# It has a runtime for blocks, too, and libdispatch: then the calls that take blocks are covered, and what is done for dispatch queues.
ifeq ($(FLAVOUR)-$(IS_CLANG),coverage-yes)
SWIFT_LIBRARIES := $(wildcard $(dir $(realpath $(shell command -v $(firstword $(CC)))))../lib/swift/linux)
FLAVOUR_FLAGS += $(if $(SWIFT_LIBRARIES),-fblocks)
TEST_LIBS += $(if $(SWIFT_LIBRARIES),-L$(SWIFT_LIBRARIES) -Wl$(COMMA)-rpath$(COMMA)$(SWIFT_LIBRARIES) -lBlocksRuntime \
	-Wl$(COMMA)--no-as-needed -ldispatch -Wl$(COMMA)--as-needed)
endif
ifneq ($(filter asan tsan schedule ubsan,$(FLAVOUR)),)
FLAVOUR_FLAGS += -O1 -g
endif
ifeq ($(FLAVOUR),coverage)
FLAVOUR_FLAGS += -O0 -g $(if $(IS_CLANG),$(shell $(CC) -fprofile-instr-generate -fcoverage-mapping -fcoverage-mcdc -E -x c /dev/null > /dev/null 2>&1 && echo -fcoverage-mcdc))
# Forked children that end by _exit or a signal count too: harness.c writes their coverage first.
TEST_LIBS += -Wl,--wrap=_exit $(if $(IS_CLANG),,-Wl$(COMMA)-u$(COMMA)__gcov_dump)
endif

# V=1 shows the commands.
Q := $(if $(V),,@)
SAY = $(if $(V),@:,@printf '  %-5s %s\n')

COMPILE = $(CC) $(CPPFLAGS) $(OWN_CFLAGS) $(CFLAGS) $(FLAVOUR_FLAGS) -MMD -MP -c
LINK = $(CC) $(CFLAGS) $(FLAVOUR_FLAGS) $(LDFLAGS) $(OWN_LDFLAGS)

LIBRARY_OBJECTS := $(SOURCES:Sources/CCoreRunLoop/%.c=$(B)/library/%.o)
TESTING_OBJECTS := $(SOURCES:Sources/CCoreRunLoop/%.c=$(B)/testing/%.o)
TEST_OBJECTS := $(TESTS:Tests/CTests/%.c=$(B)/tests/%.o)
SHARED := $(B)/libcorerunloop.so.$(SOVERSION)
STATIC := $(B)/libcorerunloop.a
PLAIN := $(B)/plain/libCoreFoundation.so
TOOL := $(B)/messageport
RUNNER := $(B)/run-tests
# A compiler for another architecture brings tools of its name.
TOOLS := $(if $(filter %-gcc,$(COMPILER)),$(COMPILER:%gcc=%))
OBJCOPY ?= $(TOOLS)objcopy
ifeq ($(origin AR),default)
AR := $(TOOLS)ar
endif
PYTHON ?= python3

all: $(SHARED) $(B)/libcorerunloop.so $(STATIC) $(PLAIN) $(TOOL)

# --- The library ---

# Rebuilds when the flags change, as well as when a source does.
FLAGS_NOW := $(CC) $(CPPFLAGS) $(OWN_CFLAGS) $(CFLAGS) $(FLAVOUR_FLAGS) $(LDFLAGS) $(TEST_LIBS)
$(B)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(FLAGS_NOW)' | cmp -s - $@ || echo '$(FLAGS_NOW)' > $@
# Links anew when there is one source less, too.
SOURCES_NOW := $(SOURCES) $(TESTS)
$(B)/sources: FORCE
	@mkdir -p $(@D)
	@echo '$(SOURCES_NOW)' | cmp -s - $@ || echo '$(SOURCES_NOW)' > $@
.PHONY: FORCE
FORCE:

$(B)/library/%.o: Sources/CCoreRunLoop/%.c $(B)/flags
	@mkdir -p $(@D)
	$(SAY) CC $<
	$(Q)$(COMPILE) -o $@ $<

$(B)/testing/%.o: Sources/CCoreRunLoop/%.c $(B)/flags
	@mkdir -p $(@D)
	$(SAY) CC $<
	$(Q)$(COMPILE) -DCRL_TESTING -o $@ $<

$(B)/tests/%.o: Tests/CTests/%.c $(B)/flags
	@mkdir -p $(@D)
	$(SAY) CC $<
	$(Q)$(COMPILE) -DCRL_TESTING -ITests/CTests -o $@ $<

# -z nodelete: threads and loops outlive any dlclose. -Bsymbolic-functions: calls inside the library stay inside it.
$(SHARED): $(LIBRARY_OBJECTS) $(B)/sources
	$(SAY) LINK $@
	$(Q)$(LINK) -shared -Wl,-soname,$(@F) -Wl,-z,nodelete -Wl,-z,defs -Wl,-Bsymbolic-functions -o $@ $(LIBRARY_OBJECTS) $(LIBRARY_LIBS)

$(B)/libcorerunloop.so: $(SHARED)
	$(Q)ln -sf $(<F) $@

# One object that holds all, in which what only the library's own files share is local: a program's own `kernel` does not meet ours.
$(B)/whole.o: $(LIBRARY_OBJECTS) $(B)/sources
	$(SAY) LD $@
	$(Q)$(CC) $(CFLAGS) -r -nostdlib -o $@ $(LIBRARY_OBJECTS)

$(STATIC): $(B)/whole.o
	$(SAY) AR $@
	$(Q)$(OBJCOPY) --localize-hidden $< $(B)/corerunloop.o
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $(B)/corerunloop.o

# The same object with Apple's plain names, for dlopen and foreign function interfaces; never to be loaded beside Foundation (docs/symbols.md).
.PHONY: plain
plain: $(PLAIN)
$(B)/plain/names: corerunloop.symbols
	@mkdir -p $(@D)
	$(Q)sed -n 's/^crl_\(.*\)/& \1/p' $< > $@

$(B)/plain/whole.o: $(B)/whole.o $(B)/plain/names
	$(Q)$(OBJCOPY) --redefine-syms=$(B)/plain/names $< $@

$(PLAIN): $(B)/plain/whole.o
	$(SAY) LINK $@
	$(Q)$(LINK) -shared -Wl,-soname,$(@F) -Wl,-z,nodelete -Wl,-z,defs -Wl,-Bsymbolic -o $@ $< $(LIBRARY_LIBS)

# The tool has the library in it: it looks into the directory of names, which is no public interface.
$(TOOL): $(wildcard Sources/messageport/*.[ch]) $(B)/whole.o
	$(SAY) CC $@
	$(Q)$(CC) $(CPPFLAGS) $(OWN_CFLAGS) $(CFLAGS) $(FLAVOUR_FLAGS) $(LDFLAGS) -o $@ $(filter %.c,$^) $(B)/whole.o $(OWN_LDFLAGS) $(LIBS) $(TEST_LIBS)

# --- Tests ---

.PHONY: check check-c check-symbols check-swift check-plain check-headers check-install check-rules check-tool listings conformance runner
# Swift comes last and alone: SwiftPM plans again when a file under the root comes or goes.
check: check-c check-symbols listings check-examples conformance check-plain check-headers check-install check-tool
	@$(MAKE) --no-print-directory check-swift
	@$(MAKE) --no-print-directory check-rules
	@echo "make check: passed with $(CC)"

$(RUNNER): $(TESTING_OBJECTS) $(TEST_OBJECTS) $(B)/flags $(B)/sources
	$(SAY) LINK $@
	$(Q)$(LINK) $(RUNNER_LDFLAGS) -o $@ $(filter %.o,$^) $(LIBS) $(TEST_LIBS)

runner: $(RUNNER)
check-c: $(RUNNER)
	$(Q)$(RUNNER) --jobs $(TEST_JOBS) $(TEST_FLAGS)

.PHONY: check-architecture
check-architecture:
	$(Q)MAKE="$(MAKE)" TEST_JOBS=$(TEST_JOBS) TEST_FLAGS="$(TEST_FLAGS)" scripts/check-architecture "$(ARCHITECTURE)"

# One part after the other, for some measure: the stress tests and the n-th failure in full, and the parts below. 100 schedules take longest.
SOAK_PARTS ?= soak-stress soak-failures model-soak sim-soak schedule-soak
.PHONY: soak soak-stress soak-failures
soak:
	$(Q)for part in $(SOAK_PARTS); do start=$$(date +%s); $(MAKE) --no-print-directory $$part || { echo "soak: $$part failed"; exit 1; }; \
	echo "soak: $$part: passed in $$(($$(date +%s) - start)) s"; done
soak-stress: $(RUNNER)
	$(Q)$(RUNNER) --soak --filter stress_ --jobs 1
soak-failures: $(RUNNER)
	$(Q)$(RUNNER) --soak --filter nth_failure_ --jobs $(TEST_JOBS)

# A listing is a program of its own, built as a user would build it: by its name, with Apple's include lines.
LISTINGS := $(patsubst Tests/Listings/%.c,$(B)/listings/%,$(wildcard Tests/Listings/*.c))
$(B)/listings/%: Tests/Listings/%.c $(STATIC)
	@mkdir -p $(@D)
	$(SAY) CC $<
	$(Q)$(CC) $(CPPFLAGS) -std=gnu11 -pthread $(WARNINGS_OF_PROGRAMS) -IHeaders $(CFLAGS) $(FLAVOUR_FLAGS) -MMD -MP $(LDFLAGS) -o $@ $< $(STATIC) $(OWN_LDFLAGS) $(LIBS)

listings: $(LISTINGS)
	$(Q)scripts/run-programs "listings ($(COMPILER))" 300 $(LISTINGS)

# Builds its two programs by itself: one against the Swift toolchain's Core Foundation, where there is one, and one against this library.
conformance: $(STATIC)
	$(Q)CC="$(CC)" Tests/Conformance/run --library $(STATIC) --build $(B)/conformance --jobs $(TEST_JOBS)

check-symbols: $(SHARED) $(B)/whole.o
	$(Q)scripts/check-symbols $(SHARED)
	$(Q)scripts/check-link-names $(B)/whole.o

check-plain: $(PLAIN)
	$(Q)scripts/check-symbols --plain $(PLAIN)
	$(Q)$(PYTHON) Tests/PlainNames/test_plain_names.py $(PLAIN)

check-tool: $(TOOL)
	$(Q)Tests/Tool/test_messageport $(TOOL)

check-headers:
	$(Q)scripts/check-headers

check-install: all
	$(Q)MAKE="$(MAKE)" CC="$(CC)" FLAVOUR="$(FLAVOUR)" scripts/check-install

check-rules: $(RUNNER)
	$(Q)scripts/check-rules $(RUNNER)

# What the overlay costs over C, what a hop to a loop's executor costs, and what is allocated.
.PHONY: bench-swift
bench-swift:
	$(Q)env -u CC -u CFLAGS -u LDFLAGS swift build -c release -j $(TEST_JOBS) --scratch-path .build/release-bench --product bench-swift
	$(Q)$$(swift build -c release --scratch-path .build/release-bench --show-bin-path)/bench-swift

# A package that depends on this one, linked in three ways; prints what is left to load and how large the programs are.
.PHONY: check-swift-package docs
check-swift-package:
	$(Q)JOBS=$(TEST_JOBS) scripts/check-swift-package

docs:
	$(Q)scripts/make-docs

# SwiftPM builds C with its own clang, but for a CC in the environment.
check-swift:
	$(Q)if command -v swift > /dev/null; then env -u CC -u CFLAGS -u LDFLAGS swift test $(SWIFT_FLAGS) && $(MAKE) --no-print-directory swift-programs swift-snippets; \
	else echo "check-swift: skipped, there is no swift here"; fi

# The documentation's pieces of Swift compile, and misuse does not.
.PHONY: swift-snippets
swift-snippets:
	$(Q)if command -v swift > /dev/null && command -v $(PYTHON) > /dev/null; then scripts/check-swift-snippets "$$(swift build --show-bin-path)"; \
	else echo "swift-snippets: skipped, there is no swift or no $(PYTHON) here"; fi

# The examples in Swift, which end by themselves and know whether all went well, and what needs a process's first thread.
.PHONY: swift-programs
swift-programs:
	$(Q)if command -v swift > /dev/null; then \
	    for program in swift-service swift-sources main-thread main-thread-foundation; do env -u CC -u CFLAGS -u LDFLAGS swift build -q --product $$program || exit 1; done; \
	    binaries=$$(swift build --show-bin-path) && scripts/run-programs "programs in Swift" 300 $$binaries/swift-service $$binaries/swift-sources $$binaries/main-thread \
	    $$binaries/main-thread-foundation; \
	else echo "swift-programs: skipped, there is no swift here"; fi

# The same with optimization and under tools, each in a build folder of its own.
.PHONY: check-swift-release asan-swift tsan-swift
SWIFT_TEST = env -u CC -u CFLAGS -u LDFLAGS swift test -j $(TEST_JOBS)
check-swift-release:
	$(Q)$(SWIFT_TEST) -c release --scratch-path .build/release-tests $(SWIFT_FLAGS)
asan-swift:
	$(Q)LSAN_OPTIONS=suppressions=$(CURDIR)/Tests/lsan-swift.supp:$$LSAN_OPTIONS $(SWIFT_TEST) --sanitize=address --scratch-path .build/asan --skip Exits $(SWIFT_FLAGS)
	$(Q)ASAN_OPTIONS=detect_leaks=0:$$ASAN_OPTIONS $(SWIFT_TEST) --sanitize=address --scratch-path .build/asan --filter Exits
tsan-swift:
	$(Q)$(SWIFT_TEST) --sanitize=thread --scratch-path .build/tsan $(SWIFT_FLAGS)

# --- The same tests under tools ---

.PHONY: asan tsan ubsan valgrind coverage
asan:
	$(Q)ASAN_OPTIONS=detect_stack_use_after_return=1:$$ASAN_OPTIONS $(MAKE) --no-print-directory check-c FLAVOUR=asan
ubsan:
	$(Q)UBSAN_OPTIONS=print_stacktrace=1:$$UBSAN_OPTIONS $(MAKE) --no-print-directory check-c FLAVOUR=ubsan
tsan:
	$(Q)TSAN_OPTIONS=second_deadlock_stack=1:$$TSAN_OPTIONS $(MAKE) --no-print-directory check-c FLAVOUR=tsan

VALGRIND ?= valgrind -q --error-exitcode=9 --leak-check=full --show-leak-kinds=definite,indirect --errors-for-leak-kinds=definite,indirect
# Tests of the harness run its binary again, which valgrind does not follow; the n-th failure makes thousands of processes, which is
# AddressSanitizer's to watch. Some versions report each system call they do not know (441 is
# epoll_pwait2; the library then uses epoll_wait), which is left out. Where descriptors run out, valgrind itself takes the connection off the
# queue, closes it and answers EMFILE, so the test in which it comes back waits for one that is gone; and it keeps a lowered limit to itself,
# so descriptors that come with a message arrive all the same. In a child it has its log under the first number that is free, which the test
# finds that wants the standard streams' numbers left free.
valgrind: $(RUNNER)
	$(Q)rm -rf $(B)/valgrind && mkdir -p $(B)/valgrind
	$(Q)$(VALGRIND) --log-file=$(B)/valgrind/%p $(RUNNER) --time-factor 30 --jobs $(TEST_JOBS) --exclude test_harness --exclude nth_failure --exclude descriptors_that_really_run_out --exclude a_receiver_without_descriptors --exclude ports_stay_off_the_standard_streams $(TEST_FLAGS) || \
	{ cat $(B)/valgrind/* | grep -vE '^--[0-9]+-- (WARNING: unhandled|You may|Read the|Nevertheless|it at http)'; exit 1; }

# Left out: what forbids files to grow or limits memory hits the counters' own in forked children; with gcc, so does failing each call in turn.
COVERAGE_MIN ?= 90
coverage:
	$(Q)rm -rf build/$(COMPILER)-coverage/profiles && find build/$(COMPILER)-coverage -name '*.gcda' -delete 2> /dev/null || true
	$(Q)export LLVM_PROFILE_FILE=build/$(COMPILER)-coverage/profiles/%4m.profraw; $(MAKE) --no-print-directory check-c FLAVOUR=coverage \
	TEST_FLAGS='$(TEST_FLAGS) --exclude nth_failure --exclude the_limit_on_files --exclude memory_that_runs_out --exclude stress_a_receiver_killed' && \
	{ [ -z "$(IS_CLANG)" ] || build/$(COMPILER)-coverage/run-tests --jobs $(TEST_JOBS) --filter nth_failure --time-factor 4; }; \
	passed=$$?; scripts/coverage build/$(COMPILER)-coverage '$(COVERAGE_MIN)' && exit $$passed

### failure-sites  each place that calls the kernel or the allocator and may be refused has failed once; needs clang and addr2line
# Not optimized, so that a call stands in its own line; what libdispatch is needed for is reached where the toolchain has it.
.PHONY: failure-sites
failure-sites:
	$(Q)$(MAKE) --no-print-directory runner CC=clang FLAVOUR=coverage
	$(Q)rm -f build/clang-coverage/failed_calls
	$(Q)LLVM_PROFILE_FILE=/dev/null NTH_FAILURE_SITES=build/clang-coverage/failed_calls \
	build/clang-coverage/run-tests --jobs $(TEST_JOBS) --filter nth_failure > build/clang-coverage/nth_failure.log || \
	{ grep -A 8 '^not ok' build/clang-coverage/nth_failure.log; exit 1; }
	$(Q)scripts/failure-sites build/clang-coverage build/clang-coverage/failed_calls

# --- Programs ---

.PHONY: demo run-demo examples bench bench-loop
DEMO_SOURCES := $(wildcard Examples/demo.c Examples/demo/*.c)
$(B)/demo: $(DEMO_SOURCES) $(wildcard Examples/demo/*.h) $(STATIC)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -std=gnu11 -pthread $(WARNINGS_OF_PROGRAMS) -IHeaders $(CFLAGS) $(FLAVOUR_FLAGS) $(LDFLAGS) -o $@ $(DEMO_SOURCES) $(STATIC) $(OWN_LDFLAGS) $(LIBS)

# Looks for a compiler again after deps may have brought one.
demo:
	@scripts/deps build
	@$(MAKE) --no-print-directory run-demo
run-demo: $(B)/demo
	@$(B)/demo $(DEMO_ARGUMENTS)

# Examples/NAME/packages names what pkg-config must know for it; where it does not, the example is passed over.
packages_of = $(shell cat Examples/$(1)/packages 2> /dev/null)
flags_of = $(if $(call packages_of,$(1)),$(shell pkg-config $(2) $(call packages_of,$(1))))
EXAMPLE_NAMES := $(patsubst Examples/%/,%,$(sort $(dir $(wildcard Examples/*/*.c))))
EXAMPLES_LEFT_OUT := $(foreach name,$(EXAMPLE_NAMES),$(if $(call packages_of,$(name)),$(if $(shell pkg-config --exists $(call packages_of,$(name)) && echo yes),,$(name))))
EXAMPLES := $(patsubst %,$(B)/examples/%,$(filter-out $(EXAMPLES_LEFT_OUT),$(EXAMPLE_NAMES)))
examples: $(EXAMPLES)
	$(Q)$(foreach name,$(EXAMPLES_LEFT_OUT),echo "examples: $(name) passed over, there is no $(call packages_of,$(name)) here (make deps-integration)";)
.SECONDEXPANSION:
$(B)/examples/%: $$(wildcard Examples/$$*/*.[ch]) $(STATIC)
	@mkdir -p $(@D)
	$(SAY) CC $@
	$(Q)$(CC) $(CPPFLAGS) -std=gnu11 -pthread $(WARNINGS_OF_PROGRAMS) -IHeaders $(call flags_of,$*,--cflags) $(CFLAGS) $(FLAVOUR_FLAGS) $(LDFLAGS) -o $@ $(filter %.c,$^) $(STATIC) $(OWN_LDFLAGS) $(LIBS) $(call flags_of,$*,--libs)

# The examples that end by themselves and know whether all went well.
.PHONY: check-examples
check-examples: examples
	$(Q)scripts/run-programs "examples ($(COMPILER))" 300 $(filter %-host,$(EXAMPLES)) $(B)/examples/demo

# The examples that talk to programs of others, each with a real server of its own on loopback or a Unix socket (make deps-integration).
.PHONY: integration
integration: examples
	$(Q)INTEGRATION_PROGRAMS=$(B)/examples PYTHONDONTWRITEBYTECODE=1 scripts/run-programs "integration ($(COMPILER))" 180 $(sort $(wildcard Tests/Integration/test_*.py))

# One after the other, each alone on the machine.
bench:
	$(Q)$(MAKE) --no-print-directory bench-loop
	$(Q)$(MAKE) --no-print-directory bench-messages
	$(Q)if command -v swift > /dev/null; then $(MAKE) --no-print-directory bench-swift; else echo "bench-swift: skipped, there is no swift here"; fi

# Builds its programs by itself, for this library and for each peer that is here (make deps-bench). Tables and pictures go to docs/performance
# if all cases ran.
bench-loop: $(SHARED) $(B)/libcorerunloop.so
	$(Q)CC="$(CC)" PYTHONDONTWRITEBYTECODE=1 Benchmarks/run --library $(B)/libcorerunloop.so --build $(B)/bench --publish docs/performance $(BENCH_ARGUMENTS)

# Calls and instructions of one operation, which do not depend on the clock, against the committed baseline. Needs valgrind and strace.
BASELINE := Benchmarks/baseline.tsv
.PHONY: bench-check bench-baseline
bench-check: $(SHARED) $(B)/libcorerunloop.so
	$(Q)CC="$(CC)" PYTHONDONTWRITEBYTECODE=1 Benchmarks/run --library $(B)/libcorerunloop.so --build $(B)/bench-check --baseline $(BASELINE)
bench-baseline: $(SHARED) $(B)/libcorerunloop.so
	$(Q)CC="$(CC)" PYTHONDONTWRITEBYTECODE=1 Benchmarks/run --library $(B)/libcorerunloop.so --build $(B)/bench-check --baseline $(BASELINE) --update

# Message ports beside other ways to send a request, as many as are here (make deps-bench).
.PHONY: bench-messages
bench-messages: $(STATIC)
	$(Q)CC="$(CC)" PYTHONDONTWRITEBYTECODE=1 Benchmarks/messages/run --library $(STATIC) --build $(B)/bench --publish docs/performance $(BENCH_ARGUMENTS)

# --- Lint, docs ---

.PHONY: lint symbols man
lint: $(SHARED) $(PLAIN) $(B)/whole.o
	$(Q)scripts/check-includes
	$(Q)scripts/check-style
	$(Q)scripts/check-docs
	$(Q)scripts/check-symbols $(SHARED)
	$(Q)scripts/check-symbols --plain $(PLAIN)
	$(Q)scripts/check-link-names $(B)/whole.o
	$(Q)scripts/check-swift-names
	$(Q)scripts/check-headers
	$(Q)if command -v shellcheck > /dev/null; then shellcheck .ci/run $$(grep -lE '^#!/bin/(ba)?sh|^#!/usr/bin/env bash' scripts/*); \
	else echo "lint: shellcheck is not installed, passed over"; fi
	$(Q)if command -v swift-format > /dev/null; then swift-format lint --strict --recursive Package.swift Tests/*Tests; \
	else echo "lint: swift-format is not installed, passed over"; fi

# In the shape of .clang-format; for those who have it.
.PHONY: format
format:
	clang-format -i $$(git ls-files 'Sources/*.[ch]' 'Tests/CTests/*.[ch]' 'Tests/Conformance/*.[ch]' 'Examples/*.[ch]' 'Benchmarks/*.[ch]')
	if command -v swift-format > /dev/null; then swift-format format --in-place --recursive Package.swift Tests/*Tests; fi

# Writes the list of names that the library promises and their names for Swift's importer, from the headers, and the link names of what it
# does not promise, from what is built.
symbols: $(B)/whole.o
	$(Q)scripts/check-symbols --update
	$(Q)scripts/check-swift-names --update
	$(Q)scripts/check-link-names --update $(B)/whole.o

man: build/man/made
build/man/made: $(HEADERS) scripts/make-man scripts/declarations.py
	$(Q)rm -rf build/man && mkdir -p build/man/man3 build/man/man7
	$(Q)if command -v $(PYTHON) > /dev/null; then $(PYTHON) scripts/make-man build/man $(VERSION); else echo "man: there is no $(PYTHON) here, no pages"; fi
	$(Q)if command -v groff > /dev/null; then scripts/check-man build/man; else echo "man: groff is not installed, pages not checked"; fi
	@touch $@

# --- Installation ---

.PHONY: install uninstall
INSTALL ?= install
D_LIB = $(DESTDIR)$(LIBDIR)
D_INCLUDE = $(DESTDIR)$(INCLUDEDIR)/corerunloop
D_MAN = $(DESTDIR)$(MANDIR)
D_BIN = $(DESTDIR)$(BINDIR)
D_COMPLETION = $(DESTDIR)$(COMPLETIONDIR)
FILL_IN = sed -e 's|@PREFIX@|$(PREFIX)|g' -e 's|@LIBDIR@|$(LIBDIR)|g' -e 's|@INCLUDEDIR@|$(INCLUDEDIR)|g' -e 's|@VERSION@|$(VERSION)|g' -e 's|@SOVERSION@|$(SOVERSION)|g'

install: all man
	$(Q)$(INSTALL) -d $(D_LIB)/pkgconfig $(D_LIB)/cmake/CoreRunLoop $(D_LIB)/corerunloop $(D_INCLUDE)/CoreFoundation $(D_INCLUDE)/CoreServices $(D_INCLUDE)/Swift $(D_MAN)/man1 $(D_MAN)/man3 $(D_MAN)/man7 $(D_BIN) $(D_COMPLETION)
	$(Q)$(INSTALL) -m 755 $(SHARED) $(D_LIB)/
	$(Q)ln -sf libcorerunloop.so.$(SOVERSION) $(D_LIB)/libcorerunloop.so
	$(Q)$(INSTALL) -m 644 $(STATIC) $(D_LIB)/
	$(Q)$(INSTALL) -m 755 $(TOOL) $(D_BIN)/
	$(Q)$(INSTALL) -m 644 Sources/messageport/messageport.1 $(D_MAN)/man1/
	$(Q)$(INSTALL) -m 644 Sources/messageport/completion.bash $(D_COMPLETION)/messageport
	$(Q)$(INSTALL) -m 755 $(PLAIN) $(D_LIB)/corerunloop/
	$(Q)for file in $(HEADERS:Headers/%=%) Swift/module.modulemap Swift/CCoreRunLoop.apinotes; do $(INSTALL) -m 644 Headers/$$file $(D_INCLUDE)/$$file || exit 1; done
	$(Q)$(FILL_IN) corerunloop.pc.in > $(D_LIB)/pkgconfig/corerunloop.pc
	$(Q)for file in cmake/*.in; do $(FILL_IN) $$file > $(D_LIB)/cmake/CoreRunLoop/$$(basename $$file .in) || exit 1; done
	$(Q)for page in $$(cd build/man && find man3 man7 -type f); do $(INSTALL) -m 644 build/man/$$page $(D_MAN)/$$page || exit 1; done
	@echo "installed in $(DESTDIR)$(PREFIX)"

uninstall: man
	$(Q)rm -f $(D_LIB)/libcorerunloop.so $(SHARED:$(B)/%=$(D_LIB)/%) $(D_LIB)/libcorerunloop.a $(D_LIB)/pkgconfig/corerunloop.pc
	$(Q)rm -f $(D_BIN)/messageport $(D_MAN)/man1/messageport.1 $(D_COMPLETION)/messageport
	$(Q)rm -rf $(D_LIB)/cmake/CoreRunLoop $(D_LIB)/corerunloop $(D_INCLUDE)
	$(Q)for page in $$(cd build/man && find man3 man7 -type f); do rm -f $(D_MAN)/$$page; done
	@echo "removed from $(DESTDIR)$(PREFIX)"

# --- The rest ---

-include $(LIBRARY_OBJECTS:.o=.d) $(TESTING_OBJECTS:.o=.d) $(TEST_OBJECTS:.o=.d) $(LISTINGS:=.d)

.PHONY: deps deps-integration deps-bench deps-architecture clean help help-all
deps:
	@scripts/deps
deps-integration:
	@scripts/deps integration
deps-bench:
	@scripts/deps bench
deps-architecture:
	@scripts/deps "$(ARCHITECTURE)"

clean:
	rm -rf build .build

help:
	@sed -n -e 's/^## //p' -e 's/^##$$//p' $(firstword $(MAKEFILE_LIST))
help-all: help
	@sed -n 's/^### //p' $(firstword $(MAKEFILE_LIST))

# --- The executable specification (Tests/Model) ---

### model-check      SEQUENCES=100000 SEED=1 random programs in the model and in the library
### model-toolchain  the same programs, without a clock, in the model and in the Swift toolchain's Core Foundation

.PHONY: model-check model-toolchain
SEED ?= 1
SEQUENCES ?= 100000
MODEL_SOURCES := $(sort $(wildcard Tests/Model/*.c))
MODEL_OBJECTS := $(MODEL_SOURCES:Tests/Model/%.c=$(B)/model/%.o) $(B)/tests/fake_kernel.o
MODEL_LIBRARY := $(filter $(foreach layer,Support Runtime Kernel Loop,$(B)/testing/$(layer)/%),$(TESTING_OBJECTS))
$(B)/model/%.o: Tests/Model/%.c $(B)/flags
	@mkdir -p $(@D)
	$(SAY) CC $<
	$(Q)$(COMPILE) -DCRL_TESTING -ITests/CTests -o $@ $<

$(B)/model-check: $(MODEL_OBJECTS) $(MODEL_LIBRARY)
	$(SAY) LINK $@
	$(Q)$(LINK) -o $@ $^ $(LIBS) $(TEST_LIBS)

model-check: $(B)/model-check
	$(Q)$(B)/model-check '$(SEED)' '$(SEQUENCES)' 2> $(B)/model-check.log || { status=$$?; cat $(B)/model-check.log >&2; exit $$status; }

check: model-check
.PHONY: model-soak
model-soak: $(B)/model-check
	$(Q)$(B)/model-check '$(SEED)' '$(SOAK_SEQUENCES)' 2> $(B)/model-check.log || { status=$$?; cat $(B)/model-check.log >&2; exit $$status; }
SOAK_SEQUENCES ?= 10000000

SWIFT_USR := $(wildcard $(dir $(realpath $(shell command -v swift)))..)
build/model-toolchain: $(MODEL_SOURCES) $(wildcard Tests/Model/*.h)
	@mkdir -p $(@D)
	$(Q)$(SWIFT_USR)/bin/clang -g -O1 -std=gnu11 -D_GNU_SOURCE -pthread -w -fblocks -DMODEL_TOOLCHAIN -I$(SWIFT_USR)/lib/swift -o $@ $(MODEL_SOURCES) \
	-L$(SWIFT_USR)/lib/swift/linux -Wl,-rpath,$(SWIFT_USR)/lib/swift/linux -lFoundation -ldispatch -lBlocksRuntime -lm

ifneq ($(wildcard $(SWIFT_USR)/lib/swift/CoreFoundation/CoreFoundation.h),)
model-toolchain: build/model-toolchain
	$(Q)build/model-toolchain '$(SEED)' '$(SEQUENCES)' 2> build/model-toolchain.log || { status=$$?; cat build/model-toolchain.log >&2; exit $$status; }
else
model-toolchain:
	@echo "model-toolchain: skipped, there is no Swift toolchain here"
endif

-include $(MODEL_OBJECTS:.o=.d)

# --- Fuzzing (Fuzz), with clang's libFuzzer ---

### fuzz             each target of Fuzz for FUZZ_SECONDS=60 from SEED=1; FUZZ_TARGETS="program wire" only some

.PHONY: fuzz
FUZZ_SECONDS ?= 60
FUZZ_TARGETS ?= $(patsubst Fuzz/fuzz_%.c,%,$(sort $(wildcard Fuzz/fuzz_*.c)))
FUZZ_CC ?= clang
FUZZ_FLAGS := -fuse-ld=lld -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
FUZZ_PARTS := $(SOURCES) $(filter-out Tests/Model/main.c Tests/Model/shrink.c,$(MODEL_SOURCES)) Tests/CTests/fake_kernel.c
FUZZ_OBJECTS := $(FUZZ_PARTS:%.c=build/fuzz/%.o)
build/fuzz/%.o: %.c
	@mkdir -p $(@D)
	$(Q)$(FUZZ_CC) -std=gnu11 -pthread -w $(INCLUDES) -DCRL_TESTING -ITests/CTests -ITests/Model $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link -MMD -MP -c -o $@ $<
build/fuzz/fuzz_%: build/fuzz/Fuzz/fuzz_%.o $(FUZZ_OBJECTS)
	$(Q)$(FUZZ_CC) $(FUZZ_FLAGS) -fsanitize=fuzzer -pthread -o $@ $^ $(LIBS)
.SECONDARY: $(FUZZ_TARGETS:%=build/fuzz/Fuzz/fuzz_%.o) $(FUZZ_OBJECTS)
fuzz: $(FUZZ_TARGETS:%=build/fuzz/fuzz_%)
	$(Q)scripts/fuzz '$(FUZZ_SECONDS)' '$(SEED)' $^
-include $(FUZZ_OBJECTS:.o=.d) $(FUZZ_TARGETS:%=build/fuzz/Fuzz/fuzz_%.d)

# --- SPIN models (Tests/Models) ---

### model            checks the SPIN models of the wake word, sources, timers, locks, file descriptors and ports' pages, and that their broken variants fail

.PHONY: model
model:
	$(Q)scripts/check-models $(MODEL_FLAGS)

# --- Chaos (Tests/Chaos) ---

### chaos            SECONDS=60 SEED=1 servers and clients of message ports that are killed, stopped, short of descriptors and without their directory

.PHONY: chaos check-chaos
SECONDS ?= 60
CHAOS_SOURCES := $(sort $(wildcard Tests/Chaos/*.c))
CHAOS_OBJECTS := $(CHAOS_SOURCES:Tests/Chaos/%.c=$(B)/chaos/%.o)
$(B)/chaos/%.o: Tests/Chaos/%.c $(B)/flags
	@mkdir -p $(@D)
	$(SAY) CC $<
	$(Q)$(COMPILE) -DCRL_TESTING -o $@ $<

$(B)/chaos/chaos: $(CHAOS_OBJECTS) $(TESTING_OBJECTS)
	$(SAY) LINK $@
	$(Q)$(LINK) -o $@ $^ $(LIBS) $(TEST_LIBS)

# What the processes log about each other is expected, and kept beside.
chaos: $(B)/chaos/chaos
	$(Q)$(B)/chaos/chaos '$(SECONDS)' '$(SEED)' 2> $(B)/chaos/chaos.log || { status=$$?; tail -n 20 $(B)/chaos/chaos.log >&2; exit $$status; }

check: check-chaos
check-chaos: $(B)/chaos/chaos
	$(Q)$(B)/chaos/chaos 3 '$(SEED)' 2> $(B)/chaos/chaos.log || { status=$$?; tail -n 20 $(B)/chaos/chaos.log >&2; exit $$status; }

-include $(CHAOS_OBJECTS:.o=.d)

# --- Schedule points (Tests/Schedule) ---

### schedule         the tests of loops, descriptors and ports under ThreadSanitizer, with threads held up at atomics and locks; SCHEDULES=3 times

.PHONY: schedule schedule-soak
SCHEDULES ?= 3
SOAK_SCHEDULES ?= 100
SCHEDULE_FLAGS ?= --filter /Loop/ --filter /Port/ --filter /Descriptor/ $(SCHEDULE_EXCEPT:%=--exclude %)
# What is about sizes, deaths of processes or the time that something takes, and would only be slow.
SCHEDULE_EXCEPT := payloads_of_every replies_may_be_larger _killed_at_ stress_messages_leave a_flood_does_not through_all_deaths \
	a_hosted_run_has_the_trace
ifeq ($(FLAVOUR),schedule)
$(TESTING_OBJECTS): CPPFLAGS += -include Tests/Schedule/schedule_points.h
$(RUNNER): $(B)/schedule_point.o
$(B)/schedule_point.o: Tests/Schedule/schedule_point.c $(B)/flags
	$(SAY) CC $<
	$(Q)$(COMPILE) -o $@ $<
endif
schedule:
	$(Q)$(MAKE) --no-print-directory runner FLAVOUR=schedule
	$(Q)TSAN_OPTIONS=second_deadlock_stack=1:$$TSAN_OPTIONS scripts/run-schedules '$(SCHEDULES)' build/$(COMPILER)-schedule/log \
	build/$(COMPILER)-schedule/run-tests --jobs $(TEST_JOBS) $(SCHEDULE_FLAGS) $(TEST_FLAGS)
schedule-soak:
	$(Q)$(MAKE) --no-print-directory schedule SCHEDULES=$(SOAK_SCHEDULES)

# --- The simulated kernel (Tests/Simulation) ---

### sim              SEEDS=2000 random programs of threads and processes on a simulated kernel; SEED=n replays one, with its trace

.PHONY: sim check-sim sim-soak
SEEDS ?= 2000
SOAK_SEEDS ?= 100000
SIM := $(B)/simulation
SIM_SOURCES := $(addprefix Tests/Simulation/,files.c history.c main.c nodes.c plan.c scheduler.c sockets.c streams.c tables.c)
IMAGE_SOURCES := $(addprefix Tests/Simulation/,connections.c image.c loops.c ports.c)
SIM_OBJECTS := $(SIM_SOURCES:Tests/Simulation/%.c=$(SIM)/%.o)
IMAGE_OBJECTS := $(IMAGE_SOURCES:Tests/Simulation/%.c=$(SIM)/%.o) \
	$(patsubst Sources/CCoreRunLoop/%.c,$(SIM)/library/%.o,$(filter-out %/Support/futex.c,$(SOURCES)))
IMAGES := $(foreach number,0 1 2 3,$(SIM)/process-$(number).so)
$(SIM)/library/%.o: Sources/CCoreRunLoop/%.c $(B)/flags
	@mkdir -p $(@D)
	$(SAY) CC $<
	$(Q)$(COMPILE) -DCRL_TESTING -include Tests/Schedule/schedule_points.h -o $@ $<
$(SIM)/%.o: Tests/Simulation/%.c $(B)/flags
	@mkdir -p $(@D)
	$(SAY) CC $<
	$(Q)$(COMPILE) -DCRL_TESTING -ITests/Simulation -ITests/Schedule $(SIM_VISIBILITY) -o $@ $<
# The images find in the program what they call of the simulation.
$(SIM_OBJECTS): SIM_VISIBILITY := -fvisibility=default
$(SIM)/simulate: $(SIM_OBJECTS)
	$(SAY) LINK $@
	$(Q)$(LINK) -rdynamic -o $@ $^ -ldl
# A copy for each process: the dynamic linker takes files for the same only if they are.
$(IMAGES): $(SIM)/process.so
	$(Q)cp $< $@
$(SIM)/process.so: $(IMAGE_OBJECTS)
	$(SAY) LINK $@
	$(Q)$(LINK) -shared -Wl,-Bsymbolic -Wl,--wrap=crl_source_take_mark -Wl,--wrap=pthread_once -o $@ $^ $(LIBS)
SIMULATE = $(SIM)/simulate --jobs $(TEST_JOBS)
sim: $(SIM)/simulate $(IMAGES)
ifeq ($(origin SEED),command line)
	$(Q)$(SIMULATE) --seed '$(SEED)' $(IMAGES)
else
	$(Q)$(SIMULATE) --seeds '$(SEEDS)' $(IMAGES)
endif
check-sim: $(SIM)/simulate $(IMAGES)
	$(Q)$(SIMULATE) --seeds '$(SEEDS)' $(IMAGES)
	$(Q)Tests/Simulation/test_replay $(SIM)/simulate $(IMAGES)
sim-soak: $(SIM)/simulate $(IMAGES)
	$(Q)$(SIMULATE) --seeds '$(SOAK_SEEDS)' $(IMAGES)
check: check-sim
-include $(SIM_OBJECTS:.o=.d) $(IMAGE_OBJECTS:.o=.d)

# --- docs/faults.md ---

.PHONY: check-faults
check: check-faults
check-faults: $(RUNNER)
	$(Q)scripts/check-faults $(RUNNER)
