# cmake --install: headers, one library of all layers but the command line, the program, and what find_package(vitrail) and
# pkg-config need.
include(CMakePackageConfigHelpers)

get_property(layers GLOBAL PROPERTY VITRAIL_MODULES)
list(REMOVE_ITEM layers cli)
set(objects "")
foreach(layer IN LISTS layers)
  list(APPEND objects $<TARGET_OBJECTS:vitrail_${layer}>)
endforeach()

add_library(vitrail ${objects})
add_library(vitrail::vitrail ALIAS vitrail)
set_target_properties(vitrail PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} LINKER_LANGUAGE CXX)
target_compile_features(vitrail PUBLIC cxx_std_20)
target_include_directories(vitrail PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(vitrail PUBLIC fmt::fmt nlohmann_json::nlohmann_json oneDNN::oneDNN OpenMP::OpenMP_CXX Threads::Threads PkgConfig::curl PkgConfig::hwy
                                     PkgConfig::icu PkgConfig::jpeg PkgConfig::pcre2 PkgConfig::png PkgConfig::pugixml PkgConfig::sentencepiece
                                     PkgConfig::tomlplusplus PkgConfig::zlib $<$<BOOL:${VITRAIL_WEBP}>:PkgConfig::webp>)
set(with_mpi OFF)
set(mpi_libraries "")
if(VITRAIL_MPI AND MPI_CXX_FOUND)
  set(with_mpi ON)
  list(JOIN MPI_CXX_LIBRARIES " " mpi_libraries)
  string(PREPEND mpi_libraries " ")
  target_link_libraries(vitrail PRIVATE MPI::MPI_CXX)
endif()

# Headers that have moved are still found where they were: a header there includes the one that took its place.
set(moved_dir ${PROJECT_BINARY_DIR}/moved)
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/moved_headers.txt moved REGEX "^[^#]")
foreach(pair IN LISTS moved)
  string(REPLACE " " ";" pair ${pair})
  list(GET pair 0 old)
  list(GET pair 1 new)
  file(CONFIGURE OUTPUT ${moved_dir}/vitrail/${old} CONTENT "#pragma once\n#include \"vitrail/${new}\"  // it has moved there\n")
endforeach()
target_include_directories(vitrail PUBLIC $<BUILD_INTERFACE:${moved_dir}>)
install(DIRECTORY ${moved_dir}/vitrail/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/vitrail)

install(TARGETS vitrail EXPORT vitrail)
install(TARGETS vitrail_program)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/vitrail/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/vitrail
        # The program's own headers and those with a CPU's instructions are of no use from outside.
        FILES_MATCHING PATTERN "*.h" PATTERN cli EXCLUDE PATTERN kernels/cpu EXCLUDE)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/vitrail)
install(EXPORT vitrail NAMESPACE vitrail:: FILE vitrailTargets.cmake DESTINATION ${package_dir})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/vitrailConfig.cmake.in ${PROJECT_BINARY_DIR}/vitrailConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/vitrailConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/vitrailConfig.cmake ${PROJECT_BINARY_DIR}/vitrailConfigVersion.cmake
              ${CMAKE_CURRENT_LIST_DIR}/FindOneDNN.cmake
        DESTINATION ${package_dir})

set(webp_requirement "")
if(VITRAIL_WEBP)
  set(webp_requirement ", libwebp, libwebpdemux")
endif()
# Relative to the file itself, so that `cmake --install --prefix` may put the package anywhere.
file(RELATIVE_PATH prefix_from_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${CMAKE_CURRENT_LIST_DIR}/vitrail.pc.in ${PROJECT_BINARY_DIR}/vitrail.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/vitrail.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# Checkpoints that ship with the program. A build folder has the same tree, so that the program finds them from its own
# place in either.
set(weights_dir ${CMAKE_INSTALL_DATADIR}/vitrail/weights)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/weights/ DESTINATION ${weights_dir})
file(RELATIVE_PATH weights_from_bin /${CMAKE_INSTALL_BINDIR} /${weights_dir})
get_filename_component(built_weights ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${weights_from_bin} ABSOLUTE)
get_filename_component(built_share ${built_weights} DIRECTORY)
file(MAKE_DIRECTORY ${built_share})
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/weights ${built_weights} SYMBOLIC)

# Completion for shells, in the folders where they look for it.
set(completions ${PROJECT_BINARY_DIR}/completions)
add_custom_command(OUTPUT ${completions}/vitrail ${completions}/_vitrail ${completions}/vitrail.fish
                   COMMAND ${CMAKE_COMMAND} -E make_directory ${completions}
                   COMMAND vitrail_program completion bash > ${completions}/vitrail
                   COMMAND vitrail_program completion zsh > ${completions}/_vitrail
                   COMMAND vitrail_program completion fish > ${completions}/vitrail.fish
                   DEPENDS vitrail_program VERBATIM)
add_custom_target(vitrail_completions ALL DEPENDS ${completions}/vitrail ${completions}/_vitrail ${completions}/vitrail.fish)
install(FILES ${completions}/vitrail DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${completions}/_vitrail DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${completions}/vitrail.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
