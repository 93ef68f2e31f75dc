# SPDX-License-Identifier: Apache-2.0
#
# The library on a simulated kernel. Each simulated process is an image, a shared object with the library and the program that it runs. The
# simulation, one program, loads four images and plays kernel and scheduler for them.

### sim              SEEDS=2000 runs random programs of threads and processes on a simulated kernel; SEED=n replays one, with its trace
### check-sim        runs SEEDS=2000 of them, and tests that a replay is exact; soak-sim runs 100,000

.PHONY: sim check-sim
LIBRARY_CHECKS += check-sim
SEEDS ?= 2000
SIM := $(B)/simulation
SIM_SOURCES := $(addprefix Tests/Simulation/,files.c history.c main.c nodes.c plan.c scheduler.c sockets.c streams.c tables.c turns.c)
IMAGE_SOURCES := $(addprefix Tests/Simulation/,connections.c hostile.c image.c loops.c names.c pairs.c ports.c)
SIM_OBJECTS := $(SIM_SOURCES:Tests/Simulation/%.c=$(SIM)/%.o)
# The simulation has a futex of its own in the place of futex.c.
IMAGE_OBJECTS := $(IMAGE_SOURCES:Tests/Simulation/%.c=$(SIM)/%.o) \
	$(patsubst Sources/CCoreRunLoop/%.c,$(SIM)/library/%.o,$(filter-out %/Support/futex.c,$(SOURCES)))
IMAGES := $(foreach number,0 1 2 3,$(SIM)/process-$(number).so)
LIBRARY_CHECK_NEEDS += $(SIM)/simulate $(IMAGES)
$(call objects,simulation/library,Sources/CCoreRunLoop,-DCRL_TESTING -include Tests/Schedule/schedule_points.h)
$(call objects,simulation,Tests/Simulation,-DCRL_TESTING -ITests/Simulation -ITests/Schedule $$(SIM_VISIBILITY))
# The images call functions of the program, so the program exports them.
$(SIM_OBJECTS): SIM_VISIBILITY := -fvisibility=default
$(SIM)/simulate: $(SIM_OBJECTS)
	$(SAY) LINK $@
	$(Q)$(LINK) -rdynamic -o $@ $^ -ldl
# Each process needs a file of its own: the dynamic linker loads one file only once.
$(IMAGES): $(SIM)/process.so
	$(Q)cp $< $@
$(SIM)/process.so: $(IMAGE_OBJECTS)
	$(SAY) LINK $@
	$(Q)$(LINK) -shared -Wl,-Bsymbolic -Wl,--wrap=crl_source_take_mark -Wl,--wrap=pthread_once -o $@ $^ $(LIBS)

SIMULATE = $(SIM)/simulate --jobs $(TEST_JOBS)
sim: $(SIM)/simulate $(IMAGES)
ifeq ($(origin SEED),command line)
	$(Q)$(SIMULATE) --seed '$(SEED)' $(IMAGES)
else
	$(Q)$(SIMULATE) --seeds '$(SEEDS)' $(IMAGES)
endif
check-sim: $(SIM)/simulate $(IMAGES)
	$(Q)$(SIMULATE) --seeds '$(SEEDS)' $(IMAGES)
	$(Q)Tests/Simulation/test_replay $(SIM)/simulate $(IMAGES)
SOAK += sim
soak-sim_NEEDS = $(SIM)/simulate $(IMAGES)
soak-sim = $(Q)$(SIMULATE) --seeds 100000 $(IMAGES)

-include $(SIM_OBJECTS:.o=.d) $(IMAGE_OBJECTS:.o=.d)
