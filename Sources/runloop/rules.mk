# SPDX-License-Identifier: Apache-2.0
#
# The command runloop. It reads files and needs nothing of the library. The page of its traces is a file of its own, which the command carries.

### check-trace      tests the command runloop, and the page in a browser if chromium is here

.PHONY: check-trace
$(RUNLOOP): $(wildcard Sources/runloop/*.[ch]) Sources/runloop/viewer.html Sources/CCoreRunLoop/Loop/Trace/trace_file.h $(B)/flags
	$(SAY) CC $@
	$(Q)$(CC) $(CPPFLAGS) $(OWN_CFLAGS) $(CFLAGS) $(FLAVOUR_FLAGS) $(LDFLAGS) -DVIEWER='"Sources/runloop/viewer.html"' -o $@ $(filter %.c,$^) \
	$(OWN_LDFLAGS) -lm $(TEST_LIBS)

# As a user would build it.
TRACED := $(B)/traced
$(TRACED): Tests/Tool/traced.c $(STATIC)
	$(SAY) CC $@
	$(Q)$(COMPILE_PROGRAM) -o $@ $< $(PROGRAM_LIBS)

check-trace: $(RUNLOOP) $(TRACED)
	$(Q)Tests/Tool/test_runloop $(RUNLOOP) $(TRACED)
	$(Q)Tests/Tool/test_page $(RUNLOOP) $(TRACED)
