# SPDX-License-Identifier: Apache-2.0
#
# The add-on library libcorerunloop-plist: property lists.

### check-plist      the tests of property lists; TEST_FLAGS="--filter NAME" picks some
### bench-plist      files of ten megabytes beside the toolchain and libplist; BENCH_ARGUMENTS=ROUNDS
### conformance-plist   random trees and odd inputs beside the Swift toolchain's Core Foundation; PLIST_TREES=1000

plist_TEST_PARTS := Stream/stream_recorder
$(call add_on_library,PropertyLists,plist)
# Calls on files that fail in their turn (failing_files.c).
$(plist_RUNNER): RUNNER_LDFLAGS += $(patsubst %,-Wl$(COMMA)--wrap=%,open open64 read write fsync ftruncate ftruncate64 fchmod rename link \
	stat stat64 fstat fstat64 flopenat gethostname opendir realpath readlink dlopen)

# libCoreFoundation.so has it inside.
$(PLAIN): $(B)/plain/plist-whole.o
$(B)/plain/plist-names: $(B)/plain/names $(plist_SHARED)
	$(Q){ cat $<; $(TOOLS)nm -D --defined-only $(plist_SHARED) | sed -n 's/.* crl_\(.*\)/crl_\1 \1/p'; } > $@
$(B)/plain/plist-whole.o: $(B)/plist-whole.o $(B)/plain/plist-names
	$(Q)$(OBJCOPY) --redefine-syms=$(B)/plain/plist-names $< $@

WING_CHECKS += conformance-plist
WING_CHECK_NEEDS += $(plist_STATIC) $(STATIC)
PLIST_TREES ?= 1000
conformance-plist_NEEDS = $(plist_STATIC) $(STATIC)
define conformance-plist
$(Q)CC="$(CC)" AddOns/PropertyLists/Tests/Conformance/run --build $(B)/conformance-plist \
	--libraries "$(conformance-plist_NEEDS)" --trees $(PLIST_TREES) --first $(SEED)
$(Q)CC="$(CC)" AddOns/PropertyLists/Tests/Conformance/run-zones --build $(B)/conformance-plist --libraries "$(conformance-plist_NEEDS)"
$(Q)CC="$(CC)" AddOns/PropertyLists/Tests/Conformance/run-bundles --build $(B)/conformance-plist --libraries "$(conformance-plist_NEEDS)"
endef
CONFORMANCES += plist

BENCHMARKS += plist
bench-plist_NEEDS = $(plist_STATIC) $(STATIC)
bench-plist = $(Q)CC="$(CC)" AddOns/PropertyLists/Benchmarks/run $(B)/bench/plist "$(plist_STATIC) $(STATIC)" $(BENCH_ARGUMENTS)
