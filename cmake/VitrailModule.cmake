# vitrail_module(NAME [DEPENDS layer…] [LINKS target…] [ONE_BY_ONE]
#                [CALLS_ONLY|READS_FILES])
#
# The layer vitrail/NAME: a static library of all its sources that may use the layers named in DEPENDS (whose own
# dependencies come along) and the outside libraries named in LINKS. An include of a layer that is not below does not link.
# Sources are compiled several at once (VITRAIL_UNITY_BUILD), unless ONE_BY_ONE says that they cannot be.
# A layer that CALLS_ONLY, and computes little itself, is optimized with -O1, which saves a third of the time of its build. In
# builds with sanitizers, where that takes longest, it is not optimized, nor is each of its pointers checked: the address
# sanitizer reports a null one that is used. One that READS_FILES is not optimized there either, but checked in full.
function(vitrail_module name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "ONE_BY_ONE;CALLS_ONLY;READS_FILES" "" "DEPENDS;LINKS")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h)
  if(NOT sources)
    file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/empty.cpp "")
    set(sources ${CMAKE_CURRENT_BINARY_DIR}/empty.cpp)
  endif()
  add_library(vitrail_${name} STATIC ${sources} ${headers})
  list(TRANSFORM arg_DEPENDS PREPEND vitrail_)
  target_link_libraries(vitrail_${name} PUBLIC vitrail_flags ${arg_DEPENDS} ${arg_LINKS})
  target_include_directories(vitrail_${name} PUBLIC ${PROJECT_SOURCE_DIR})
  if(VITRAIL_UNITY_BUILD AND NOT arg_ONE_BY_ONE)
    set_target_properties(vitrail_${name} PROPERTIES UNITY_BUILD ON)
    # GCC takes what comes through an #include for a header, in which this warning is right.
    target_compile_options(vitrail_${name} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
  if(VITRAIL_SANITIZE AND (arg_CALLS_ONLY OR arg_READS_FILES))
    target_compile_options(vitrail_${name} PRIVATE -O0)
  elseif(arg_CALLS_ONLY)
    target_compile_options(vitrail_${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
  if(VITRAIL_SANITIZE AND arg_CALLS_ONLY)
    set_target_properties(vitrail_${name} PROPERTIES VITRAIL_NO_SANITIZE null,alignment)
  endif()
  set_property(GLOBAL APPEND PROPERTY VITRAIL_MODULES ${name})
endfunction()
