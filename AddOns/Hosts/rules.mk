# SPDX-License-Identifier: Apache-2.0
#
# Run loops inside GLib, libuv and Qt: headers that a program compiles in, and products that SwiftPM builds.

### check-hosts      HOST_PARTS="c swift windows": cases in C with each host that is here; the Swift products; windows of GTK and Qt under Xvfb

HOST_HEADERS := $(sort $(wildcard AddOns/Hosts/Headers/*.h))
HOST_PARTS ?= c
HOST_CXX = $(patsubst %gcc,%g++,$(patsubst %clang,%clang++,$(firstword $(CC))))
HOST_PROGRAMS := $(if $(call has_packages,gio-unix-2.0),glib glib_source) $(if $(call has_packages,libuv),libuv) \
	$(if $(call has_packages,Qt6Core),$(if $(shell command -v $(HOST_CXX)),qt))
HOSTS_LEFT_OUT := $(filter-out $(HOST_PROGRAMS),glib glib_source libuv qt)
HOST_COMPILE = $(COMPILE_PROGRAM) -IAddOns/Hosts/Sources -IAddOns/Hosts/Tests/C/Interface
HOST_COMPILE_CXX = $(HOST_CXX) $(CPPFLAGS) -std=c++17 -fPIC -pthread $(WARNINGS_OF_PROGRAMS) -IHeaders -IAddOns/Hosts/Headers -IAddOns/Hosts/Tests/C/Interface $(CFLAGS) $(FLAVOUR_FLAGS)
HOST_CASES := $(B)/hosts/cases.o $(B)/hosts/failing_memory.o
HOST_WRAPS := -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc
HOST_NEEDS := $(HOST_HEADERS) $(wildcard AddOns/Hosts/Tests/C/*.h AddOns/Hosts/Tests/C/Interface/*.h AddOns/Hosts/Sources/*/*.h) $(HEADERS) $(B)/flags

$(HOST_CASES): $(B)/hosts/%.o: AddOns/Hosts/Tests/C/%.c $(HOST_NEEDS)
	@mkdir -p $(@D)
	$(SAY) CC $<
	$(Q)$(HOST_COMPILE) -c -o $@ $<
$(B)/hosts/glib $(B)/hosts/glib_source: HOST_PACKAGES = gio-unix-2.0
$(B)/hosts/libuv: HOST_PACKAGES = libuv
# What the Swift products declare of GLib and libuv is compared with their headers.
$(B)/hosts/glib: AddOns/Hosts/Tests/C/GLib/glib.c AddOns/Hosts/Tests/C/GLib/glib_declarations.c
$(B)/hosts/libuv: AddOns/Hosts/Tests/C/Libuv/libuv.c AddOns/Hosts/Tests/C/Libuv/libuv_declarations.c
$(B)/hosts/glib_source: AddOns/Hosts/Tests/C/glib_source.c $(B)/hosts/failing_memory.o
$(B)/hosts/glib $(B)/hosts/libuv: $(HOST_CASES)
$(B)/hosts/glib $(B)/hosts/glib_source $(B)/hosts/libuv: $(HOST_NEEDS) $(STATIC)
	@mkdir -p $(@D)
	$(SAY) CC $@
	$(Q)$(HOST_COMPILE) $$(pkg-config --cflags $(HOST_PACKAGES)) -o $@ $(filter %.c %.o,$^) $(HOST_WRAPS) $(PROGRAM_LIBS) $$(pkg-config --libs $(HOST_PACKAGES))
$(B)/hosts/qt: AddOns/Hosts/Tests/C/Qt/qt.cpp $(HOST_CASES) $(HOST_NEEDS) $(STATIC)
	@mkdir -p $(@D)
	$(SAY) CXX $@
	$(Q)$(HOST_COMPILE_CXX) $$(pkg-config --cflags Qt6Core | sed 's/-I/-isystem /g') -o $@ $< $(HOST_CASES) $(HOST_WRAPS) $(LDFLAGS) $(PROGRAM_LIBS) $$(pkg-config --libs Qt6Core)

.PHONY: check-hosts
WING_CHECKS += check-hosts
WING_CHECK_NEEDS += $(HOST_PROGRAMS:%=$(B)/hosts/%)
check-hosts: $(HOST_PROGRAMS:%=$(B)/hosts/%)
	$(Q)$(if $(strip $(HOSTS_LEFT_OUT)),echo "$@: passed over$(COMMA) there is no host here for $(strip $(HOSTS_LEFT_OUT)) (make deps-hosts)";) \
	$(WITHOUT_CC) AddOns/Hosts/Tests/check-hosts $(B)/hosts $(HOST_PARTS)

install::
	$(Q)$(INSTALL) -d $(D_INCLUDE)
	$(Q)$(INSTALL) -m 644 $(HOST_HEADERS) $(D_INCLUDE)/
