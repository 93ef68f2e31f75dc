# SPDX-License-Identifier: Apache-2.0
#
# The add-on library libcorerunloop-services: what files and folders report.

### check-services   the tests of services; TEST_FLAGS="--filter NAME" picks some

$(call add_on_library,Services)
