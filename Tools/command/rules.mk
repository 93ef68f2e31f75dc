# SPDX-License-Identifier: Apache-2.0
#
# What the commands share: their command lines, texts in JSON, the signals that stop them.

$(call objects,tools/command,Tools/command/Sources,)
COMMAND_OBJECTS := $(patsubst Tools/command/Sources/%.c,$(B)/tools/command/%.o,$(wildcard Tools/command/Sources/*.c))

-include $(COMMAND_OBJECTS:.o=.d)
