# SPDX-License-Identifier: Apache-2.0
#
# The command runloop. It reads files and needs nothing of the library. The page of its traces is a file of its own, which the command carries.

### check-runloop    tests the command runloop, its page in a browser if chromium is here, and runloop top

RUNLOOP := $(B)/runloop
WING_CHECKS += check-runloop

all: $(RUNLOOP)
$(RUNLOOP): $(wildcard Tools/runloop/Sources/*.[ch]) Tools/runloop/Sources/viewer.html Sources/CCoreRunLoop/Loop/Trace/trace_file.h \
	Sources/CCoreRunLoop/Loop/Trace/statistics_file.h $(B)/flags
	$(SAY) CC $@
	$(Q)$(CC) $(CPPFLAGS) $(OWN_CFLAGS) $(CFLAGS) $(FLAVOUR_FLAGS) $(LDFLAGS) -DVIEWER='"Tools/runloop/Sources/viewer.html"' -o $@ $(filter %.c,$^) \
	$(OWN_LDFLAGS) -lm $(TEST_LIBS)

# As a user would build it.
TRACED := $(B)/traced
$(TRACED): Tools/runloop/Tests/traced.c $(STATIC)
	$(SAY) CC $@
	$(Q)$(COMPILE_PROGRAM) -o $@ $< $(PROGRAM_LIBS)

.PHONY: check-runloop
check-runloop: $(RUNLOOP) $(TRACED) $(DEBUGGED)
	$(Q)Tools/runloop/Tests/test_runloop $(RUNLOOP) $(TRACED)
	$(Q)Tools/runloop/Tests/test_page $(RUNLOOP) $(TRACED)
	$(Q)Tools/runloop/Tests/test_top $(RUNLOOP) $(SHARED) $(DEBUGGED)

install:: all
	$(Q)$(INSTALL) -d $(D_COMPLETION)
	$(Q)$(INSTALL) -m 755 $(RUNLOOP) $(D_BIN)/
	$(Q)$(INSTALL) -m 644 Tools/runloop/Sources/runloop.1 $(D_MAN)/man1/
	$(Q)$(INSTALL) -m 644 Tools/runloop/Sources/completion.bash $(D_COMPLETION)/runloop
uninstall::
	$(Q)rm -f $(D_BIN)/runloop $(D_MAN)/man1/runloop.1 $(D_COMPLETION)/runloop
