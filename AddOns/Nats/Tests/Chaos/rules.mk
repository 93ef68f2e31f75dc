# SPDX-License-Identifier: Apache-2.0
#
# Bridges, servers of NATS and the programs behind them, killed and stopped. The history is judged by what Tests/Chaos judges it by.

### chaos-network    SECONDS=60 SEED=1 kills and stops the processes of three machines, cuts their links as root, and checks what arrives; needs nats-server
### check-chaos-network   the same for 5 seconds

.PHONY: chaos-network check-chaos-network
ifneq ($(HAS_NATS),)
$(call objects,chaos-network,AddOns/Nats/Tests/Chaos,-DCRL_TESTING -ITests/Chaos)
$(B)/chaos-network/chaos-network: $(B)/chaos-network/main.o $(B)/chaos-network/networks.o $(B)/chaos-network/roles.o $(B)/chaos/history.o $(STATIC)
	$(SAY) LINK $@
	$(Q)$(LINK) -o $@ $^ $(LIBS) $(TEST_LIBS)
chaos-network: $(B)/chaos-network/chaos-network $(BRIDGE)
	$(Q)$< $(BRIDGE) '$(SECONDS)' '$(SEED)'
check-chaos-network: $(B)/chaos-network/chaos-network $(BRIDGE)
	$(Q)$< $(BRIDGE) 5 '$(SEED)'
else
chaos-network check-chaos-network:
	@echo "$@: skipped, there is no libnats here (make deps)"
endif

-include $(B)/chaos-network/main.d $(B)/chaos-network/networks.d $(B)/chaos-network/roles.d
