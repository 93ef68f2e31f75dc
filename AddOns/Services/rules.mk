# SPDX-License-Identifier: Apache-2.0
#
# The add-on library libcorerunloop-services: what files and folders report.

### check-services   the tests of services; TEST_FLAGS="--filter NAME" picks some

services_TEST_PARTS := Stream/stream_recorder
$(call add_on_library,Services)
