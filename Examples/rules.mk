# SPDX-License-Identifier: Apache-2.0
#
# The examples in C. Each folder is one program. Sources builds the examples in Swift.

### check-examples   builds the examples, and runs a loop hosted by epoll, a loop hosted by GLib, a chat server, an HTTP client, a job queue over three machines, a program with settings and the demonstration

.PHONY: demo examples check-examples
LIBRARY_CHECKS += check-examples
DEMO_SOURCES := $(wildcard Examples/demo.c Examples/demo/*.c)
$(B)/demo: $(DEMO_SOURCES) $(wildcard Examples/demo/*.h) $(STATIC)
	@mkdir -p $(@D)
	$(Q)$(COMPILE_PROGRAM) -o $@ $(DEMO_SOURCES) $(PROGRAM_LIBS)

# A second make runs the program, since scripts/deps may have installed the compiler that CC then names.
ifndef DEPS_ARE_THERE
demo:
	@scripts/deps build
	@$(MAKE) --no-print-directory demo DEPS_ARE_THERE=yes
else
demo: $(B)/demo
	@$(B)/demo $(DEMO_ARGUMENTS)
endif

# These are linked with an add-on library, whose packages are theirs.
$(B)/examples/http-client: $(net_STATIC)
$(B)/examples/job-queue: $(nats_STATIC)
$(B)/examples/settings: $(plist_STATIC)

# The file Examples/NAME/packages names the packages of pkg-config that the example needs. Where one is missing, the example is passed over.
packages_of = $(shell cat Examples/$(1)/packages 2> /dev/null)
flags_of = $(if $(call packages_of,$(1)),$(shell pkg-config $(2) $(call packages_of,$(1))))
is_missing = $(if $(call packages_of,$(1)),$(if $(shell pkg-config --exists $(call packages_of,$(1)) 2> /dev/null && echo yes),,yes))
EXAMPLE_NAMES := $(patsubst Examples/%/,%,$(sort $(dir $(wildcard Examples/*/*.c))))
EXAMPLES_LEFT_OUT := $(foreach name,$(EXAMPLE_NAMES),$(if $(call is_missing,$(name)),$(name)))
EXAMPLES := $(patsubst %,$(B)/examples/%,$(filter-out $(EXAMPLES_LEFT_OUT),$(EXAMPLE_NAMES)))
examples: $(EXAMPLES)
	$(Q)$(foreach name,$(EXAMPLES_LEFT_OUT),echo "examples: $(name) passed over, there is no $(call packages_of,$(name)) here (make deps-integration)";)
.SECONDEXPANSION:
$(B)/examples/%: $$(wildcard Examples/$$*/*.[ch]) $(STATIC)
	@mkdir -p $(@D)
	$(SAY) CC $@
	$(Q)$(COMPILE_PROGRAM) $(call flags_of,$*,--cflags) -o $@ $(filter %.c,$^) $(if $(filter %-net.a,$^),$(NET_PROGRAM_LIBS)) $(filter %-nats.a %-plist.a,$^) $(PROGRAM_LIBS) \
	$(call flags_of,$*,--libs)

# These examples end by themselves, and their exit status says whether all went well.
check-examples: examples
	$(Q)XDG_CONFIG_HOME=$(abspath $(B))/examples/preferences scripts/run-programs "examples ($(COMPILER))" 300 $(filter %-host %-server %-queue %/settings,$(EXAMPLES)) $(B)/examples/demo
	$(Q)INTEGRATION_PROGRAMS=$(B)/examples PYTHONDONTWRITEBYTECODE=1 scripts/run-programs "http-client ($(COMPILER))" 60 \
	Tests/Integration/test_http_client.py
