# SPDX-License-Identifier: Apache-2.0
#
# Scripts for bpftrace. They use the library's static probes, which are there if sys/sdt.h was when it was built.

### check-probes     tests the static probes with gdb, and the scripts with bpftrace if it is here and allowed

.PHONY: check-probes
check-probes: $(DEBUGGED)
	$(Q)Tools/bpftrace/Tests/test_probes $(SHARED) $(DEBUGGED)
