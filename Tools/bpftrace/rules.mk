# SPDX-License-Identifier: Apache-2.0
#
# Scripts for bpftrace. They use the library's static probes, which are there if sys/sdt.h was when it was built.

### check-bpftrace   tests the static probes with gdb, and the scripts with bpftrace if it is here and allowed

D_SCRIPTS = $(DESTDIR)$(PREFIX)/share/corerunloop/bpftrace
WING_CHECKS += check-bpftrace

.PHONY: check-bpftrace
check-bpftrace: $(B)/debugged
	$(Q)Tools/bpftrace/Tests/test_probes $(SHARED) $(DEBUGGED)

install:: all
	$(Q)$(INSTALL) -d $(D_SCRIPTS)
	$(Q)$(INSTALL) -m 755 Tools/bpftrace/Sources/*.bt $(D_SCRIPTS)/
uninstall::
	$(Q)rm -rf $(D_SCRIPTS)
