# SPDX-License-Identifier: Apache-2.0
#
# What the commands share: their command lines, texts in JSON, the signals that stop them.

### check-files      tests the commands with every kind of file

WING_CHECKS += check-files

$(call objects,tools/command,Tools/command/Sources,)
COMMAND_OBJECTS := $(patsubst Tools/command/Sources/%.c,$(B)/tools/command/%.o,$(wildcard Tools/command/Sources/*.c))

.PHONY: check-files
check-files: $(B)/runloop-testing $(B)/traced $(B)/messageport $(if $(HAS_nats),$(B)/messageport-bridge)
	$(Q)Tools/command/Tests/test_files $^

-include $(COMMAND_OBJECTS:.o=.d)
