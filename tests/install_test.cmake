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

# A checkpoint in the installed folder is found by its name, from wherever the program is called, and one with a whole card and
# the right hash is what weights_test.cmake wants.
set(weights ${prefix}/share/vitrail/weights)
if(NOT EXISTS ${weights}/README.md)
  message(FATAL_ERROR "no folder of weights is installed")
endif()
run(${prefix}/bin/vitrail convert vit_tiny_patch16_224 --model-kwargs img_size=32 patch_size=8 embed_dim=24 depth=2 num_heads=2
    --num-classes 3 --dtype bf16 --output ${work}/weights/tiny)
function(write_card hash)
  file(WRITE ${work}/weights/tiny/card.json
    "{\"name\": \"vitrail/tiny\", \"what\": \"a tiny network\", \"data\": \"nothing\", \"data_licence\": \"none\", "
    "\"licence\": \"Apache-2.0\", \"command\": \"vitrail convert\", \"seed\": 0, \"machine\": \"any\", \"hours\": 0, "
    "\"date\": \"2026-11-24\", \"accuracy\": \"33 %\", \"measured_by\": \"nothing\", \"limits\": \"knows nothing\", "
    "\"sha256\": \"${hash}\"}\n")
endfunction()
file(SHA256 ${work}/weights/tiny/model.safetensors hash)
write_card(${hash})
run(${CMAKE_COMMAND} -DWEIGHTS=${work}/weights -P ${SOURCE}/tests/weights_test.cmake)
file(COPY ${work}/weights/tiny DESTINATION ${weights})
run(${CMAKE_COMMAND} -E chdir / ${prefix}/bin/vitrail models --shipped tiny)
if(NOT output MATCHES "vitrail/tiny +0\\.[0-9]+ MB  a tiny network; 33 %; Apache-2.0")
  message(FATAL_ERROR "models --shipped printed:\n${output}")
endif()
run(${CMAKE_COMMAND} -E chdir / ${prefix}/bin/vitrail predict vitrail/tiny ${SOURCE}/tests/golden/images/decode/cmyk.jpg)
write_card(0)
execute_process(COMMAND ${CMAKE_COMMAND} -DWEIGHTS=${work}/weights -P ${SOURCE}/tests/weights_test.cmake RESULT_VARIABLE status
                OUTPUT_QUIET ERROR_QUIET)
if(status EQUAL 0)
  message(FATAL_ERROR "weights_test.cmake takes a card with a wrong hash")
endif()

foreach(completion bash-completion/completions/vitrail zsh/site-functions/_vitrail fish/vendor_completions.d/vitrail.fish)
  file(READ ${prefix}/share/${completion} script)
  if(NOT script MATCHES " completion (bash|zsh|fish) -- ")
    message(FATAL_ERROR "share/${completion} completes nothing:\n${script}")
  endif()
endforeach()

run(${CMAKE_COMMAND} -S ${SOURCE}/examples -B ${work}/examples -G Ninja -DCMAKE_BUILD_TYPE=Release
    -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_CXX_COMPILER=${CXX})
run(${CMAKE_COMMAND} --build ${work}/examples)
run(${work}/examples/train_tiny ${SOURCE}/data/cifar10/test.tar ${work}/model)
set(image ${SOURCE}/tests/golden/images/decode/cmyk.jpg)
run(${work}/examples/classify ${work}/model ${image})
if(NOT output MATCHES "airplane 0\\.[0-9]+")
  message(FATAL_ERROR "classify printed:\n${output}")
endif()
run(${work}/examples/attention_map ${work}/model ${image} ${work}/map.png)

# A task of the example's own: a run that is killed now and again ends with the bits of one that was not.
set(table "")
foreach(i RANGE 1 200)
  math(EXPR a "(${i} * 7919) % 101")
  math(EXPR b "(${i} * 104729) % 97")
  math(EXPR y "${a} * 3 - ${b}")
  string(APPEND table "0.${a},0.${b},${y}\n")
endforeach()
file(WRITE ${work}/table.csv "${table}")
run(${work}/examples/regress ${work}/table.csv ${work}/runs whole)
foreach(line "evaluation loss" "R² 0\\.[0-9]+" "best R²")
  if(NOT output MATCHES "${line}")
    message(FATAL_ERROR "regress printed no '${line}':\n${output}")
  endif()
endforeach()
foreach(attempt RANGE 20)
  # By timeout(1), which waits until the process is gone: CMake 3.31's own TIMEOUT does not, and the run would still be
  # locked.
  execute_process(COMMAND timeout --foreground --signal=KILL 0.2
                          ${work}/examples/regress ${work}/table.csv ${work}/runs killed
                  RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
  if(status EQUAL 0)
    break()
  endif()
endforeach()
run(${work}/examples/regress ${work}/table.csv ${work}/runs killed)
foreach(part last best)
  run(${CMAKE_COMMAND} -E compare_files ${work}/runs/whole/${part}/model.safetensors
      ${work}/runs/killed/${part}/model.safetensors)
endforeach()

# pkg-config alone.
set(ENV{PKG_CONFIG_PATH} "${prefix}/lib/x86_64-linux-gnu/pkgconfig:${prefix}/lib/pkgconfig:${prefix}/lib64/pkgconfig")
run(pkg-config --cflags --libs vitrail)
separate_arguments(flags UNIX_COMMAND "${output}")
run(${CXX} ${SOURCE}/examples/classify.cpp -o ${work}/classify ${flags})
run(${work}/classify ${work}/model ${image})

# Every header that is installed finds what it includes, those that have moved in both places.
file(GLOB_RECURSE headers RELATIVE ${prefix}/include ${prefix}/include/vitrail/*.h)
list(LENGTH headers count)
if(count LESS 200)
  message(FATAL_ERROR "only ${count} headers are installed")
endif()
list(TRANSFORM headers REPLACE "(.+)" "#include <\\1>\n")
string(CONCAT includes ${headers})
file(WRITE ${work}/headers.cpp "${includes}")
run(${CXX} -fsyntax-only ${work}/headers.cpp ${flags})

# The programs of README.md as they stand there, where they find what they name: the first is about an image, the second
# about a text.
file(READ ${SOURCE}/README.md readme)
set(place ${work}/readme)
file(MAKE_DIRECTORY ${place}/runs/photos)
foreach(program images texts)
  if(NOT readme MATCHES "```cpp\n([^`]+)```(.*)")
    message(FATAL_ERROR "README.md has no block of C++ about ${program}")
  endif()
  file(WRITE ${place}/${program}.cpp "${CMAKE_MATCH_1}")
  set(readme "${CMAKE_MATCH_2}")
  run(${CXX} ${place}/${program}.cpp -o ${place}/${program} ${flags})
endforeach()
file(CREATE_LINK ${work}/model ${place}/runs/photos/best SYMBOLIC)
file(COPY_FILE ${image} ${place}/cat.jpg)
run(${CMAKE_COMMAND} -E chdir ${place} ${place}/images)
if(NOT EXISTS ${place}/rollout.png)
  message(FATAL_ERROR "the first program of README.md wrote no rollout.png")
endif()
run(${prefix}/bin/vitrail train ${SOURCE}/README.md --task lm --model-kwargs n_layer=1 n_head=2 n_embd=16 --block-size 64
    --epochs 1 --output ${place}/runs --experiment shakespeare)
run(${CMAKE_COMMAND} -E chdir ${place} ${place}/texts)
if(NOT output MATCHES "^ROMEO:.")
  message(FATAL_ERROR "the second program of README.md printed:\n${output}")
endif()
