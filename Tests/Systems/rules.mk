# SPDX-License-Identifier: Apache-2.0
#
# The library in systems of several years, as root.

### check-systems    makes Debian 11, 12, 13 and sid from apt's mirror, builds and tests in each, and on their kernels if qemu is there;
###                  after deps-systems. check-system-debian-13 is one alone; KERNELS=no leaves the kernels out. It is part of soak

SOAK += systems
soak-systems = $(Q)KERNELS="$(KERNELS)" TEST_JOBS=$(TEST_JOBS) TEST_FLAGS="$(TEST_FLAGS)" Tests/Systems/check-systems
check-system%:
	$(soak-systems) $(filter-out s,$(*:-%=%))
