# SPDX-License-Identifier: Apache-2.0
#
# The executable specification: random programs run in a model and in the library, and must give the same traces.

### model-check      SEQUENCES=100000 SEED=1 runs random programs in the model and in the library; soak-model runs 10,000,000
### conformance-model  runs the same programs, without a clock, in the model and in the Swift toolchain's Core Foundation

.PHONY: model-check
LIBRARY_CHECKS += model-check
LIBRARY_CHECK_NEEDS += $(B)/model-check
SEQUENCES ?= 100000
MODEL_SOURCES := $(sort $(wildcard Tests/Model/*.c))
MODEL_OBJECTS := $(MODEL_SOURCES:Tests/Model/%.c=$(B)/model/%.o) $(B)/tests/fake_kernel.o
MODEL_LIBRARY := $(filter $(foreach layer,Support Runtime Kernel Loop,$(B)/testing/$(layer)/%),$(TESTING_OBJECTS))
$(call objects,model,Tests/Model,-DCRL_TESTING -ITests/CTests)

$(B)/model-check: $(MODEL_OBJECTS) $(MODEL_LIBRARY)
	$(SAY) LINK $@
	$(Q)$(LINK) -o $@ $^ $(LIBS) $(TEST_LIBS)

# Runs a program with a log of its errors, which is shown if the program fails.
run_model = $(1) '$(SEED)' '$(2)' 2> $(1).log || { status=$$?; cat $(1).log >&2; exit $$status; }
model-check: $(B)/model-check
	$(Q)$(call run_model,$(B)/model-check,$(SEQUENCES))
SOAK += model
soak-model_NEEDS = $(B)/model-check
soak-model = $(Q)$(call run_model,$(B)/model-check,10000000)

SWIFT_USR := $(wildcard $(dir $(realpath $(shell command -v swift)))..)
build/model-toolchain: $(MODEL_SOURCES) $(wildcard Tests/Model/*.h)
	@mkdir -p $(@D)
	$(Q)$(SWIFT_USR)/bin/clang -g -O1 -std=gnu11 -D_GNU_SOURCE -pthread -w -fblocks -DMODEL_TOOLCHAIN -I$(SWIFT_USR)/lib/swift -o $@ $(MODEL_SOURCES) \
	-L$(SWIFT_USR)/lib/swift/linux -Wl,-rpath,$(SWIFT_USR)/lib/swift/linux -lFoundation -ldispatch -lBlocksRuntime -lm

CONFORMANCES += model
ifneq ($(wildcard $(SWIFT_USR)/lib/swift/CoreFoundation/CoreFoundation.h),)
conformance-model_NEEDS = build/model-toolchain
conformance-model = $(Q)$(call run_model,build/model-toolchain,$(SEQUENCES))
else
conformance-model = @echo "conformance-model: skipped, there is no Swift toolchain here"
endif

-include $(MODEL_OBJECTS:.o=.d)
