# SPDX-License-Identifier: Apache-2.0
#
# The command runloop. It reads files and needs nothing of the library. The page of its traces is a file of its own, which the command carries.
# Names of functions are read by elfutils, if its header is here.

### check-runloop    tests the command runloop, its page in a browser if chromium is here, and runloop top

RUNLOOP := $(B)/runloop
WING_CHECKS += check-runloop
WING_CHECK_NEEDS += $(B)/runloop-testing $(B)/traced

all: $(RUNLOOP)
# The page is no source, and the objects that carry it depend on it.
# It is linked, not only found: a compiler for another architecture finds the headers of this machine's.
HAS_libdw := $(shell echo 'int main(void) { return 0; }' | $(CC) $(CPPFLAGS) $(LDFLAGS) -include elfutils/libdwfl.h -x c - -ldw -lelf -o /dev/null 2>/dev/null && echo yes)
RUNLOOP_LIBS := $(if $(HAS_libdw),-ldw -lelf) -lm -ldl
RUNLOOP_FLAGS := $(if $(HAS_libdw),-DHAS_LIBDW) -ITools/runloop/Sources -ITools/command/Sources -DVIEWER='"Tools/runloop/Sources/viewer.html"'
$(call objects,tools/runloop,Tools/runloop/Sources,$(RUNLOOP_FLAGS))
$(call objects,tools/runloop-testing,Tools/runloop/Sources,-DCRL_TESTING $(RUNLOOP_FLAGS))
$(call objects,tools/runloop-tests,Tools/runloop/Tests,-DCRL_TESTING)
RUNLOOP_SOURCES := $(wildcard Tools/runloop/Sources/*.c Tools/runloop/Sources/*/*.c)
RUNLOOP_OBJECTS := $(RUNLOOP_SOURCES:Tools/runloop/Sources/%.c=$(B)/tools/runloop/%.o)
RUNLOOP_TESTING_OBJECTS := $(RUNLOOP_SOURCES:Tools/runloop/Sources/%.c=$(B)/tools/runloop-testing/%.o) $(B)/tools/runloop-tests/broken_invariant.o
$(B)/tools/runloop/html.o $(B)/tools/runloop-testing/html.o: Tools/runloop/Sources/viewer.html
RUNLOOP_COMMON := $(B)/tools/command/command_line.o $(B)/tools/command/json_string.o $(B)/tools/command/regular_file.o

# The tests run the command with its invariants checked.
RUNLOOP_TESTING := $(B)/runloop-testing
$(RUNLOOP): $(RUNLOOP_OBJECTS) $(RUNLOOP_COMMON)
$(RUNLOOP_TESTING): $(RUNLOOP_TESTING_OBJECTS) $(RUNLOOP_COMMON)
$(RUNLOOP) $(RUNLOOP_TESTING):
	$(SAY) LINK $@
	$(Q)$(LINK) -o $@ $^ $(RUNLOOP_LIBS) $(TEST_LIBS)

# As a user would build it.
TRACED := $(B)/traced
TROUBLED := $(B)/troubled
SAMPLED := $(B)/sampled
$(SAMPLED): private FLAVOUR_FLAGS += -fno-omit-frame-pointer
$(TRACED) $(TROUBLED) $(SAMPLED): $(B)/%: Tools/runloop/Tests/%.c $(STATIC)
	$(SAY) CC $@
	$(Q)$(COMPILE_PROGRAM) -o $@ $< $(PROGRAM_LIBS)

.PHONY: check-runloop
check-runloop: $(RUNLOOP_TESTING) $(TRACED) $(TROUBLED) $(SAMPLED) $(DEBUGGED) $(SHARED)
	$(Q)Tools/runloop/Tests/test_runloop $(RUNLOOP_TESTING) $(TRACED)
	$(Q)Tools/runloop/Tests/test_names $(RUNLOOP_TESTING) $(TRACED) $(SHARED)
	$(Q)Tools/runloop/Tests/test_why $(RUNLOOP_TESTING) $(TROUBLED)
	$(Q)Tools/runloop/Tests/test_page $(RUNLOOP_TESTING) $(TRACED) $(SAMPLED)
	$(Q)Tools/runloop/Tests/test_stacks $(RUNLOOP_TESTING) $(SAMPLED)
	$(Q)Tools/runloop/Tests/test_top $(RUNLOOP_TESTING) $(SHARED) $(DEBUGGED)

install:: all
	$(Q)$(INSTALL) -d $(D_COMPLETION)
	$(Q)$(INSTALL) -m 755 $(RUNLOOP) $(D_BIN)/
	$(Q)$(INSTALL) -m 644 Tools/runloop/Sources/runloop.1 $(D_MAN)/man1/
	$(Q)$(INSTALL) -m 644 Tools/runloop/Sources/completion.bash $(D_COMPLETION)/runloop
uninstall::
	$(Q)rm -f $(D_BIN)/runloop $(D_MAN)/man1/runloop.1 $(D_COMPLETION)/runloop

-include $(RUNLOOP_OBJECTS:.o=.d) $(RUNLOOP_TESTING_OBJECTS:.o=.d)
