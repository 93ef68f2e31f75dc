# SPDX-License-Identifier: Apache-2.0
#
# Servers and clients of message ports that are killed, stopped, attacked, short of descriptors and without their directory.

### chaos            SECONDS=60 SEED=1 kills, stops and attacks servers and clients of message ports, and checks what arrives
### check-chaos      the same for 3 seconds

.PHONY: chaos check-chaos
SECONDS ?= 60
CHAOS_SOURCES := $(sort $(wildcard Tests/Chaos/*.c))
CHAOS_OBJECTS := $(CHAOS_SOURCES:Tests/Chaos/%.c=$(B)/chaos/%.o)
$(call objects,chaos,Tests/Chaos,-DCRL_TESTING)

$(B)/chaos/chaos: $(CHAOS_OBJECTS) $(TESTING_OBJECTS)
	$(SAY) LINK $@
	$(Q)$(LINK) -o $@ $^ $(LIBS) $(TEST_LIBS)

# The processes complain about each other, as expected. Their complaints go to a log, whose end is shown after a failure.
run_chaos = $(B)/chaos/chaos '$(1)' '$(SEED)' 2> $(B)/chaos/chaos.log || { status=$$?; tail -n 20 $(B)/chaos/chaos.log >&2; exit $$status; }
chaos: $(B)/chaos/chaos
	$(Q)$(call run_chaos,$(SECONDS))
check-chaos: $(B)/chaos/chaos
	$(Q)$(call run_chaos,3)

-include $(CHAOS_OBJECTS:.o=.d)
