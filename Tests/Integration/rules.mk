# SPDX-License-Identifier: Apache-2.0
#
# Tests of whole programs: examples that talk to real servers, the library with Apple's plain names, and a package in Swift that depends on this one.

### integration      runs the examples that talk to Redis, PostgreSQL, D-Bus, ZeroMQ and HTTP by libcurl; after deps-integration
### check-plain      libCoreFoundation.so through Python's ctypes
### check-install    a staged installation, and programs built against it
### check-swift-package   a package that depends on this one: linked dynamically, with a static Swift library, and all static

.PHONY: integration check-plain check-install check-swift-package
LIBRARY_CHECKS += check-plain
LIBRARY_CHECK_NEEDS += $(PLAIN)
WING_CHECKS += check-install
# Each test starts a server of its own on loopback or a Unix socket.
integration: examples
	$(Q)INTEGRATION_PROGRAMS=$(B)/examples PYTHONDONTWRITEBYTECODE=1 scripts/run-programs "integration ($(COMPILER))" 180 \
	$(sort $(wildcard Tests/Integration/test_*.py))

check-plain: $(PLAIN)
	$(Q)scripts/check-symbols --plain $(PLAIN)
	$(Q)$(PYTHON) Tests/PlainNames/test_plain_names.py $(PLAIN)

check-install: all
	$(Q)MAKE="$(MAKE)" CC="$(CC)" FLAVOUR="$(FLAVOUR)" Tests/Install/check-install

# The script also prints how large the programs are and which libraries they still load.
check-swift-package:
	$(Q)JOBS=$(TEST_JOBS) Tests/SwiftPackage/check-swift-package
