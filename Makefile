# SPDX-License-Identifier: Apache-2.0
#
# Builds, installs and checks the C library. Every other target stands in a rules.mk beside the files that it uses; the last lines include them.
# `make help` prints the daily targets, `make help-all` prints all of them.
#
# Products go to build/<compiler>-<flavour>/. FLAVOUR is release, asan, tsan, schedule, ubsan or coverage. SwiftPM builds in .build/.
# You may set CC, CPPFLAGS, CFLAGS, LDFLAGS, PREFIX, DESTDIR, LIBDIR, INCLUDEDIR, BINDIR, MANDIR and GDBDIR. The library's own flags are added to yours.

## all              builds the libraries and the commands (the default)
## demo             builds and runs the demonstration
## check            runs the tests, of which each part can be named alone: check-library without add-ons, tools and Swift, check-c, check-net...
## check-c          runs the tests of the C library; TEST_FLAGS="--filter NAME" picks some, TEST_FLAGS=--help lists the options
## deps deps-all    installs by apt what the library and its tests need, or the add-ons, tools and checks as well; deps-net and so on: one of them
## lint             checks layers, comments, symbols, headers, style and sizes; scripts/lint NAME runs one check
## asan tsan ubsan valgrind   runs the C tests under a tool
## bench            runs all benchmarks, beside the other libraries that are here (deps-bench installs them)
## docs man         writes the overlay's documentation, and the man pages, into build
## install uninstall   PREFIX=/usr/local DESTDIR= LIBDIR= INCLUDEDIR= MANDIR=
## clean            removes build and .build
## help-all         lists the other targets: parts of check, tools, fuzzing, models, simulation, soak
## CC=clang picks the compiler. CFLAGS, CPPFLAGS and LDFLAGS add flags. V=1 shows the commands.

.PHONY: all
all:

.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

# --- Variables ---

ifeq ($(origin CC),default)
CC := $(if $(shell command -v gcc 2>/dev/null),gcc,clang)
endif
FLAVOUR ?= release
COMPILER := $(notdir $(firstword $(filter-out ccache,$(CC))))
B := build/$(COMPILER)-$(FLAVOUR)
IS_CLANG := $(if $(shell $(CC) --version 2>/dev/null | grep -i clang),yes)
# A cross compiler comes with binary tools of the same prefix.
TOOLS := $(if $(filter %-gcc,$(COMPILER)),$(COMPILER:%gcc=%))
OBJCOPY ?= $(TOOLS)objcopy
ifeq ($(origin AR),default)
AR := $(TOOLS)ar
endif
PYTHON ?= python3
HAS_SWIFT := $(shell command -v swift)
TEST_JOBS ?= 2
TEST_FLAGS ?=
SEED ?= 1

PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
MANDIR ?= $(PREFIX)/share/man
BINDIR ?= $(PREFIX)/bin
VERSION := $(shell sed -n 's/^\#define CRL_VERSION_STRING "\(.*\)"/\1/p' Headers/CRLRunLoop.h 2>/dev/null)
VERSION := $(or $(VERSION),0.3.0)
SOVERSION := 0

# LAYERS limits the sources and the tests to some layers. It helps while another layer does not compile: make check-c LAYERS="Support Runtime".
# A layer's folder may be divided into rooms, which are one folder deeper.
LAYERS ?= Support Runtime Kernel Loop Descriptor Socket Stream Host Port Overlay
in_layers = $(sort $(wildcard $(LAYERS:%=$(1)/%/*.c) $(LAYERS:%=$(1)/%/*/*.c)))
SOURCES := $(call in_layers,Sources/CCoreRunLoop)
HEADERS := $(sort $(wildcard Headers/*.h Headers/*/*.h))

CFLAGS ?= -O2 -g
# CI knows its compilers, so there a warning stops the build. A newer compiler's new warning must not stop a user.
WERROR ?= $(if $(CI),-Werror)
WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes $(WERROR)
WARNINGS_OF_PROGRAMS := -Wall -Wextra $(WERROR)
# Where the compiler finds no libbsd, headers of our own stand in for what is used of it. HAS_BSD= takes them everywhere.
HAS_BSD ?= $(shell echo 'int main(void) { return 0; }' | $(CC) $(CPPFLAGS) $(LDFLAGS) -include bsd/string.h -x c - -lbsd -o /dev/null 2>/dev/null && echo yes)
HAS_BSD := $(HAS_BSD)
INCLUDES := -IHeaders -ISources/CCoreRunLoop $(if $(HAS_BSD),,-ISources/WithoutBSD)
# _FILE_OFFSET_BITS admits files beyond 2 GB on 32-bit machines. -fexceptions lets a callback's exception pass through the library's frames.
OWN_CFLAGS := -std=gnu11 -D_FILE_OFFSET_BITS=64 -fexceptions -fPIC -fvisibility=hidden -pthread $(WARNINGS) $(INCLUDES)
OWN_LDFLAGS := -pthread -Wl,--as-needed
# The tests need libm, and libdl where it is not empty. The library does not: loading libm would take a tenth of a small program's start.
# librt is empty from glibc 2.34 on; timer_create was in it before.
export BSD_LIBS := $(if $(HAS_BSD),-lbsd)
LIBRARY_LIBS := $(BSD_LIBS) -lrt
LIBS := $(LIBRARY_LIBS) -lm -ldl
# A comma cannot stand in an argument of a function of make.
COMMA := ,

include Tests/flavours.mk

# --- Commands ---

Q := $(if $(V),,@)
SAY = $(if $(V),@:,@printf '  %-5s %s\n')
COMPILE = $(CC) $(CPPFLAGS) $(OWN_CFLAGS) $(CFLAGS) $(FLAVOUR_FLAGS) -MMD -MP -c
LINK = $(CC) $(CFLAGS) $(FLAVOUR_FLAGS) $(LDFLAGS) $(OWN_LDFLAGS)
# A user's program, as a user would build it, and the libraries that it is linked with.
COMPILE_PROGRAM = $(CC) $(CPPFLAGS) -std=gnu11 -pthread $(WARNINGS_OF_PROGRAMS) -IHeaders -IAddOns/Hosts/Headers $(CFLAGS) $(FLAVOUR_FLAGS) $(LDFLAGS)
PROGRAM_LIBS = $(STATIC) $(OWN_LDFLAGS) $(LIBS)

# $(call objects,PRODUCTS,SOURCES,FLAGS) writes the rule that compiles SOURCES/%.c to $(B)/PRODUCTS/%.o.
define objects_rule
$(B)/$(1)/%.o: $(2)/%.c $(B)/flags
	@mkdir -p $$(@D)
	$$(SAY) CC $$<
	$$(Q)$$(COMPILE) $(3) -o $$@ $$<
endef
objects = $(eval $(call objects_rule,$(1),$(2),$(3)))

# $(call archive,NAME) is the recipe of a static library of one object, in which the private names that files share are local. A program may so
# have a function named `kernel` of its own.
define archive
$(SAY) AR $@
$(Q)$(OBJCOPY) --localize-hidden $< $(@D)/$(1).o
$(Q)rm -f $@
$(Q)$(AR) rcs $@ $(@D)/$(1).o
endef

# --- The library ---

LIBRARY_OBJECTS := $(SOURCES:Sources/CCoreRunLoop/%.c=$(B)/library/%.o)
TESTING_OBJECTS := $(SOURCES:Sources/CCoreRunLoop/%.c=$(B)/testing/%.o)
SHARED := $(B)/libcorerunloop.so.$(SOVERSION)
STATIC := $(B)/libcorerunloop.a
PLAIN := $(B)/plain/libCoreFoundation.so
RUNNER := $(B)/run-tests

all: $(SHARED) $(B)/libcorerunloop.so $(STATIC) $(PLAIN)

# These two files change only when their text does. Objects depend on flags, so new flags compile again. Links depend on sources, so a source
# that went away links again.
FLAGS_NOW := $(CC) $(CPPFLAGS) $(OWN_CFLAGS) $(CFLAGS) $(FLAVOUR_FLAGS) $(LDFLAGS) $(TEST_LIBS)
$(B)/flags: NOW = $(FLAGS_NOW)
$(B)/sources: NOW = $(SOURCES) $(TESTS)
$(B)/flags $(B)/sources: FORCE
	@mkdir -p $(@D)
	@echo '$(NOW)' | cmp -s - $@ || echo '$(NOW)' > $@
.PHONY: FORCE
FORCE:

$(call objects,library,Sources/CCoreRunLoop,)
$(call objects,testing,Sources/CCoreRunLoop,-DCRL_TESTING)

# -z nodelete: threads and loops outlive any dlclose. -Bsymbolic-functions: calls inside the library stay inside it.
$(SHARED): $(LIBRARY_OBJECTS) $(B)/sources
	$(SAY) LINK $@
	$(Q)$(LINK) -shared -Wl,-soname,$(@F) -Wl,-z,nodelete -Wl,-z,defs -Wl,-Bsymbolic-functions -o $@ $(LIBRARY_OBJECTS) $(LIBRARY_LIBS)

$(B)/libcorerunloop.so: $(SHARED)
	$(Q)ln -sf $(<F) $@

$(B)/whole.o: $(LIBRARY_OBJECTS) $(B)/sources
	$(SAY) LD $@
	$(Q)$(CC) $(CFLAGS) -r -nostdlib -o $@ $(LIBRARY_OBJECTS)

$(STATIC): $(B)/whole.o
	$(call archive,corerunloop)

# libCoreFoundation.so exports Apple's names without the prefix crl_, for dlopen and foreign function interfaces. A process that has Foundation
# must not load it (docs/symbols.md).
$(B)/plain/names: corerunloop.symbols
	@mkdir -p $(@D)
	$(Q)sed -n 's/^crl_\(.*\)/& \1/p' $< > $@

$(B)/plain/whole.o: $(B)/whole.o $(B)/plain/names
	$(Q)$(OBJCOPY) --redefine-syms=$(B)/plain/names $< $@

$(PLAIN): $(B)/plain/whole.o
	$(SAY) LINK $@
	$(Q)$(LINK) -shared -Wl,-soname,$(@F) -Wl,-z,nodelete -Wl,-z,defs -Wl,-Bsymbolic -o $@ $^ $(LIBRARY_LIBS)

-include $(LIBRARY_OBJECTS:.o=.d) $(TESTING_OBJECTS:.o=.d)

# --- Installation ---

# A wing, which is an add-on or a tool, has more of these rules in its rules.mk. The man pages of all headers are of the library.
.PHONY: install uninstall
INSTALL ?= install
D_LIB = $(DESTDIR)$(LIBDIR)
D_INCLUDE = $(DESTDIR)$(INCLUDEDIR)/corerunloop
D_MAN = $(DESTDIR)$(MANDIR)
D_BIN = $(DESTDIR)$(BINDIR)
FILL_IN = sed $(foreach name,PREFIX LIBDIR LIBEXECDIR BINDIR INCLUDEDIR VERSION SOVERSION,-e 's|@$(name)@|$($(name))|g') \
	$(if $(HAS_BSD),-e 's/@BSD@/bsd/',-e 's/ lib@BSD@//;s/@BSD@;//')

install:: all man
	$(Q)$(INSTALL) -d $(D_LIB)/pkgconfig $(D_LIB)/cmake/CoreRunLoop $(D_LIB)/corerunloop $(D_BIN) \
	$(addprefix $(D_INCLUDE)/,CFNetwork CoreFoundation CoreServices Swift SystemConfiguration) $(addprefix $(D_MAN)/,man1 man3 man7)
	$(Q)$(INSTALL) -m 755 $(SHARED) $(D_LIB)/
	$(Q)ln -sf libcorerunloop.so.$(SOVERSION) $(D_LIB)/libcorerunloop.so
	$(Q)$(INSTALL) -m 644 $(STATIC) $(D_LIB)/
	$(Q)$(INSTALL) -m 755 $(PLAIN) $(D_LIB)/corerunloop/
	$(Q)for file in $(HEADERS:Headers/%=%) Swift/module.modulemap Swift/CCoreRunLoop.apinotes; do \
	$(INSTALL) -m 644 Headers/$$file $(D_INCLUDE)/$$file || exit 1; done
	$(Q)$(FILL_IN) corerunloop.pc.in > $(D_LIB)/pkgconfig/corerunloop.pc
	$(Q)for file in cmake/*.in; do $(FILL_IN) $$file > $(D_LIB)/cmake/CoreRunLoop/$$(basename $$file .in) || exit 1; done
	$(Q)for page in $$(cd build/man && find man3 man7 -type f); do $(INSTALL) -m 644 build/man/$$page $(D_MAN)/$$page || exit 1; done

uninstall:: man
	$(Q)rm -f $(D_LIB)/libcorerunloop.so $(SHARED:$(B)/%=$(D_LIB)/%) $(D_LIB)/libcorerunloop.a $(D_LIB)/pkgconfig/corerunloop.pc
	$(Q)rm -rf $(D_LIB)/cmake/CoreRunLoop $(D_LIB)/corerunloop $(D_INCLUDE)
	$(Q)for page in $$(cd build/man && find man3 man7 -type f); do rm -f $(D_MAN)/$$page; done

# --- Parts that say of themselves what they are: each rules.mk of the library and of the wings ---

# What `make check` runs of the library and of its wings, and what has to be built for that. A rules.mk adds to these lists.
LIBRARY_CHECKS :=
LIBRARY_CHECK_NEEDS :=
WING_CHECKS :=
WING_CHECK_NEEDS :=
# What bench-NAME and soak-NAME may name. A variable of that name is the recipe, and with _NEEDS behind it what has to be built before.
BENCHMARKS :=
SOAK :=

RULES := AddOns/library.mk $(wildcard AddOns/*/rules.mk Tools/*/rules.mk) $(addsuffix /rules.mk,Tests/CTests Tests/Listings Tests/Conformance Tests/Model Tests/Models Tests/Schedule \
	Tests/Simulation Tests/Chaos Tests/Integration Tests/Embed Tests/Systems Fuzz Examples Sources Benchmarks docs scripts debian)
include $(RULES)

# --- Check, help, clean ---

# All is compiled first. Then some parts run at once, as most of them wait more than they compute; SwiftPM takes longest and begins. What a part
# prints comes when it ends.
.PHONY: check check-library
$(B)/for-check: all $(LIBRARY_CHECK_NEEDS) $(WING_CHECK_NEEDS)
$(B)/for-check-library: $(SHARED) $(LIBRARY_CHECK_NEEDS)
$(B)/for-check $(B)/for-check-library:
	@touch $@
PARTS_AT_ONCE = 3
AT_ONCE = $(MAKE) --no-print-directory --output-sync=recurse -j
check:
	$(Q)$(AT_ONCE) $(TEST_JOBS) $(B)/for-check
	$(Q)$(AT_ONCE) $(PARTS_AT_ONCE) check-swift $(COMMON_CHECKS) $(LIBRARY_CHECKS) $(WING_CHECKS)
	@echo "make check: passed with $(CC)"
check-library:
	$(Q)$(AT_ONCE) $(TEST_JOBS) $(B)/for-check-library
	$(Q)$(AT_ONCE) $(PARTS_AT_ONCE) $(LIBRARY_CHECKS)

.PHONY: deps clean help help-all
deps:
	@scripts/deps
deps-%:
	@scripts/deps $*
clean:
	rm -rf build .build

# Each rules.mk describes its targets in lines that begin with three signs.
help:
	@sed -n 's/^## //p' Makefile
help-all: help
	@printf '\ncheck runs %s\n' "$(LIBRARY_CHECKS) $(WING_CHECKS) check-swift $(COMMON_CHECKS)" | fold -s -w 120
	@awk '/^### / { if (FILENAME != last) print "\n" FILENAME ":"; last = FILENAME; print substr($$0, 5) }' $(RULES)
