# SPDX-License-Identifier: Apache-2.0
#
# What gdb knows of run loops. It needs no build; `make install` puts it beside the library, where gdb looks for it.

### check-gdb        tests the command crl-loops and the printers on a process and on a core file, if gdb is here

.PHONY: check-gdb
check-gdb: $(DEBUGGED)
	$(Q)Tools/gdb/Tests/test_gdb Tools/gdb/Sources/corerunloop-gdb.py $(SHARED) $(DEBUGGED)
