# SPDX-License-Identifier: Apache-2.0
#
# The runner of the C tests, and its runs: plain, under sanitizers and valgrind, with coverage, on other architectures, for hours.

### check-c          the C tests; LAYERS="Support Runtime" builds only some layers
### check-rules      checks docs/rules.md against the tests
### coverage         what the C tests run of each file of Sources/CCoreRunLoop: with clang lines, branches and conditions, with gcc lines;
###                  COVERAGE_MIN=90
### failure-sites    checks that each call of the kernel or the allocator that may fail has failed once; needs clang and addr2line
### check-architecture   ARCHITECTURE=arm64 the C tests on another architecture, emulated; also armhf, i386, s390x; after deps-arm64 and so on
### check-musl       the C tests with musl instead of glibc; after deps-musl
### soak             runs for hours, and prints each part's time; SOAK="model sim" picks some, and `make soak-model` runs one alone. The parts:
### soak-stress soak-failures   the tests of stress, and of the n-th failure of each call, at full length

.PHONY: runner check-c check-rules check-architecture check-musl
LIBRARY_CHECKS += check-c
LIBRARY_CHECK_NEEDS += $(RUNNER)
TESTS := $(sort $(wildcard Tests/CTests/*.c) $(call in_layers,Tests/CTests))
# The tests of the n-th failure need all layers. They wrap the C library's allocator for the whole runner.
ifneq ($(filter Port,$(LAYERS)),)
TESTS += $(sort $(wildcard Tests/CTests/Failure/*.c))
RUNNER_LDFLAGS := $(patsubst %,-Wl$(COMMA)--wrap=%,malloc calloc realloc aligned_alloc free)
endif
TEST_OBJECTS := $(TESTS:Tests/CTests/%.c=$(B)/tests/%.o)
$(call objects,tests,Tests/CTests,-DCRL_TESTING -ITests/CTests)

$(RUNNER): $(TESTING_OBJECTS) $(TEST_OBJECTS) $(B)/flags $(B)/sources
	$(SAY) LINK $@
	$(Q)$(LINK) $(RUNNER_LDFLAGS) -o $@ $(filter %.o,$^) $(LIBS) $(TEST_LIBS)

# The tests with dispatch queues are passed over in a process without libdispatch. Those of a release build run once more with the toolchain's.
ifeq ($(TOOLS)$(filter-out release,$(FLAVOUR))$(TEST_FLAGS),)
LIBDISPATCH := $(if $(HAS_SWIFT),$(wildcard $(dir $(realpath $(HAS_SWIFT)))../lib/swift/linux/libdispatch.so))
endif
runner: $(RUNNER)
check-c: $(RUNNER)
	$(Q)$(RUNNER) --jobs $(TEST_JOBS) $(TEST_FLAGS)
	$(Q)$(if $(LIBDISPATCH),LD_PRELOAD=$(LIBDISPATCH) $(RUNNER) --jobs $(TEST_JOBS) --filter queue --filter stream_threads)
check-rules: $(RUNNER)
	$(Q)scripts/check-rules $(RUNNER)
check-architecture:
	$(Q)MAKE="$(MAKE)" TEST_JOBS=$(TEST_JOBS) TEST_FLAGS="$(TEST_FLAGS)" scripts/check-architecture "$(ARCHITECTURE)"
check-musl:
	$(Q)MAKE="$(MAKE)" TEST_JOBS=$(TEST_JOBS) TEST_FLAGS="$(TEST_FLAGS)" Tests/Musl/check-musl

# --- The same tests under tools ---

.PHONY: runners asan tsan ubsan valgrind coverage failure-sites
# The tests of the add-on libraries belong to each run that is not limited to some tests.
TESTED_ADD_ONS := $(if $(TEST_FLAGS),,$(ADD_ONS))
ADD_ON_CHECKS := $(TESTED_ADD_ONS:%=check-%)
# All is compiled by $(TEST_JOBS) compilers at once; then one program of tests runs after the other.
runners: $(RUNNER) $(TESTED_ADD_ONS:%=$(B)/run-tests-%)
compile_for = $(MAKE) --no-print-directory -j$(TEST_JOBS) runners FLAVOUR=$(1)
asan:
	$(Q)$(call compile_for,asan)
	$(Q)ASAN_OPTIONS=detect_stack_use_after_return=1:$$ASAN_OPTIONS UBSAN_OPTIONS=print_stacktrace=1:$$UBSAN_OPTIONS \
	$(MAKE) --no-print-directory check-c $(ADD_ON_CHECKS) FLAVOUR=asan
ubsan:
	$(Q)$(call compile_for,ubsan)
	$(Q)UBSAN_OPTIONS=print_stacktrace=1:$$UBSAN_OPTIONS $(MAKE) --no-print-directory check-c $(ADD_ON_CHECKS) FLAVOUR=ubsan
tsan:
	$(Q)$(call compile_for,tsan)
	$(Q)TSAN_OPTIONS=second_deadlock_stack=1:atexit_sleep_ms=50:$$TSAN_OPTIONS \
	$(MAKE) --no-print-directory check-c $(ADD_ON_CHECKS) FLAVOUR=tsan

VALGRIND ?= valgrind -q --suppressions=Tests/CTests/valgrind.supp --error-exitcode=9 --leak-check=full --show-leak-kinds=definite,indirect --errors-for-leak-kinds=definite,indirect
# The excluded tests cannot pass under valgrind:
# - test_harness runs the runner again, and valgrind does not follow it.
# - nth_failure makes thousands of processes, which takes too long. AddressSanitizer watches these tests.
# - descriptors_that_really_run_out: at the limit of descriptors valgrind itself accepts the connection, closes it and answers EMFILE. The test
#   then waits for a connection that is gone.
# - a_receiver_without_descriptors: valgrind keeps a lowered limit of descriptors to itself, so descriptors in a message arrive all the same.
# - ports_stay_off_the_standard_streams: in a child valgrind opens its log at the first free number, which the test wants to stay free.
# - a_signal_is_claimed: valgrind keeps the highest real-time signal to itself.
# - test_stall, a_signal_that_threads_leave_unblocked: valgrind does not deliver signals that a thread queues for itself or for its process.
VALGRIND_EXCEPT := test_harness nth_failure descriptors_that_really_run_out a_receiver_without_descriptors ports_stay_off_the_standard_streams \
	a_signal_is_claimed test_stall a_signal_that_threads_leave_unblocked
# Some versions report system calls that they do not know, such as 441, epoll_pwait2. The library then uses epoll_wait; the report is not shown.
VALGRIND_NOISE := ^--[0-9]+-- (WARNING: unhandled|You may|Read the|Nevertheless|it at http)
# The tests of the bridge start servers and wait for them, with limits that valgrind does not keep.
VALGRIND_RUNNERS := $(patsubst %,$(B)/run-tests-%,$(filter-out nats,$(TESTED_ADD_ONS)))
# Runs the programs, with flags, until one fails. Then what valgrind says of it is shown.
run_valgrind = $(Q)rm -rf $(B)/valgrind && mkdir -p $(B)/valgrind && for runner in $(1); do \
	$(VALGRIND) --log-file=$(B)/valgrind/%p $$runner --time-factor 30 --jobs $(TEST_JOBS) $(2) || \
	{ cat $(B)/valgrind/* | grep -vE '$(VALGRIND_NOISE)'; exit 1; }; done
valgrind: $(RUNNER) $(VALGRIND_RUNNERS)
	$(call run_valgrind,$^,$(VALGRIND_EXCEPT:%=--exclude %) $(TEST_FLAGS))

# The excluded tests limit the size of files or memory, which would also stop the forked children from writing their counters. With gcc the tests
# of the n-th failure have the same problem.
COVERAGE_MIN ?= 90
COVERAGE_EXCEPT := nth_failure the_limit_on_files memory_that_runs_out stress_a_receiver_killed
coverage:
	$(Q)rm -rf build/$(COMPILER)-coverage/profiles && find build/$(COMPILER)-coverage -name '*.gcda' -delete 2> /dev/null || true
	$(Q)$(call compile_for,coverage)
	$(Q)export LLVM_PROFILE_FILE=$(CURDIR)/build/$(COMPILER)-coverage/profiles/%4m.profraw; $(MAKE) --no-print-directory check-c FLAVOUR=coverage \
	TEST_FLAGS='$(TEST_FLAGS) $(COVERAGE_EXCEPT:%=--exclude %)' && \
	{ [ -z "$(ADD_ON_CHECKS)" ] || $(MAKE) --no-print-directory $(ADD_ON_CHECKS) FLAVOUR=coverage; } && \
	{ [ -z "$(IS_CLANG)" ] || build/$(COMPILER)-coverage/run-tests --jobs $(TEST_JOBS) --filter nth_failure --time-factor 4; }; \
	passed=$$?; scripts/coverage build/$(COMPILER)-coverage '$(COVERAGE_MIN)' && exit $$passed

# The coverage build is not optimized, so a call's address gives the call's own line. Its clang may bring libdispatch, whose users are then reached.
failure-sites:
	$(Q)$(call compile_for,coverage) CC=clang
	$(Q)rm -f build/clang-coverage/failed_calls
	$(Q)LLVM_PROFILE_FILE=/dev/null NTH_FAILURE_SITES=build/clang-coverage/failed_calls \
	build/clang-coverage/run-tests --jobs $(TEST_JOBS) --filter nth_failure > build/clang-coverage/nth_failure.log || \
	{ grep -A 8 '^not ok' build/clang-coverage/nth_failure.log; exit 1; }
	$(Q)Tests/CTests/Failure/failure-sites build/clang-coverage build/clang-coverage/failed_calls

# --- Soak ---

.PHONY: soak
soak:
	$(Q)for part in $(SOAK); do start=$$(date +%s); $(MAKE) --no-print-directory soak-$$part || { echo "soak: $$part failed"; exit 1; }; \
	echo "soak: $$part: passed in $$(($$(date +%s) - start)) s"; done
.SECONDEXPANSION:
soak-%: $$(soak-$$*_NEEDS)
	$(if $(filter $*,$(SOAK)),,$(error there is no soak-$*; soak has the parts $(SOAK)))
	$(soak-$*)

SOAK += stress failures
soak-stress_NEEDS = $(RUNNER) $(if $(HAS_net),$(net_RUNNER))
soak-stress = $(Q)for runner in $(soak-stress_NEEDS); do $$runner --soak --filter stress_ --jobs 1 || exit 1; done
soak-failures_NEEDS = $(RUNNER) $(ADD_ONS:%=$(B)/run-tests-%)
# Those of the add-on libraries once more under valgrind, which has time for them here.
define soak-failures
	$(Q)for runner in $(soak-failures_NEEDS); do $$runner --soak --filter nth_failure_ --jobs $(TEST_JOBS) || exit 1; done
	$(call run_valgrind,$(VALGRIND_RUNNERS),--filter nth_failure_)
endef

-include $(TEST_OBJECTS:.o=.d)
