# SPDX-License-Identifier: Apache-2.0
#
# Traces of this library, compared with traces of the Swift toolchain's Core Foundation where there is one.

### conformance      compares traces with those of the Swift toolchain's Core Foundation

# The script builds two programs: one with the toolchain's Core Foundation, and one with this library.
.PHONY: conformance
LIBRARY_CHECKS += conformance
LIBRARY_CHECK_NEEDS += $(STATIC)
conformance: $(STATIC)
	$(Q)CC="$(CC)" Tests/Conformance/run --library $(STATIC) --build $(B)/conformance --jobs $(TEST_JOBS)

# A wing's own comparison with the toolchain, as bench-NAME: a recipe, and what it needs.
conformance-%: $$(conformance-$$*_NEEDS)
	$(if $(filter $*,$(CONFORMANCES)),,$(error there is no conformance-$*; there are $(CONFORMANCES)))
	$(conformance-$*)
