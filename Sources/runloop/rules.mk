# SPDX-License-Identifier: Apache-2.0
#
# The command runloop. It reads files and needs nothing of the library. The page of its traces is a file of its own, which the command carries.

### check-trace      tests the command runloop, and the page in a browser if chromium is here

### check-top        tests runloop top, with a program whose loop is known and with files that nobody should believe

.PHONY: check-trace check-top
$(RUNLOOP): $(wildcard Sources/runloop/*.[ch]) Sources/runloop/viewer.html Sources/CCoreRunLoop/Loop/Trace/trace_file.h \
	Sources/CCoreRunLoop/Loop/Trace/statistics_file.h $(B)/flags
	$(SAY) CC $@
	$(Q)$(CC) $(CPPFLAGS) $(OWN_CFLAGS) $(CFLAGS) $(FLAVOUR_FLAGS) $(LDFLAGS) -DVIEWER='"Sources/runloop/viewer.html"' -o $@ $(filter %.c,$^) \
	$(OWN_LDFLAGS) -lm $(TEST_LIBS)

# As a user would build it.
TRACED := $(B)/traced
$(TRACED): Tests/Tool/traced.c $(STATIC)
	$(SAY) CC $@
	$(Q)$(COMPILE_PROGRAM) -o $@ $< $(PROGRAM_LIBS)

# A process whose loops are known, also for Sources/gdb and Sources/bpftrace.
DEBUGGED := $(B)/debugged
$(DEBUGGED): Tests/Tool/debugged.c $(SHARED) $(B)/libcorerunloop.so
	$(SAY) CC $@
	$(Q)$(COMPILE_PROGRAM) -g -rdynamic -o $@ $< -L$(B) -lcorerunloop

check-trace: $(RUNLOOP) $(TRACED)
	$(Q)Tests/Tool/test_runloop $(RUNLOOP) $(TRACED)
	$(Q)Tests/Tool/test_page $(RUNLOOP) $(TRACED)

check-top: $(RUNLOOP) $(DEBUGGED)
	$(Q)Tests/Tool/test_top $(RUNLOOP) $(SHARED) $(DEBUGGED)
