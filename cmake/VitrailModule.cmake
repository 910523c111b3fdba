# vitrail_module(NAME [DEPENDS layer…] [LINKS target…])
#
# The layer vitrail/NAME: a static library of all its sources that may use the layers named in DEPENDS (whose own
# dependencies come along) and the outside libraries named in LINKS. An include of a layer that is not below does not link.
function(vitrail_module name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "DEPENDS;LINKS")
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h)
  if(NOT sources)
    file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/empty.cpp "")
    set(sources ${CMAKE_CURRENT_BINARY_DIR}/empty.cpp)
  endif()
  add_library(vitrail_${name} STATIC ${sources} ${headers})
  list(TRANSFORM arg_DEPENDS PREPEND vitrail_)
  target_link_libraries(vitrail_${name} PUBLIC vitrail_flags ${arg_DEPENDS} ${arg_LINKS})
  target_include_directories(vitrail_${name} PUBLIC ${PROJECT_SOURCE_DIR})
  set_property(GLOBAL APPEND PROPERTY VITRAIL_MODULES ${name})
endfunction()
