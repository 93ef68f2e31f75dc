# SPDX-License-Identifier: Apache-2.0
#
# The C tests under ThreadSanitizer, in a build that holds threads up at atomics and locks, in an order that a seed gives.

### schedule         runs the tests of loops, descriptors, sockets, streams and ports with SCHEDULES=3 seeds; soak-schedule with 100

.PHONY: schedule
SCHEDULES ?= 3
SCHEDULE_FLAGS ?= $(patsubst %,--filter /%/,Loop Port Descriptor Socket Stream) $(SCHEDULE_EXCEPT:%=--exclude %)
# These tests are about sizes, deaths of processes or durations. Schedule points would only make them slow.
SCHEDULE_EXCEPT := payloads_of_every replies_may_be_larger _killed_at_ stress_messages_leave a_flood_does_not through_all_deaths \
	a_hosted_run_has_the_trace
ifeq ($(FLAVOUR),schedule)
$(TESTING_OBJECTS): CPPFLAGS += -include Tests/Schedule/schedule_points.h
$(RUNNER): $(B)/schedule_point.o
$(B)/schedule_point.o: Tests/Schedule/schedule_point.c $(B)/flags
	$(SAY) CC $<
	$(Q)$(COMPILE) -o $@ $<
endif
schedule:
	$(Q)$(MAKE) --no-print-directory runner FLAVOUR=schedule
	$(Q)TSAN_OPTIONS=second_deadlock_stack=1:$$TSAN_OPTIONS Tests/Schedule/run-schedules '$(SCHEDULES)' build/$(COMPILER)-schedule/log \
	build/$(COMPILER)-schedule/run-tests --jobs $(TEST_JOBS) $(SCHEDULE_FLAGS) $(TEST_FLAGS)
SOAK += schedule
soak-schedule = $(Q)$(MAKE) --no-print-directory schedule SCHEDULES=100
