# SPDX-License-Identifier: Apache-2.0
#
# What every add-on library in C has: libcorerunloop-NAME of the wing AddOns/FOLDER, its tests, its installation. NAME is FOLDER in small letters,
# unless it is said (then scripts/declarations.py says it too).
# The wing's rules.mk says
#   NAME_PACKAGES   what pkg-config has to find, each with its version in quotes, if anything
#   NAME_TEST_PARTS objects of Tests/CTests that its tests need besides TEST_PARTS, as Stream/stream_recorder
#   NAME_FUZZ_PARTS sources that its fuzz targets need besides those of the library
#   NAME_TEST_FLAGS flags of the compiler for its tests, and NAME_JOBS how many of its tests run at once
# and then $(call add_on_library,FOLDER) or $(call add_on_library,FOLDER,NAME). HAS_NAME is empty where a package is missing; the wing is then
# passed over with one line. The folder has Sources/CCoreRunLoopFOLDER and Tests/C (with folders in them, but no deeper), Fuzz,
# corerunloop-NAME.pc.in, and packages for `make deps-FOLDER`, in small letters, if it needs any.

# What is built for another architecture finds no library there, as pkg-config does not know that architecture's.
has_packages = $(if $(strip $(1)),$(if $(TOOLS),,$(shell pkg-config --exists $(1) 2> /dev/null && echo yes)),yes)
TEST_PARTS := harness fake_kernel Failure/nth_failure Failure/nth_failure_calls Failure/nth_failure_memory Loop/loop_probe Loop/loop_trace \
	Loop/give_back Port/port_probe

# The add-on libraries that can be built here.
ADD_ONS :=

in_small_letters = $(shell echo $(1) | tr A-Z a-z)
add_on_library = $(eval $(call add_on_rules,$(or $(2),$(call in_small_letters,$(1))),$(1),$(call in_small_letters,$(1))))
define add_on_rules
WING_CHECKS += check-$(1)
HAS_$(1) := $$(call has_packages,$$($(1)_PACKAGES))
$(1)_WING := AddOns/$(2)
$(1)_FOLDER := AddOns/$(2)/Sources/CCoreRunLoop$(2)
$(1)_CFLAGS := $$(if $$($(1)_PACKAGES),$$(if $$(HAS_$(1)),$$(shell pkg-config --cflags $$($(1)_PACKAGES)))) -I$$($(1)_FOLDER)
$(1)_LIBS := $$(if $$($(1)_PACKAGES),$$(if $$(HAS_$(1)),$$(shell pkg-config --libs $$($(1)_PACKAGES))))
$(1)_SOURCES := $$(sort $$(wildcard $$($(1)_FOLDER)/*.c $$($(1)_FOLDER)/*/*.c))
$(1)_OBJECTS := $$($(1)_SOURCES:$$($(1)_FOLDER)/%.c=$$(B)/$(1)/%.o)
$(1)_TESTING := $$($(1)_SOURCES:$$($(1)_FOLDER)/%.c=$$(B)/$(1)-testing/%.o)
$(1)_TESTS := $$(patsubst AddOns/$(2)/Tests/C/%.c,$$(B)/$(1)-tests/%.o,$$(sort $$(wildcard AddOns/$(2)/Tests/C/*.c AddOns/$(2)/Tests/C/*/*.c)))
$(1)_SHARED := $$(B)/libcorerunloop-$(1).so.$$(SOVERSION)
$(1)_STATIC := $$(B)/libcorerunloop-$(1).a
$(1)_RUNNER := $$(B)/run-tests-$(1)

.PHONY: check-$(1)
ifneq ($$(HAS_$(1)),)
ADD_ONS += $(1)
WING_CHECK_NEEDS += $$($(1)_RUNNER)
all: $$($(1)_SHARED) $$(B)/libcorerunloop-$(1).so $$($(1)_STATIC)

$$(call objects,$(1),$$($(1)_FOLDER),$$($(1)_CFLAGS))
$$(call objects,$(1)-testing,$$($(1)_FOLDER),-DCRL_TESTING $$($(1)_CFLAGS))
$$(call objects,$(1)-tests,AddOns/$(2)/Tests/C,-DCRL_TESTING $$($(1)_TEST_FLAGS) $$($(1)_CFLAGS) -ITests/CTests -IAddOns/$(2)/Tests/C)

# It is linked with the library's file, whose name it then asks for. -z nodelete: what it installs stays.
$$($(1)_SHARED): $$($(1)_OBJECTS) $$(SHARED)
	$$(SAY) LINK $$@
	$$(Q)$$(LINK) -shared -Wl,-soname,$$(@F) -Wl,-z,nodelete -Wl,-z,defs -Wl,-Bsymbolic-functions -o $$@ $$^ $$($(1)_LIBS) $$(LIBRARY_LIBS)

$$(B)/libcorerunloop-$(1).so: $$($(1)_SHARED)
	$$(Q)ln -sf $$(<F) $$@

$$(B)/$(1)-whole.o: $$($(1)_OBJECTS)
	$$(SAY) LD $$@
	$$(Q)$$(CC) $$(CFLAGS) -r -nostdlib -o $$@ $$^

$$($(1)_STATIC): $$(B)/$(1)-whole.o
	$$(call archive,corerunloop-$(1))

# The runner has the library and the add-on library in it, and of the other tests what these use.
$$($(1)_RUNNER): $$(TESTING_OBJECTS) $$($(1)_TESTING) $$($(1)_TESTS) $$(patsubst %,$$(B)/tests/%.o,$$(TEST_PARTS) $$($(1)_TEST_PARTS)) $$(B)/flags $$(B)/sources
	$$(SAY) LINK $$@
	$$(Q)$$(LINK) $$(RUNNER_LDFLAGS) -o $$@ $$(filter %.o,$$^) $$(LIBS) $$($(1)_LIBS) $$(TEST_LIBS)

check-$(1): $$($(1)_RUNNER)
	$$(Q)$$($(1)_RUNNER) --jobs $$(or $$($(1)_JOBS),$$(TEST_JOBS)) $$(TEST_FLAGS)

install:: all
	$$(Q)$$(INSTALL) -m 755 $$($(1)_SHARED) $$(D_LIB)/
	$$(Q)ln -sf $$(notdir $$($(1)_SHARED)) $$(D_LIB)/libcorerunloop-$(1).so
	$$(Q)$$(INSTALL) -m 644 $$($(1)_STATIC) $$(D_LIB)/
	$$(Q)$$(FILL_IN) AddOns/$(2)/corerunloop-$(1).pc.in > $$(D_LIB)/pkgconfig/corerunloop-$(1).pc
else
check-$(1):
	@echo "check-$(1): passed over, there is no $$($(1)_PACKAGES) here (make deps-$(3))"
install::
	@echo "install: without libcorerunloop-$(1), there is no $$($(1)_PACKAGES) here (make deps-$(3))"
endif
uninstall::
	$$(Q)rm -f $$(D_LIB)/libcorerunloop-$(1).so* $$(D_LIB)/libcorerunloop-$(1).a $$(D_LIB)/pkgconfig/corerunloop-$(1).pc

-include $$($(1)_OBJECTS:.o=.d) $$($(1)_TESTING:.o=.d) $$($(1)_TESTS:.o=.d)
endef
