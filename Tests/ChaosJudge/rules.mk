# SPDX-License-Identifier: Apache-2.0
#
# The judge of Tests/Chaos, with histories that have a known fault.

### check-chaos-judge   gives the judge of the chaos runs histories with each kind of violation, which it has to find

.PHONY: check-chaos-judge
$(call objects,chaos-judge,Tests/ChaosJudge,-ITests/Chaos)

$(B)/chaos-judge/chaos-judge: $(B)/chaos-judge/main.o $(B)/chaos/history.o
	$(SAY) LINK $@
	$(Q)$(LINK) -o $@ $^ $(TEST_LIBS)
check-chaos-judge: $(B)/chaos-judge/chaos-judge
	$(Q)$<

-include $(B)/chaos-judge/main.d
