# SPDX-License-Identifier: Apache-2.0
#
# The command runloop. It reads files and needs nothing of the library. The page of its traces is a file of its own, which the command carries.

### check-trace      tests the command runloop, and the page in a browser if chromium is here

### check-top        tests runloop top, with a program whose loop is known and with files that nobody should believe

.PHONY: check-trace check-top
RUNLOOP_SOURCES := $(wildcard Tools/runloop/Sources/*.c) $(addprefix Tools/command/Sources/,command_line.c json_string.c)
RUNLOOP_NEEDS := $(RUNLOOP_SOURCES) $(wildcard Tools/runloop/Sources/*.h Tools/command/Sources/*.h) Tools/runloop/Sources/viewer.html \
	Sources/CCoreRunLoop/Loop/Trace/trace_file.h Sources/CCoreRunLoop/Loop/Trace/statistics_file.h $(B)/flags
RUNLOOP_CFLAGS := -ITools/command/Sources -DVIEWER='"Tools/runloop/Sources/viewer.html"'
$(RUNLOOP): $(RUNLOOP_NEEDS)
	$(SAY) CC $@
	$(Q)$(CC) $(CPPFLAGS) $(OWN_CFLAGS) $(CFLAGS) $(FLAVOUR_FLAGS) $(LDFLAGS) $(RUNLOOP_CFLAGS) -o $@ $(filter %.c,$^) $(OWN_LDFLAGS) -lm $(TEST_LIBS)

# The tests run the command with its invariants checked.
RUNLOOP_TESTING := $(B)/runloop-testing
$(RUNLOOP_TESTING): Tools/runloop/Tests/broken_invariant.c $(RUNLOOP_NEEDS)
	$(SAY) CC $@
	$(Q)$(CC) $(CPPFLAGS) $(OWN_CFLAGS) $(CFLAGS) $(FLAVOUR_FLAGS) $(LDFLAGS) -DCRL_TESTING $(RUNLOOP_CFLAGS) -o $@ $(filter %.c,$^) $(OWN_LDFLAGS) -lm $(TEST_LIBS)

# As a user would build it.
TRACED := $(B)/traced
$(TRACED): Tools/runloop/Tests/traced.c $(STATIC)
	$(SAY) CC $@
	$(Q)$(COMPILE_PROGRAM) -o $@ $< $(PROGRAM_LIBS)

# A process whose loops are known, also for Tools/gdb/Sources and Tools/bpftrace/Sources.
DEBUGGED := $(B)/debugged
$(DEBUGGED): Tools/gdb/Tests/debugged.c $(SHARED) $(B)/libcorerunloop.so
	$(SAY) CC $@
	$(Q)$(COMPILE_PROGRAM) -g -rdynamic -o $@ $< -L$(B) -lcorerunloop

check-trace: $(RUNLOOP_TESTING) $(TRACED)
	$(Q)Tools/runloop/Tests/test_runloop $(RUNLOOP_TESTING) $(TRACED)
	$(Q)Tools/runloop/Tests/test_page $(RUNLOOP_TESTING) $(TRACED)

check-top: $(RUNLOOP_TESTING) $(DEBUGGED)
	$(Q)Tools/runloop/Tests/test_top $(RUNLOOP_TESTING) $(SHARED) $(DEBUGGED)
