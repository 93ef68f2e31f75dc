# SPDX-License-Identifier: Apache-2.0
#
# The command messageport. It links the library's objects themselves, because it reads the directory of port names, which is not public.

### check-messageport   tests the command messageport

TOOL := $(B)/messageport
COMPLETIONDIR ?= $(PREFIX)/share/bash-completion/completions
D_COMPLETION = $(DESTDIR)$(COMPLETIONDIR)
WING_CHECKS += check-messageport

all: $(TOOL)
$(call objects,tools/messageport,Tools/messageport/Sources,-ITools/command/Sources)
TOOL_OBJECTS := $(patsubst Tools/messageport/Sources/%.c,$(B)/tools/messageport/%.o,$(wildcard Tools/messageport/Sources/*.c))
$(TOOL): $(TOOL_OBJECTS) $(COMMAND_OBJECTS) $(B)/whole.o
	$(SAY) LINK $@
	$(Q)$(LINK) -o $@ $^ $(LIBS) $(TEST_LIBS)

.PHONY: check-messageport
check-messageport: $(TOOL)
	$(Q)Tools/messageport/Tests/test_messageport $(TOOL)

install:: all
	$(Q)$(INSTALL) -d $(D_COMPLETION)
	$(Q)$(INSTALL) -m 755 $(TOOL) $(D_BIN)/
	$(Q)$(INSTALL) -m 644 Tools/messageport/Sources/messageport.1 $(D_MAN)/man1/
	$(Q)$(INSTALL) -m 644 Tools/messageport/Sources/completion.bash $(D_COMPLETION)/messageport
uninstall::
	$(Q)rm -f $(D_BIN)/messageport $(D_MAN)/man1/messageport.1 $(D_COMPLETION)/messageport

-include $(TOOL_OBJECTS:.o=.d)
