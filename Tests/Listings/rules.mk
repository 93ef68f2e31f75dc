# SPDX-License-Identifier: Apache-2.0
#
# The listings of Apple's guide in C. Each is a program of its own with Apple's include lines, built as a user would build it.

### listings         runs the guide's listings

.PHONY: listings
LISTINGS := $(patsubst Tests/Listings/%.c,$(B)/listings/%,$(wildcard Tests/Listings/*.c))
$(B)/listings/%: Tests/Listings/%.c $(STATIC)
	@mkdir -p $(@D)
	$(SAY) CC $<
	$(Q)$(COMPILE_PROGRAM) -MMD -MP -o $@ $< $(PROGRAM_LIBS)

LIBRARY_CHECKS += listings
LIBRARY_CHECK_NEEDS += $(LISTINGS)
listings: $(LISTINGS)
	$(Q)scripts/run-programs "listings ($(COMPILER))" 300 $(LISTINGS)

-include $(LISTINGS:=.d)
