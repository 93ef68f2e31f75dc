# SPDX-License-Identifier: Apache-2.0
#
# The add-on library: names of hosts by c-ares, TLS by OpenSSL. Where their packages are missing it is passed over; `make deps` installs them.

### check-net        the tests of the add-on library; TEST_FLAGS="--filter NAME" picks some

NET_PACKAGES := libcares openssl
# Not for another architecture, whose libraries pkg-config does not know here.
HAS_NET := $(if $(TOOLS),,$(shell pkg-config --exists 'libcares >= 1.18' 'openssl >= 3.0' 2> /dev/null && echo yes))
NET_SOURCES := $(sort $(wildcard AddOns/Net/Sources/CCoreRunLoopNet/*.c))
NET_OBJECTS := $(NET_SOURCES:AddOns/Net/Sources/CCoreRunLoopNet/%.c=$(B)/net/%.o)
NET_TESTING_OBJECTS := $(NET_SOURCES:AddOns/Net/Sources/CCoreRunLoopNet/%.c=$(B)/net-testing/%.o)
NET_SHARED := $(B)/libcorerunloop-net.so.$(SOVERSION)
NET_STATIC := $(B)/libcorerunloop-net.a
NET_CFLAGS := $(if $(HAS_NET),$(shell pkg-config --cflags $(NET_PACKAGES)))
NET_LIBS := $(if $(HAS_NET),$(shell pkg-config --libs $(NET_PACKAGES)))
NET_RUNNER := $(B)/run-tests-net

.PHONY: check-net install-net uninstall-net
ifneq ($(HAS_NET),)
all: $(NET_SHARED) $(B)/libcorerunloop-net.so $(NET_STATIC)

$(call objects,net,AddOns/Net/Sources/CCoreRunLoopNet,$(NET_CFLAGS) -IAddOns/Net/Sources/CCoreRunLoopNet)
$(call objects,net-testing,AddOns/Net/Sources/CCoreRunLoopNet,-DCRL_TESTING $(NET_CFLAGS) -IAddOns/Net/Sources/CCoreRunLoopNet)

# It is linked with the library's file, whose name it then asks for. -z nodelete: the functions that it installs stay.
$(NET_SHARED): $(NET_OBJECTS) $(SHARED)
	$(SAY) LINK $@
	$(Q)$(LINK) -shared -Wl,-soname,$(@F) -Wl,-z,nodelete -Wl,-z,defs -Wl,-Bsymbolic-functions -o $@ $(NET_OBJECTS) $(SHARED) $(NET_LIBS)

$(B)/libcorerunloop-net.so: $(NET_SHARED)
	$(Q)ln -sf $(<F) $@

$(B)/net-whole.o: $(NET_OBJECTS)
	$(SAY) LD $@
	$(Q)$(CC) $(CFLAGS) -r -nostdlib -o $@ $(NET_OBJECTS)

$(NET_STATIC): $(B)/net-whole.o
	$(SAY) AR $@
	$(Q)$(OBJCOPY) --localize-hidden $< $(B)/corerunloop-net.o
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $(B)/corerunloop-net.o

# The runner has the library and the add-on library in it, and of the other tests what these use.
NET_TESTS := $(sort $(wildcard AddOns/Net/Tests/C/*.c))
NET_TEST_PARTS := harness fake_kernel Failure/nth_failure Failure/nth_failure_calls Failure/nth_failure_memory Loop/loop_probe Loop/loop_trace Loop/give_back Port/port_probe Stream/stream_recorder
NET_TEST_OBJECTS := $(NET_TESTS:AddOns/Net/Tests/C/%.c=$(B)/net-tests/%.o)
$(call objects,net-tests,AddOns/Net/Tests/C,-DCRL_TESTING $(NET_CFLAGS) -IAddOns/Net/Sources/CCoreRunLoopNet -ITests/CTests -IAddOns/Net/Tests/C)
$(NET_RUNNER): $(TESTING_OBJECTS) $(NET_TESTING_OBJECTS) $(NET_TEST_OBJECTS) $(NET_TEST_PARTS:%=$(B)/tests/%.o) $(B)/flags $(B)/sources
	$(SAY) LINK $@
	$(Q)$(LINK) $(RUNNER_LDFLAGS) -o $@ $(filter %.o,$^) $(LIBS) $(NET_LIBS) $(TEST_LIBS)

check-net: $(NET_RUNNER)
	$(Q)$(NET_RUNNER) --jobs $(TEST_JOBS) $(TEST_FLAGS)

install-net: all
	$(Q)$(INSTALL) -d $(D_LIB)/pkgconfig
	$(Q)$(INSTALL) -m 755 $(NET_SHARED) $(D_LIB)/
	$(Q)ln -sf $(notdir $(NET_SHARED)) $(D_LIB)/libcorerunloop-net.so
	$(Q)$(INSTALL) -m 644 $(NET_STATIC) $(D_LIB)/
	$(Q)$(FILL_IN) AddOns/Net/corerunloop-net.pc.in > $(D_LIB)/pkgconfig/corerunloop-net.pc
else
check-net:
	@echo "check-net: skipped, there is no $(NET_PACKAGES) here (make deps)"
install-net:
	@echo "install: without the add-on library, there is no $(NET_PACKAGES) here (make deps)"
endif

uninstall-net:
	$(Q)rm -f $(addprefix $(D_LIB)/,libcorerunloop-net.so libcorerunloop-net.so.$(SOVERSION) libcorerunloop-net.a pkgconfig/corerunloop-net.pc)

-include $(NET_OBJECTS:.o=.d) $(NET_TESTING_OBJECTS:.o=.d) $(NET_TEST_OBJECTS:.o=.d)
