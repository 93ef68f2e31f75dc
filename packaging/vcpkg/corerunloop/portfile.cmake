# SPDX-License-Identifier: Apache-2.0
# An overlay port that builds the tree it lies in, for its static libraries. libbsd-dev is the system's.
vcpkg_check_linkage(ONLY_STATIC_LIBRARY)
get_filename_component(TREE "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
file(COPY "${TREE}/" DESTINATION "${CURRENT_BUILDTREES_DIR}/src" PATTERN ".git" EXCLUDE PATTERN "build" EXCLUDE PATTERN ".build" EXCLUDE)

foreach(_kind IN ITEMS "rel||-O2" "dbg|/debug|-O0 -g")
  string(REGEX MATCH "^(.*)[|](.*)[|](.*)$" _ "${_kind}")
  set(_prefix "${CURRENT_PACKAGES_DIR}${CMAKE_MATCH_2}")
  vcpkg_execute_required_process(
    COMMAND make -j${VCPKG_CONCURRENCY} install "CFLAGS=${CMAKE_MATCH_3}" "PREFIX=${_prefix}" "MANDIR=${_prefix}/share/man" "B=build/vcpkg-${CMAKE_MATCH_1}"
    WORKING_DIRECTORY "${CURRENT_BUILDTREES_DIR}/src"
    LOGNAME "install-${TARGET_TRIPLET}-${CMAKE_MATCH_1}")
endforeach()

file(GLOB _shared "${CURRENT_PACKAGES_DIR}/lib/*.so*" "${CURRENT_PACKAGES_DIR}/debug/lib/*.so*")
file(REMOVE_RECURSE ${_shared} "${CURRENT_PACKAGES_DIR}/lib/corerunloop" "${CURRENT_PACKAGES_DIR}/debug/lib/corerunloop"
  "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share" "${CURRENT_PACKAGES_DIR}/debug/bin")
vcpkg_cmake_config_fixup(PACKAGE_NAME CoreRunLoop CONFIG_PATH lib/cmake/CoreRunLoop)
vcpkg_fixup_pkgconfig()
vcpkg_copy_tools(TOOL_NAMES messageport runloop AUTO_CLEAN)
vcpkg_install_copyright(FILE_LIST "${TREE}/LICENSE")
