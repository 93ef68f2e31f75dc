# SPDX-License-Identifier: Apache-2.0
#
# The C library and every check. `make help` lists the targets.
#
# CC, CPPFLAGS, CFLAGS, LDFLAGS, PREFIX, DESTDIR, LIBDIR, INCLUDEDIR and MANDIR may be given; what the library itself needs is added to them.
# Everything that is built lies under build/<compiler>-<flavour>/. FLAVOUR is release, asan, tsan, ubsan or coverage.

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
CFLAGS ?= -O2 -g
WERROR ?= -Werror
TEST_JOBS ?= 2
TEST_FLAGS ?=
VERSION := $(shell sed -n 's/^\#define CRL_VERSION_STRING "\(.*\)"/\1/p' Headers/CRLRunLoop.h 2>/dev/null)
VERSION := $(or $(VERSION),0.1.0)
SOVERSION := 0

# LAYERS limits the sources and the tests to some layers, for working on one while another does not compile: make check-c LAYERS="Support Runtime".
LAYERS ?= Support Runtime Kernel Loop Descriptor Port
SOURCES := $(sort $(wildcard $(LAYERS:%=Sources/CCoreRunLoop/%/*.c)))
TESTS := $(sort $(wildcard Tests/CTests/*.c $(LAYERS:%=Tests/CTests/%/*.c)))
HEADERS := $(sort $(wildcard Headers/*.h Headers/*/*.h))

WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes $(WERROR)
INCLUDES := -IHeaders -ISources/CCoreRunLoop
OWN_CFLAGS := -std=gnu11 -fPIC -fvisibility=hidden -pthread $(WARNINGS) $(INCLUDES)
OWN_LDFLAGS := -pthread -Wl,--as-needed
LIBS := -lbsd -lm

# What a flavour adds.
FLAGS_release :=
FLAGS_asan := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
FLAGS_ubsan := -fsanitize=undefined,float-cast-overflow -fno-sanitize-recover=all
FLAGS_tsan := -fsanitize=thread
FLAGS_coverage := $(if $(IS_CLANG),-fprofile-instr-generate -fcoverage-mapping,--coverage -fprofile-update=atomic)
FLAVOUR_FLAGS := $(FLAGS_$(FLAVOUR))
ifneq ($(filter asan tsan ubsan,$(FLAVOUR)),)
FLAVOUR_FLAGS += -O1 -g
endif
ifeq ($(FLAVOUR),coverage)
FLAVOUR_FLAGS += -O0 -g
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
RUNNER := $(B)/run-tests

.PHONY: all
all: $(SHARED) $(B)/libcorerunloop.so $(STATIC)

# --- The library ---

# Rebuilds when the flags change, as well as when a source does.
FLAGS_NOW := $(CC) $(CPPFLAGS) $(OWN_CFLAGS) $(CFLAGS) $(FLAVOUR_FLAGS) $(LDFLAGS)
$(B)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(FLAGS_NOW)' | cmp -s - $@ || echo '$(FLAGS_NOW)' > $@
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
$(SHARED): $(LIBRARY_OBJECTS)
	$(SAY) LINK $@
	$(Q)$(LINK) -shared -Wl,-soname,$(@F) -Wl,-z,nodelete -Wl,-z,defs -Wl,-Bsymbolic-functions -o $@ $^ $(LIBS)

$(B)/libcorerunloop.so: $(SHARED)
	$(Q)ln -sf $(<F) $@

$(STATIC): $(LIBRARY_OBJECTS)
	$(SAY) AR $@
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

# --- C tests ---

$(RUNNER): $(TESTING_OBJECTS) $(TEST_OBJECTS)
	$(SAY) LINK $@
	$(Q)$(LINK) -o $@ $^ $(LIBS) $(TEST_LIBS)

.PHONY: runner check-c
runner: $(RUNNER)
check-c: $(RUNNER)
	$(RUNNER) --jobs $(TEST_JOBS) $(TEST_FLAGS)

-include $(LIBRARY_OBJECTS:.o=.d) $(TESTING_OBJECTS:.o=.d) $(TEST_OBJECTS:.o=.d)

.PHONY: clean
clean:
	rm -rf build
