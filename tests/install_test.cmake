# Installs the package into a fresh folder and builds and runs the examples against it, as found by CMake, and one of them
# and the program of README.md with the flags that pkg-config gives. Called by ctest with -DBUILD=… -DSOURCE=… -DCXX=…
cmake_minimum_required(VERSION 3.25)

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

set(work ${BUILD}/install-test)
set(prefix ${work}/prefix)
file(REMOVE_RECURSE ${work})
file(MAKE_DIRECTORY ${work})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})

run(${prefix}/bin/vitrail --version)

run(${CMAKE_COMMAND} -S ${SOURCE}/examples -B ${work}/examples -G Ninja -DCMAKE_BUILD_TYPE=Release
    -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_CXX_COMPILER=${CXX})
run(${CMAKE_COMMAND} --build ${work}/examples)
run(${work}/examples/train_tiny ${SOURCE}/data/cifar10/test.tar ${work}/model)
set(picture ${SOURCE}/tests/golden/pictures/decode/cmyk.jpg)
run(${work}/examples/classify ${work}/model ${picture})
if(NOT output MATCHES "airplane 0\\.[0-9]+")
  message(FATAL_ERROR "classify printed:\n${output}")
endif()
run(${work}/examples/attention_map ${work}/model ${picture} ${work}/map.png)

# pkg-config alone.
set(ENV{PKG_CONFIG_PATH} "${prefix}/lib/x86_64-linux-gnu/pkgconfig:${prefix}/lib/pkgconfig:${prefix}/lib64/pkgconfig")
run(pkg-config --cflags --libs vitrail)
separate_arguments(flags UNIX_COMMAND "${output}")
run(${CXX} ${SOURCE}/examples/classify.cpp -o ${work}/classify ${flags})
run(${work}/classify ${work}/model ${picture})

# The program of README.md as it stands there, where it finds what it names.
file(READ ${SOURCE}/README.md readme)
if(NOT readme MATCHES "```cpp\n([^`]+)```")
  message(FATAL_ERROR "README.md has no block of C++")
endif()
set(place ${work}/readme)
file(MAKE_DIRECTORY ${place}/runs/photos)
file(WRITE ${place}/main.cpp "${CMAKE_MATCH_1}")
file(CREATE_LINK ${work}/model ${place}/runs/photos/best SYMBOLIC)
file(COPY_FILE ${picture} ${place}/cat.jpg)
run(${CXX} ${place}/main.cpp -o ${place}/main ${flags})
run(${CMAKE_COMMAND} -E chdir ${place} ${place}/main)
if(NOT EXISTS ${place}/rollout.png)
  message(FATAL_ERROR "the program of README.md wrote no rollout.png")
endif()
