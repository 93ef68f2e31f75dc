# SPDX-License-Identifier: Apache-2.0
#
# Servers and clients of message ports that are killed, stopped, attacked, short of descriptors and without their directory. What they did is
# judged afterwards, and the judge (Tests/ChaosJudge) with histories that have a known fault.

### soak-chaos       SECONDS=60 SEED=1 kills, stops and attacks servers and clients of message ports, and checks what arrives
### soak-judge       gives the judge of the chaos histories with each kind of violation, which it has to find

SECONDS ?= 60
CHAOS_SOURCES := $(sort $(wildcard Tests/Chaos/*.c))
CHAOS_OBJECTS := $(CHAOS_SOURCES:Tests/Chaos/%.c=$(B)/chaos/%.o)
$(call objects,chaos,Tests/Chaos,-DCRL_TESTING)
$(call objects,chaos-judge,Tests/ChaosJudge,-ITests/Chaos)

$(B)/chaos/chaos: $(CHAOS_OBJECTS) $(TESTING_OBJECTS)
	$(SAY) LINK $@
	$(Q)$(LINK) -o $@ $^ $(LIBS) $(TEST_LIBS)
$(B)/chaos-judge/chaos-judge: $(B)/chaos-judge/main.o $(B)/chaos/history.o
	$(SAY) LINK $@
	$(Q)$(LINK) -o $@ $^ $(TEST_LIBS)

SOAK += judge chaos
soak-judge_NEEDS = $(B)/chaos-judge/chaos-judge
soak-judge = $(Q)$<
# The processes complain about each other, as expected. Their complaints go to a log, whose end is shown after a failure.
soak-chaos_NEEDS = $(B)/chaos/chaos
soak-chaos = $(Q)$< '$(SECONDS)' '$(SEED)' 2> $<.log || { status=$$?; tail -n 20 $<.log >&2; exit $$status; }

-include $(CHAOS_OBJECTS:.o=.d) $(B)/chaos-judge/main.d
