# SPDX-License-Identifier: Apache-2.0
#
# The add-on library for message ports across machines, by cnats, and the command's program. Where cnats is missing it is passed over;
# `make deps` installs it.

### check-nats       the tests of the bridge, with a nats-server of their own; TEST_FLAGS="--filter NAME" picks some

# Not for another architecture, whose libraries pkg-config does not know here.
HAS_NATS := $(if $(TOOLS),,$(shell pkg-config --exists 'libnats >= 3.4' 2> /dev/null && echo yes))
NATS_SOURCES := $(sort $(wildcard AddOns/Nats/Sources/CCoreRunLoopNats/*.c))
NATS_OBJECTS := $(NATS_SOURCES:AddOns/Nats/Sources/CCoreRunLoopNats/%.c=$(B)/nats/%.o)
NATS_TESTING_OBJECTS := $(NATS_SOURCES:AddOns/Nats/Sources/CCoreRunLoopNats/%.c=$(B)/nats-testing/%.o)
NATS_SHARED := $(B)/libcorerunloop-nats.so.$(SOVERSION)
NATS_STATIC := $(B)/libcorerunloop-nats.a
NATS_CFLAGS := $(if $(HAS_NATS),$(shell pkg-config --cflags libnats))
NATS_LIBS := $(if $(HAS_NATS),$(shell pkg-config --libs libnats))
NATS_RUNNER := $(B)/run-tests-nats
BRIDGE := $(B)/messageport-bridge
BRIDGE_OBJECTS := $(B)/messageport-bridge.d/main.o $(addprefix $(B)/messageport-bridge-common.d/,command_line.o json_string.o stop_signal.o)
LIBEXECDIR ?= $(PREFIX)/libexec
UNITDIR ?= $(PREFIX)/lib/systemd/user
D_BRIDGE = $(DESTDIR)$(LIBEXECDIR)/corerunloop
D_UNIT = $(DESTDIR)$(UNITDIR)

.PHONY: check-nats install-nats uninstall-nats
ifneq ($(HAS_NATS),)
all: $(NATS_SHARED) $(B)/libcorerunloop-nats.so $(NATS_STATIC) $(BRIDGE)

$(call objects,nats,AddOns/Nats/Sources/CCoreRunLoopNats,$(NATS_CFLAGS) -IAddOns/Nats/Sources/CCoreRunLoopNats)
$(call objects,nats-testing,AddOns/Nats/Sources/CCoreRunLoopNats,-DCRL_TESTING $(NATS_CFLAGS) -IAddOns/Nats/Sources/CCoreRunLoopNats)
$(call objects,messageport-bridge.d,AddOns/Nats/Sources/messageport-bridge,-ITools/command/Sources)
$(call objects,messageport-bridge-common.d,Tools/command/Sources,)

$(NATS_SHARED): $(NATS_OBJECTS) $(SHARED)
	$(SAY) LINK $@
	$(Q)$(LINK) -shared -Wl,-soname,$(@F) -Wl,-z,nodelete -Wl,-z,defs -Wl,-Bsymbolic-functions -o $@ $(NATS_OBJECTS) $(SHARED) $(NATS_LIBS) $(LIBRARY_LIBS)

$(B)/libcorerunloop-nats.so: $(NATS_SHARED)
	$(Q)ln -sf $(<F) $@

$(B)/nats-whole.o: $(NATS_OBJECTS)
	$(SAY) LD $@
	$(Q)$(CC) $(CFLAGS) -r -nostdlib -o $@ $(NATS_OBJECTS)

$(NATS_STATIC): $(B)/nats-whole.o
	$(SAY) AR $@
	$(Q)$(OBJCOPY) --localize-hidden $< $(B)/corerunloop-nats.o
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $(B)/corerunloop-nats.o

$(BRIDGE): $(BRIDGE_OBJECTS) $(NATS_STATIC) $(STATIC)
	$(SAY) LINK $@
	$(Q)$(LINK) -o $@ $^ $(NATS_LIBS) $(LIBS)

# The runner has the library and the add-on library in it, and of the other tests what these use.
NATS_TESTS := $(sort $(wildcard AddOns/Nats/Tests/C/*.c))
NATS_TEST_PARTS := harness fake_kernel Failure/nth_failure Failure/nth_failure_calls Failure/nth_failure_memory Loop/loop_probe Loop/loop_trace Loop/give_back Port/port_probe
NATS_TEST_OBJECTS := $(NATS_TESTS:AddOns/Nats/Tests/C/%.c=$(B)/nats-tests/%.o)
$(call objects,nats-tests,AddOns/Nats/Tests/C,-DCRL_TESTING -D_GNU_SOURCE $(NATS_CFLAGS) -IAddOns/Nats/Sources/CCoreRunLoopNats -ITests/CTests -IAddOns/Nats/Tests/C)
$(NATS_RUNNER): $(TESTING_OBJECTS) $(NATS_TESTING_OBJECTS) $(NATS_TEST_OBJECTS) $(NATS_TEST_PARTS:%=$(B)/tests/%.o) $(B)/flags $(B)/sources
	$(SAY) LINK $@
	$(Q)$(LINK) $(RUNNER_LDFLAGS) -o $@ $(filter %.o,$^) $(LIBS) $(NATS_LIBS) $(TEST_LIBS)

# Its tests wait more than they compute. Without a filter some chaos goes on beside them, where the programs are as users have them.
NATS_CHAOS := $(if $(TEST_FLAGS),,$(if $(filter release,$(FLAVOUR)),$(B)/chaos-network/chaos-network))
check-nats: $(NATS_RUNNER) $(NATS_CHAOS) $(if $(NATS_CHAOS),$(BRIDGE))
	$(Q)$(if $(NATS_CHAOS),{ $(NATS_CHAOS) $(BRIDGE) 3 '$(SEED)' > $(B)/chaos-network.log 2>&1 & chaos=$$!; },chaos=); \
	$(NATS_RUNNER) --jobs 10 $(TEST_FLAGS); status=$$?; \
	[ -z "$$chaos" ] || { wait $$chaos || status=1; grep '^chaos-network' $(B)/chaos-network.log; }; exit $$status

install-nats: all
	$(Q)$(INSTALL) -d $(D_LIB)/pkgconfig $(D_BRIDGE) $(D_UNIT) $(D_MAN)/man1
	$(Q)$(INSTALL) -m 755 $(NATS_SHARED) $(D_LIB)/
	$(Q)ln -sf $(notdir $(NATS_SHARED)) $(D_LIB)/libcorerunloop-nats.so
	$(Q)$(INSTALL) -m 644 $(NATS_STATIC) $(D_LIB)/
	$(Q)$(INSTALL) -m 755 $(BRIDGE) $(D_BRIDGE)/
	$(Q)$(INSTALL) -m 644 AddOns/Nats/Sources/messageport-bridge/messageport-bridge.1 $(D_MAN)/man1/
	$(Q)$(FILL_IN) AddOns/Nats/Sources/messageport-bridge/messageport-bridge@.service.in > $(D_UNIT)/messageport-bridge@.service
	$(Q)$(FILL_IN) AddOns/Nats/corerunloop-nats.pc.in > $(D_LIB)/pkgconfig/corerunloop-nats.pc
else
check-nats:
	@echo "check-nats: skipped, there is no libnats here (make deps)"
install-nats:
	@echo "install: without the bridge, there is no libnats here (make deps)"
endif

uninstall-nats:
	$(Q)rm -f $(addprefix $(D_LIB)/,libcorerunloop-nats.so libcorerunloop-nats.so.$(SOVERSION) libcorerunloop-nats.a pkgconfig/corerunloop-nats.pc)
	$(Q)rm -f $(D_BRIDGE)/messageport-bridge $(D_UNIT)/messageport-bridge@.service $(D_MAN)/man1/messageport-bridge.1

-include $(NATS_OBJECTS:.o=.d) $(NATS_TESTING_OBJECTS:.o=.d) $(NATS_TEST_OBJECTS:.o=.d) $(BRIDGE_OBJECTS:.o=.d)
