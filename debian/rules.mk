# SPDX-License-Identifier: Apache-2.0
#
# The Debian packages and releases. They need the packages of `make deps-deb`, and are no part of `make check`.

### deb              builds the Debian packages, source and binary, into build/deb
### check-deb        builds them again and compares, runs lintian, and installs, tests and removes them in a new Debian system (as root)
### release          VERSION=x.y.z: checks the tree, builds a tarball and packages, and compares the interface with the last release

.PHONY: deb check-deb release
deb:
	$(Q)debian/make-deb $(CURDIR)/build/deb
check-deb: deb
	$(Q)debian/check-deb $(CURDIR)/build/deb
release:
	$(Q)debian/test_release
	$(Q)debian/release "$(if $(filter command%,$(origin VERSION)),$(VERSION))"
