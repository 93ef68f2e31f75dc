# SPDX-License-Identifier: Apache-2.0
#
# What gdb knows of run loops. It needs no build; `make install` puts it beside the library, where gdb looks for it.

### check-gdb        tests the command crl-loops and the printers on a process and on a core file, if gdb is here

# gdb loads what lies here without being asked to trust it, for libraries in /usr. Elsewhere it looks beside the library.
GDBDIR ?= $(if $(filter /usr/lib%,$(LIBDIR)),/usr/share/gdb/auto-load)$(LIBDIR)
D_GDB = $(DESTDIR)$(GDBDIR)
WING_CHECKS += check-gdb

# A process whose loops are known. The tests of runloop top and of the probes use it, too.
DEBUGGED := $(B)/debugged
WING_CHECK_NEEDS += $(DEBUGGED)
$(DEBUGGED): Tools/gdb/Tests/debugged.c $(SHARED) $(B)/libcorerunloop.so
	$(SAY) CC $@
	$(Q)$(COMPILE_PROGRAM) -g -rdynamic -o $@ $< -L$(B) -lcorerunloop

.PHONY: check-gdb
check-gdb: $(DEBUGGED) $(B)/troubled
	$(Q)Tools/gdb/Tests/test_gdb Tools/gdb/Sources/corerunloop-gdb.py $(SHARED) $(DEBUGGED) $(B)/troubled

install:: all
	$(Q)$(INSTALL) -d $(D_GDB)
	$(Q)$(INSTALL) -m 644 Tools/gdb/Sources/corerunloop-gdb.py $(D_GDB)/$(notdir $(SHARED))-gdb.py
uninstall::
	$(Q)rm -f $(D_GDB)/$(notdir $(SHARED))-gdb.py
