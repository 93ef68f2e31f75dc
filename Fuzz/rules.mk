# SPDX-License-Identifier: Apache-2.0
#
# Fuzz targets for clang's libFuzzer, with AddressSanitizer and UndefinedBehaviorSanitizer.

### fuzz             runs each target of Fuzz for FUZZ_SECONDS=60 from SEED=1; FUZZ_TARGETS="program wire" picks some
### fuzz-calls       the same for what decodes calls of distributed actors, in Swift

.PHONY: fuzz fuzz-calls
FUZZ_SECONDS ?= 60
FUZZ_NET_TARGETS := names tls
FUZZ_NATS_TARGETS := bridge
FUZZ_SOURCES := $(wildcard Fuzz/fuzz_*.c AddOns/*/Fuzz/fuzz_*.c)
FUZZ_TARGETS ?= $(filter-out $(if $(HAS_NET),,$(FUZZ_NET_TARGETS)) $(if $(HAS_NATS),,$(FUZZ_NATS_TARGETS)),$(patsubst fuzz_%.c,%,$(sort $(notdir $(FUZZ_SOURCES)))))
FUZZ_CC ?= clang
FUZZ_FLAGS := -fuse-ld=lld -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
FUZZ_PARTS := $(SOURCES) $(filter-out Tests/Model/main.c Tests/Model/shrink.c,$(MODEL_SOURCES)) Tests/CTests/fake_kernel.c
FUZZ_OBJECTS := $(FUZZ_PARTS:%.c=build/fuzz/%.o)
FUZZ_NET_OBJECTS := $(NET_SOURCES:%.c=build/fuzz/%.o)
build/fuzz/%.o: %.c
	@mkdir -p $(@D)
	$(Q)$(FUZZ_CC) -std=gnu11 -pthread -w $(INCLUDES) -DCRL_TESTING -ITests/CTests -ITests/Model -IFuzz -IAddOns/Net/Sources/CCoreRunLoopNet $(NET_CFLAGS) -IAddOns/Nats/Sources/CCoreRunLoopNats $(NATS_CFLAGS) $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link \
	-MMD -MP -c -o $@ $<
define fuzz_rule
build/fuzz/$(notdir $(1:.c=)): $(1:%.c=build/fuzz/%.o) $(FUZZ_OBJECTS)
	$$(Q)$(FUZZ_CC) $(FUZZ_FLAGS) -fsanitize=fuzzer -pthread -o $$@ $$^ $(LIBS) $$(if $$(filter $(FUZZ_NET_OBJECTS),$$^),$(NET_LIBS))
endef
$(foreach source,$(FUZZ_SOURCES),$(eval $(call fuzz_rule,$(source))))
$(FUZZ_NET_TARGETS:%=build/fuzz/fuzz_%): $(FUZZ_NET_OBJECTS)
# What decodes bytes needs nothing of cnats.
FUZZ_NATS_OBJECTS := $(addprefix build/fuzz/AddOns/Nats/Sources/CCoreRunLoopNats/,bridge_frame.o stream_api.o subject.o)
$(FUZZ_NATS_TARGETS:%=build/fuzz/fuzz_%): $(FUZZ_NATS_OBJECTS)
.SECONDARY: $(FUZZ_SOURCES:%.c=build/fuzz/%.o) $(FUZZ_OBJECTS) $(FUZZ_NET_OBJECTS) $(FUZZ_NATS_OBJECTS)
fuzz: $(FUZZ_TARGETS:%=build/fuzz/fuzz_%)
	$(Q)scripts/fuzz '$(FUZZ_SECONDS)' '$(SEED)' $^

# The files that read the bytes of calls need nothing of the rest.
FUZZ_CALLS := AddOns/Distributed/Fuzz/fuzz_calls.swift $(addprefix AddOns/Distributed/Sources/CoreRunLoopDistributed/,ActorCoding.swift CallFrame.swift CompactDecoder.swift CompactEncoder.swift \
	CompactFormat.swift MessagePortActorError.swift MessagePortActorID.swift)
build/fuzz/fuzz_calls: $(FUZZ_CALLS)
	@mkdir -p $(@D)
	$(Q)$(WITHOUT_CC) swiftc -swift-version 6 -parse-as-library -O -g -use-ld=lld -sanitize=fuzzer,address -module-name FuzzCalls -o $@ $^
fuzz-calls: build/fuzz/fuzz_calls
	$(Q)scripts/fuzz '$(FUZZ_SECONDS)' '$(SEED)' $^
-include $(FUZZ_OBJECTS:.o=.d) $(FUZZ_NET_OBJECTS:.o=.d) $(FUZZ_NATS_OBJECTS:.o=.d) $(FUZZ_SOURCES:%.c=build/fuzz/%.d)
