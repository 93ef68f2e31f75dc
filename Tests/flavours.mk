# SPDX-License-Identifier: Apache-2.0
#
# The flags that each FLAVOUR adds: FLAVOUR_FLAGS for the compiler and the linker, TEST_LIBS for linking the tests.

FLAGS_release :=
FLAGS_asan := -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=undefined,float-cast-overflow -fno-omit-frame-pointer
FLAGS_ubsan := -fsanitize=undefined,float-cast-overflow -fno-sanitize-recover=all
FLAGS_tsan := -fsanitize=thread
FLAGS_schedule := $(FLAGS_tsan)
# For coverage gcc replaces fork by its own version, which would lose the lines that fork handlers ran.
FLAGS_coverage := $(if $(IS_CLANG),-fprofile-instr-generate -fcoverage-mapping,--coverage -fprofile-update=atomic -fno-builtin-fork)
FLAVOUR_FLAGS := $(FLAGS_$(FLAVOUR))
ifneq ($(filter asan-yes tsan-yes schedule-yes coverage-yes,$(FLAVOUR)-$(IS_CLANG)),)
SWIFT_LIBRARIES := $(wildcard $(dir $(realpath $(shell command -v $(firstword $(CC)))))../lib/swift/linux)
endif
ifneq ($(SWIFT_LIBRARIES),)
TEST_LIBS += -L$(SWIFT_LIBRARIES) -Wl,-rpath,$(SWIFT_LIBRARIES)
ifeq ($(FLAVOUR),coverage)
# This clang brings a runtime for blocks and libdispatch: coverage then includes the calls that take blocks and the code for dispatch queues.
FLAVOUR_FLAGS += -fblocks
TEST_LIBS += -lBlocksRuntime -Wl,--no-as-needed -ldispatch -Wl,--as-needed
else
# The thread sanitizer of a Swift toolchain's clang needs the libdispatch of that toolchain. With it the tests with dispatch queues run, too.
TEST_LIBS += -Wl,--no-as-needed -ldispatch -Wl,--as-needed -lBlocksRuntime
endif
endif
ifneq ($(filter asan tsan schedule ubsan,$(FLAVOUR)),)
FLAVOUR_FLAGS += -O1 -g
endif
ifeq ($(FLAVOUR),coverage)
MCDC := -fprofile-instr-generate -fcoverage-mapping -fcoverage-mcdc
FLAVOUR_FLAGS += -O0 -g $(if $(IS_CLANG),$(shell $(CC) $(MCDC) -E -x c /dev/null > /dev/null 2>&1 && echo -fcoverage-mcdc))
# Forked children that end by _exit or by a signal count too: harness.c writes their coverage first.
TEST_LIBS += -Wl,--wrap=_exit $(if $(IS_CLANG),,-Wl$(COMMA)-u$(COMMA)__gcov_dump)
endif
