# SPDX-License-Identifier: Apache-2.0
#
# Projects that take the library in as source. Each compiles all of it, so this is no part of `make check`.

### check-embed      takes the tree into a project by add_subdirectory, FetchContent and a Meson wrap

.PHONY: check-embed
check-embed:
	$(Q)Tests/Embed/check-embed
