# SPDX-License-Identifier: Apache-2.0
#
# The Debian packages and releases. They need the packages of `make deps-deb`, and are no part of `make check`.

### deb              builds the Debian packages, source and binary, into build/deb
### check-deb        builds them again and compares, runs lintian, and installs, tests and removes them in a new Debian system (as root)
### check-release    tests what stops a release
### release          VERSION=x.y.z: checks the tree, builds a tarball and packages, and compares the interface with the last release

.PHONY: deb check-deb release check-release
deb:
	$(Q)scripts/make-deb $(CURDIR)/build/deb
check-deb: deb
	$(Q)scripts/check-deb $(CURDIR)/build/deb
check-release:
	$(Q)debian/test_release
release: check-release
	$(Q)scripts/release "$(if $(filter command%,$(origin VERSION)),$(VERSION))"
