# SPDX-License-Identifier: Apache-2.0
#
# The overlay's documentation, made by docc, and the man pages, made from the public headers.

.PHONY: docs man
docs:
	$(Q)scripts/make-docs

man: build/man/made
build/man/made: $(HEADERS) scripts/make-man scripts/declarations.py
	$(Q)rm -rf build/man && mkdir -p build/man/man3 build/man/man7
	$(Q)if command -v $(PYTHON) > /dev/null; then $(PYTHON) scripts/make-man build/man $(VERSION); else echo "man: there is no $(PYTHON) here, no pages"; fi
	$(Q)if command -v groff > /dev/null; then ! groff -ww -man -Tutf8 -z build/man/man*/* 2>&1 | grep -v "cannot adjust line"; else echo "man: groff is not installed, pages not checked"; fi
	@touch $@

### check-documents  runs the programs of docs/tutorial.md and docs/cookbook.md and compares what they print, and compiles the C of the other
###                  pages; check-swift runs those in Swift

# A callback in these programs has parameters that it does not use.
.PHONY: check-documents
LIBRARY_CHECKS += check-documents
check-documents: $(plist_STATIC) $(services_STATIC) $(STATIC)
	$(Q)$(PYTHON) scripts/check-documents --jobs $(TEST_JOBS) --c "$(COMPILE_PROGRAM) -Wno-unused-parameter" "$(plist_STATIC) $(services_STATIC) $(PROGRAM_LIBS)"
