# SPDX-License-Identifier: Apache-2.0
#
# The overlay's documentation, made by docc, the man pages, made from the public headers, and all documents as pages for a web server.

### site             writes all documents, the man pages and the overlay's documentation into build/site, for any web server, with a search

.PHONY: docs man site
docs:
	$(Q)scripts/make-docs

site: man
	@scripts/deps site
	$(Q)if command -v docc > /dev/null; then scripts/make-docs || exit 1; swift=build/docs; \
	else echo "site: there is no docc here, so the Swift interface is left out"; fi; docs/site/make-html build/site build/man $$swift

man: build/man/made
build/man/made: $(HEADERS) scripts/make-man scripts/declarations.py
	$(Q)rm -rf build/man && mkdir -p build/man/man3 build/man/man7
	$(Q)if command -v $(PYTHON) > /dev/null; then $(PYTHON) scripts/make-man build/man $(VERSION); else echo "man: there is no $(PYTHON) here, no pages"; fi
	$(Q)if command -v groff > /dev/null; then ! groff -ww -man -Tutf8 -z build/man/man*/* 2>&1 | grep -v "cannot adjust line"; else echo "man: groff is not installed, pages not checked"; fi
	@touch $@

### check-documents  runs the programs of docs/tutorial.md and docs/cookbook.md and compares what they print, and compiles the C of the other
###                  pages; makes the pages of `make site` twice alike, without a link that leads nowhere; check-swift runs those in Swift

# A callback in these programs has parameters that it does not use.
.PHONY: check-documents
LIBRARY_CHECKS += check-documents
check-documents: man $(plist_STATIC) $(services_STATIC) $(STATIC)
	$(Q)if command -v cmark-gfm > /dev/null && command -v mandoc > /dev/null; then for seed in 1 2; do \
	PYTHONHASHSEED=$$seed docs/site/make-html build/pages-$$seed build/man || exit 1; done; diff -r build/pages-1 build/pages-2; \
	else echo "check-documents: there is no cmark-gfm or no mandoc here, pages not checked (deps-site)"; fi
	$(Q)$(PYTHON) scripts/check-documents --jobs $(TEST_JOBS) --c "$(COMPILE_PROGRAM) -Wno-unused-parameter" "$(plist_STATIC) $(services_STATIC) $(PROGRAM_LIBS)"
