# The kernels for CUDA on the emulator of tests/emulator, with the doubles of NVIDIA's libraries that are
# in tests/cuda_double: C++, by g++, for tests alone. Kernels are compiled with -fsanitize=thread and
# linked without it: the functions that it calls are the emulator's. So the emulator itself has no
# sanitizer in any build, and none is in a build with ThreadSanitizer. The kernels are a quarter of what a
# build of the tests compiles: with -O1 that takes 0.6 of the time of -O2, and they run as fast.
option(KEEL_EMULATOR "tests of the kernels for CUDA on the emulator" ON)
include(CheckLanguage)
if(NOT CMAKE_CXX_COMPILER)
    unset(CMAKE_CXX_COMPILER CACHE) # it may have been installed since
endif()
check_language(CXX)
if(NOT CMAKE_CXX_COMPILER OR KEEL_SANITIZE STREQUAL "thread" OR KEEL_SANITIZE STREQUAL "fuzzer" OR NOT KEEL_EMULATOR)
    return()
endif()
enable_language(CXX)
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    message(NOTICE "The tests of the kernels for CUDA need g++: they are left out")
    return()
endif()

file(GLOB emulator_sources CONFIGURE_DEPENDS tests/emulator/*.cpp tests/cuda_double/*.cpp)
file(GLOB emulated_sources CONFIGURE_DEPENDS tests/emulator/*.cu)
list(APPEND emulated_sources ${cuda_sources} ${PROJECT_SOURCE_DIR}/src/device/cuda/fold.cu
     ${PROJECT_SOURCE_DIR}/src/optimizers/cuda/move.cu ${PROJECT_SOURCE_DIR}/src/optimizers/cuda/measure.cu
     ${PROJECT_SOURCE_DIR}/src/optimizers/cuda/orthogonal.cu ${PROJECT_SOURCE_DIR}/src/optimizers/cuda/factored.cu
     ${PROJECT_SOURCE_DIR}/src/optimizers/cuda/check.cu ${PROJECT_SOURCE_DIR}/src/optimizers/cuda/project.cu)
set_source_files_properties(${emulated_sources} PROPERTIES LANGUAGE CXX)
add_library(keel_emulator OBJECT EXCLUDE_FROM_ALL ${emulator_sources})
add_library(keel_emulated OBJECT EXCLUDE_FROM_ALL ${emulated_sources})
# the device itself, on the double of CUDA's runtime; it looks at memory that it shares with the host
set(device_sources ${PROJECT_SOURCE_DIR}/src/device/cuda/device.cu ${PROJECT_SOURCE_DIR}/src/device/cuda/sums.cu)
set_source_files_properties(${device_sources} PROPERTIES LANGUAGE CXX)
add_library(keel_emulated_device OBJECT EXCLUDE_FROM_ALL ${device_sources})
foreach(target keel_emulator keel_emulated keel_emulated_device)
    target_include_directories(${target} BEFORE PRIVATE include src tests/emulator tests/cuda_double)
    target_compile_options(${target} PRIVATE -std=gnu++20 -O1 -g1 -fno-sanitize=all -Wall -Wextra -Wshadow
                           -Wno-missing-field-initializers -Wno-format-truncation -ffp-contract=off)
    if(KEEL_SANITIZE STREQUAL "")
        target_compile_options(${target} PRIVATE -Werror)
    endif()
endforeach()
target_compile_definitions(keel_emulated_device PRIVATE KEEL_VERSION="${PROJECT_VERSION}")
target_compile_options(keel_emulated PRIVATE -fsanitize=thread --param tsan-instrument-func-entry-exit=0)

function(keel_use_emulator program)
    target_sources(${program} PRIVATE $<TARGET_OBJECTS:keel_emulator> $<TARGET_OBJECTS:keel_emulated>
                   ${cuda_registry})
    target_include_directories(${program} PRIVATE tests/emulator tests/cuda_double)
    set_target_properties(${program} PROPERTIES LINKER_LANGUAGE CXX)
endfunction()
