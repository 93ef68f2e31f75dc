# SPDX-License-Identifier: Apache-2.0
#
# Fuzz targets for libFuzzer, with AddressSanitizer and UndefinedBehaviorSanitizer: of the library in this folder, of an add-on in its wing.

### fuzz             runs each fuzz target for FUZZ_SECONDS=60 from SEED=1; FUZZ_TARGETS="program wire" picks some; after deps-fuzz

.PHONY: fuzz
FUZZ_SECONDS ?= 60
# A target of an add-on needs the objects of that add-on, and its libraries.
FUZZ_SOURCES := $(wildcard Fuzz/fuzz_*.c $(foreach name,$(ADD_ONS),$($(name)_WING)/Fuzz/fuzz_*.c))
FUZZ_TARGETS ?= $(patsubst fuzz_%.c,%,$(notdir $(FUZZ_SOURCES))) $(FUZZ_TARGETS_OF_ADD_ONS)
FUZZ_CC ?= clang
FUZZ_ENGINE ?= -fsanitize=fuzzer
FUZZ_FLAGS := -fuse-ld=lld -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
FUZZ_PARTS := $(SOURCES) $(filter-out Tests/Model/main.c Tests/Model/shrink.c,$(MODEL_SOURCES)) Tests/CTests/fake_kernel.c
# The command runloop, but for its main function and what the target has in the place of others.
FUZZ_trace_PARTS := $(patsubst %,Tools/runloop/Sources/%.c,allocation csv html lateness pair_table perfetto reading requests story usage words Stacks/stack_reading Stacks/stacks Why/findings Why/why) \
	Tools/command/Sources/json_string.c
FUZZ_symbols_PARTS := Tools/runloop/Sources/Names/demangle.c
FUZZ_INCLUDES := -ITests/CTests -ITests/Model -IFuzz -ITools/command/Sources -ITools/runloop/Sources $(if $(HAS_libdw),-DHAS_LIBDW) -DVIEWER='"Tools/runloop/Sources/viewer.html"'
fuzz_objects = $(1:%.c=build/fuzz/%.o)
build/fuzz/%.o: %.c
	@mkdir -p $(@D)
	$(Q)$(FUZZ_CC) -std=gnu11 -pthread -w $(INCLUDES) -DCRL_TESTING $(FUZZ_INCLUDES) $(foreach name,$(ADD_ONS),$($(name)_CFLAGS) -I$($(name)_WING)/Tests/C) \
	$(FUZZ_FLAGS) -fsanitize=fuzzer-no-link -MMD -MP -c -o $@ $<
define fuzz_rule
build/fuzz/$(notdir $(1:.c=)): $(call fuzz_objects,$(1) $(FUZZ_PARTS) $(2))
	$$(Q)$(FUZZ_CC) $(FUZZ_FLAGS) $(FUZZ_ENGINE) -pthread -o $$@ $$^ $(LIBS) $(3)
endef
$(foreach source,$(wildcard Fuzz/fuzz_*.c),$(eval $(call fuzz_rule,$(source),$(FUZZ_$(source:Fuzz/fuzz_%.c=%)_PARTS),$(if $(filter Fuzz/fuzz_symbols.c,$(source)),$(RUNLOOP_LIBS)))))
$(foreach name,$(ADD_ONS),$(foreach source,$(wildcard $($(name)_WING)/Fuzz/fuzz_*.c),$(eval $(call fuzz_rule,$(source),$($(name)_SOURCES) $($(name)_FUZZ_PARTS),$($(name)_LIBS)))))
fuzz: $(FUZZ_TARGETS:%=build/fuzz/fuzz_%)
	$(Q)Fuzz/run '$(FUZZ_SECONDS)' '$(SEED)' $^
-include $(patsubst %.c,build/fuzz/%.d,$(FUZZ_SOURCES) $(FUZZ_PARTS) $(foreach name,$(ADD_ONS),$($(name)_SOURCES) $($(name)_FUZZ_PARTS)))
