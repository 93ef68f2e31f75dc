# SPDX-License-Identifier: Apache-2.0
#
# The add-on library libcorerunloop-nats, message ports across machines by cnats, and the program that the command `messageport bridge` runs.

### check-nats       the tests of the bridge, with a nats-server of their own; TEST_FLAGS="--filter NAME" picks some
### bench-nats       a request through two bridges beside one of cnats alone, one-way messages a second; BENCH_ARGUMENTS=10000000: the memory of
###                  two bridges over so many messages

nats_PACKAGES := 'libnats >= 3.4'
nats_TEST_FLAGS := -D_GNU_SOURCE
# They wait more than they compute.
nats_JOBS := 10
$(call add_on_library,Nats)

BRIDGE := $(B)/messageport-bridge
BRIDGE_OBJECTS := $(B)/tools/messageport-bridge/main.o $(patsubst %,$(B)/tools/command/%.o,command_line json_string regular_file stop_signal)
LIBEXECDIR ?= $(PREFIX)/libexec
UNITDIR ?= $(PREFIX)/lib/systemd/user
D_BRIDGE = $(DESTDIR)$(LIBEXECDIR)/corerunloop
D_UNIT = $(DESTDIR)$(UNITDIR)

ifneq ($(HAS_nats),)
all: $(BRIDGE)
$(call objects,tools/messageport-bridge,AddOns/Nats/Sources/messageport-bridge,-ITools/command/Sources)
$(BRIDGE): $(BRIDGE_OBJECTS) $(nats_STATIC) $(STATIC)
	$(SAY) LINK $@
	$(Q)$(LINK) -o $@ $^ $(nats_LIBS) $(LIBS)

install:: all
	$(Q)$(INSTALL) -d $(D_BRIDGE) $(D_UNIT)
	$(Q)$(INSTALL) -m 755 $(BRIDGE) $(D_BRIDGE)/
	$(Q)$(INSTALL) -m 644 AddOns/Nats/Sources/messageport-bridge/messageport-bridge.1 $(D_MAN)/man1/
	$(Q)$(FILL_IN) AddOns/Nats/Sources/messageport-bridge/messageport-bridge@.service.in > $(D_UNIT)/messageport-bridge@.service

# Bridges, servers of NATS and the programs behind them, killed and stopped. The history is judged by what Tests/Chaos judges it by.
CHAOS_NETWORK := $(B)/chaos-network/chaos-network
$(call objects,chaos-network,AddOns/Nats/Tests/Chaos,-DCRL_TESTING -ITests/Chaos)
$(CHAOS_NETWORK): $(patsubst %,$(B)/chaos-network/%.o,main networks roles) $(B)/chaos/history.o $(STATIC)
	$(SAY) LINK $@
	$(Q)$(LINK) -o $@ $^ $(LIBS) $(TEST_LIBS)
endif
uninstall::
	$(Q)rm -f $(D_BRIDGE)/messageport-bridge $(D_UNIT)/messageport-bridge@.service $(D_MAN)/man1/messageport-bridge.1

### soak-network     SECONDS=60 SEED=1 kills and stops the processes of three machines, cuts their links as root, and checks what arrives
SOAK += network
soak-network_NEEDS = $(if $(HAS_nats),$(CHAOS_NETWORK) $(BRIDGE))
soak-network = $(Q)$(if $(HAS_nats),$(CHAOS_NETWORK) $(BRIDGE) '$(SECONDS)' '$(SEED)',echo "$@: passed over, there is no libnats here (make deps-nats)")

BENCHMARKS += nats
bench-nats_NEEDS = $(STATIC) $(if $(HAS_nats),$(BRIDGE))
define bench-nats
$(Q)$(if $(HAS_nats),$(COMPILE_PROGRAM) -D_GNU_SOURCE -o $(B)/bench/bridge AddOns/Nats/Benchmarks/main.c $(PROGRAM_LIBS) $(nats_LIBS) && \
$(B)/bench/bridge $(BRIDGE) $(BENCH_ARGUMENTS),echo "bench-nats: passed over, there is no libnats here (make deps-nats)")
endef

-include $(BRIDGE_OBJECTS:.o=.d) $(patsubst %,$(B)/chaos-network/%.d,main networks roles)
