# SPDX-License-Identifier: Apache-2.0
#
# The command messageport. It links the library's objects themselves, because it reads the directory of port names, which is not public.

### check-tool       tests the command messageport

.PHONY: check-tool
$(TOOL): $(wildcard Tools/messageport/Sources/*.[ch] Tools/command/Sources/*.[ch]) $(B)/whole.o
	$(SAY) CC $@
	$(Q)$(CC) $(CPPFLAGS) $(OWN_CFLAGS) $(CFLAGS) $(FLAVOUR_FLAGS) $(LDFLAGS) -ITools/command/Sources -o $@ $(filter %.c,$^) $(B)/whole.o $(OWN_LDFLAGS) $(LIBS) $(TEST_LIBS)

check-tool: $(TOOL)
	$(Q)Tools/messageport/Tests/test_messageport $(TOOL)
