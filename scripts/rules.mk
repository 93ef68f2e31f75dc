# SPDX-License-Identifier: Apache-2.0
#
# Checks of the sources and of the libraries' symbols, and the files that are written from the headers.

### format           formats the C sources by clang-format and the Swift sources by swift-format
### symbols          writes corerunloop.symbols, the files of link names and the names for Swift's importer

# Each library as one object, and as a shared one.
LINTED = $(SHARED) $(PLAIN) $(B)/whole.o $(foreach name,$(ADD_ONS),$($(name)_SHARED) $(B)/$(name)-whole.o)
COMMON_CHECKS := check-rules lint

.PHONY: lint format symbols
lint: $(LINTED)
	$(Q)scripts/lint --build $(B)

# .clang-format and .swift-format hold the style.
format:
	git ls-files 'Sources/*.[ch]' 'AddOns/*.[ch]' 'Tools/*.[ch]' | grep -v link_names.h | xargs clang-format -i
	if command -v swift-format > /dev/null; then swift-format format --in-place --recursive Package.swift Tests/*Tests AddOns/*/Tests/*Tests; fi

# The exported names and their names for Swift's importer come from the headers. The link names of private functions come from the built libraries.
symbols: $(LINTED)
	$(Q)scripts/check-symbols --update
	$(Q)scripts/check-swift-names --update
	$(Q)scripts/check-link-names --update $(B)
