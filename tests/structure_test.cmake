# The structure of the sources: includes go to the same room or a lower one, rooms are small enough to look through, and
# files are about one thing. Called by ctest with -DSOURCE=…
cmake_minimum_required(VERSION 3.25)

# The rooms, lowest first. A new one is put where all that it includes stands before it.
set(rooms
    tensor
    kernels kernels/cpu/simd kernels/cpu kernels/cpu/elements kernels/cpu/products kernels/cpu/attention
    kernels/cpu/images kernels/cpu/recurrent
    dist
    io io/charts io/web autograd
    ops/math ops/shape ops/products ops/attention ops/images ops/recurrent ops
    nn nn/positions nn/attention nn/images nn/recurrent
    optim data/scenes data/shards data/sources data data/coco data/sequences data/boxes data/pairs data/sets text/score text/strings text/parts text
    models/base models/formats models/convnet models/vit models/swin models/mvit models/mlp models/text
    models/recurrent models/joint models/detection models
    generate explain/drawing explain
    train train/run train/study train/captions train/sets train/detection train/vqa train/sources train/pretrain train/tasks train/bench
    cli cli/train cli/use cli/see cli/about)
set(most_sources 40)
set(most_lines 500)

set(faults "")
file(GLOB_RECURSE files RELATIVE ${SOURCE}/vitrail ${SOURCE}/vitrail/*.h ${SOURCE}/vitrail/*.cpp)
foreach(file IN LISTS files)
  get_filename_component(room ${file} DIRECTORY)
  if(room STREQUAL "")
    continue()  # vitrail.h is above all
  endif()
  list(FIND rooms ${room} floor)
  if(floor EQUAL -1)
    list(APPEND faults "${file}: the room ${room} is not in the list of tests/structure_test.cmake")
    continue()
  endif()
  string(MAKE_C_IDENTIFIER ${room} key)
  math(EXPR sources_in_${key} "0${sources_in_${key}} + 1")
  if(sources_in_${key} GREATER most_sources)
    list(APPEND faults "${room} has more than ${most_sources} sources: group them")
  endif()

  file(STRINGS ${SOURCE}/vitrail/${file} includes REGEX "^#include \"vitrail/")
  foreach(include IN LISTS includes)
    string(REGEX REPLACE "^#include \"vitrail/([^\"]*)\".*" "\\1" target ${include})
    get_filename_component(below ${target} DIRECTORY)
    list(FIND rooms "${below}" target_floor)
    if(target_floor EQUAL -1 OR target_floor GREATER floor)
      list(APPEND faults "${file} includes ${target}, which is above it")
    endif()
  endforeach()

  file(READ ${SOURCE}/vitrail/${file} text)
  string(REGEX REPLACE "[^\n]" "" newlines "${text}")
  string(LENGTH "${newlines}" lines)
  if(lines GREATER most_lines)
    list(APPEND faults "${file} has ${lines} lines, more than ${most_lines}: it wants to be two")
  endif()
endforeach()

list(REMOVE_DUPLICATES faults)
if(faults)
  list(JOIN faults "\n" text)
  message(FATAL_ERROR "${text}")
endif()
