# SPDX-License-Identifier: Apache-2.0
#
# The add-on library libcorerunloop-plist: property lists.

### check-plist      the tests of property lists; TEST_FLAGS="--filter NAME" picks some

plist_TEST_PARTS := Stream/stream_recorder
$(call add_on_library,PropertyLists,plist)
