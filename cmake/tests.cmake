# Tests, examples and fuzz targets. None is part of `all`: build the targets tests, examples, fuzz.
# tests/test_*.c: one cmocka program each; any other tests/*.c is linked into all of them.
# tests/onednn.list: programs that run with both oneDNNs, where both are there.
# tests/threads.list: programs without _threads in their name that ThreadSanitizer shall run too.
add_custom_target(tests)
add_custom_target(threads) # of the tests, those that are about threads
add_custom_target(examples)
add_custom_target(fuzz)
set(test_warnings ${KEEL_WARNINGS} -Wno-unused-parameter)

# Test programs use what the library does not export, so they share one of their own, which exports all:
# more than a hundred programs, each with a copy of it, took 0.9 s and 87 MB of disk each to link with
# AddressSanitizer, and take 0.03 s and 0.2 MB. Gold takes less than half of ld's time.
include(CheckLinkerFlag)
check_linker_flag(C -fuse-ld=gold KEEL_HAVE_GOLD)
add_library(keel_tests SHARED EXCLUDE_FROM_ALL ${objects})
set_target_properties(keel_tests PROPERTIES LINKER_LANGUAGE C)
target_link_libraries(keel_tests PRIVATE ${KEEL_LIBRARIES} ${dnnl_linked})
target_link_options(keel_tests PRIVATE -Wl,-Bsymbolic-functions)
if(KEEL_HAVE_GOLD AND NOT KEEL_SANITIZE STREQUAL "fuzzer")
    target_link_options(keel_tests PRIVATE -fuse-ld=gold)
endif()

function(keel_test_program name source folder)
    add_executable(${name} EXCLUDE_FROM_ALL ${source} ${ARGN})
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${folder})
    target_include_directories(${name} PRIVATE include src tests ${PROJECT_BINARY_DIR}/registry
                               ${KEEL_INCLUDES})
    target_compile_options(${name} PRIVATE ${test_warnings})
    target_compile_definitions(${name} PRIVATE KEEL_VERSION="${PROJECT_VERSION}")
    if(KEEL_HAVE_DNNL)
        target_compile_definitions(${name} PRIVATE KEEL_HAVE_DNNL=1)
    endif()
    set(library keel_static) # what a program has itself is not taken from there
    if(name MATCHES "_debian$")
        set(library keel_static_debian)
    elseif(folder MATCHES "^(tests|fuzz)$" AND NOT name MATCHES "^test_split|_emulated$|_own$")
        set(library keel_tests)
    endif()
    target_link_libraries(${name} PRIVATE ${library} ${KEEL_LIBRARIES})
    if(KEEL_HAVE_GOLD AND NOT KEEL_SANITIZE STREQUAL "fuzzer") # it warns of what clang brings
        target_link_options(${name} PRIVATE -fuse-ld=gold)
    endif()
endfunction()

# Keel once more, with Debian's oneDNN, for the tests of tests/onednn.list: NAME_debian.
set(both)
if(KEEL_DNNL_USED STREQUAL "wheel" AND KEEL_SANITIZE STREQUAL "" AND DEBIAN_DNNL_LIBRARY AND DEBIAN_DNNL_INCLUDE_DIR)
    keel_object_files(keel_dnnl_objects_debian ${dnnl_sources})
    if(NOT DEBIAN_DNNL_INCLUDE_DIR STREQUAL "/usr/include")
        target_include_directories(keel_dnnl_objects_debian BEFORE PRIVATE ${DEBIAN_DNNL_INCLUDE_DIR})
    endif()
    add_library(keel_static_debian STATIC EXCLUDE_FROM_ALL ${own_objects}
                $<TARGET_OBJECTS:keel_dnnl_objects_debian>)
    set_target_properties(keel_dnnl_objects_debian PROPERTIES EXCLUDE_FROM_ALL TRUE)
    target_link_libraries(keel_static_debian PRIVATE ${KEEL_LIBRARIES} ${DEBIAN_DNNL_LIBRARY})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS tests/onednn.list)
    file(STRINGS tests/onednn.list both REGEX "^test_")
endif()

include(cmake/emulator.cmake)

pkg_check_modules(CMOCKA cmocka)
if(CMOCKA_FOUND AND NOT KEEL_SANITIZE STREQUAL "fuzzer")
    file(GLOB test_sources CONFIGURE_DEPENDS tests/test_*.c)
    file(GLOB support_sources CONFIGURE_DEPENDS tests/*.c)
    if(test_sources)
        list(REMOVE_ITEM support_sources ${test_sources})
    endif()
    set(threaded)
    if(EXISTS ${PROJECT_SOURCE_DIR}/tests/threads.list)
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS tests/threads.list)
        file(STRINGS tests/threads.list threaded REGEX "^test_")
        list(TRANSFORM threaded REPLACE " all$" "")
    endif()
    if(support_sources)
        add_library(keel_test_support OBJECT EXCLUDE_FROM_ALL ${support_sources})
        target_include_directories(keel_test_support PRIVATE include src tests ${PROJECT_BINARY_DIR}/registry ${KEEL_INCLUDES}
                                   ${CMOCKA_INCLUDE_DIRS})
        target_compile_options(keel_test_support PRIVATE ${test_warnings})
        target_compile_definitions(keel_test_support PRIVATE
                                   KEEL_GOLDEN_FOLDER="${PROJECT_SOURCE_DIR}/tests/golden")
    endif()
    include(cmake/gpu_tests.cmake)
    set(left_out) # tests that cannot be built here: what tools/run_tests.sh says of them
    foreach(source IN LISTS test_sources)
        get_filename_component(name ${source} NAME_WE)
        if(name MATCHES "^test_cuda_" AND NOT TARGET keel_emulator)
            if(KEEL_EMULATOR)
                string(APPEND left_out "${name} needs g++\n")
            else() # whoever turned it off knows, so nothing is said
                string(APPEND left_out "${name} \n")
            endif()
            continue()
        endif()
        if(name STREQUAL "test_cudnn_graphs" AND NOT (TARGET cuda-kernels AND TARGET keel_emulator AND KEEL_CUDART))
            string(APPEND left_out "${name} needs nvcc, cuDNN and a build without sanitizers\n")
            continue()
        endif()
        keel_test_program(${name} ${source} tests)
        if(name MATCHES "^test_cuda_")
            keel_use_emulator(${name})
        endif()
        if(name MATCHES "^test_cuda_(device|gpus|sums)$")
            target_sources(${name} PRIVATE $<TARGET_OBJECTS:keel_emulated_device>)
        endif()
        if(name STREQUAL "test_cudnn_graphs") # the kernels by libraries, as nvcc compiles them
            keel_nvcc(${PROJECT_SOURCE_DIR}/tests/cudnn/graphs.cu object)
            set(convolutions ${cuda_objects})
            list(FILTER convolutions INCLUDE REGEX "/(_?conv|_depthwise|_product|dense|matmul)[^/]*$")
            target_sources(${name} PRIVATE ${object} ${convolutions})
            set_source_files_properties(${object} ${convolutions} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
            set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
            target_link_libraries(${name} PRIVATE ${KEEL_CUDART} ${CMAKE_DL_LIBS} rt)
        endif()
        if(NOT KEEL_SANITIZE STREQUAL "" AND NOT name MATCHES "^test_(split|ops|conv|photo|resize)")
            target_compile_options(${name} PRIVATE -O0) # the library works, the program waits
        endif()
        set(made ${name})
        if(name MATCHES "_emulated$") # these kernels once more, on tiles in plain C
            target_sources(${name} PRIVATE src/ops/x86/_split_amx.c src/ops/x86/conv2d_split_amx.c
                           src/ops/x86/conv2d_winograd_split_amx.c
                           src/ops/x86/dense_split_amx.c src/ops/x86/dense_amx.c)
            target_compile_definitions(${name} PRIVATE KEEL_TILES_EMULATED)
        endif()
        if(name STREQUAL "test_pictures") # of the command, not of the library
            target_sources(${name} PRIVATE cli/_picture.c)
            target_include_directories(${name} PRIVATE cli)
        endif()
        if(name STREQUAL "test_cuda_staged")
            target_compile_definitions(${name} PRIVATE
                                       KEEL_STAGED_LIST="${PROJECT_SOURCE_DIR}/tests/cuda_staged.list")
        endif()
        if(name MATCHES "^test_(bench_kernels|cuda_staged)$") # the networks of keel bench
            file(GLOB architectures CONFIGURE_DEPENDS cli/architectures/*.c)
            target_sources(${name} PRIVATE cli/_works.c ${architectures} ${architecture_registry})
            target_include_directories(${name} PRIVATE cli cli/architectures)
        endif()
        if(name STREQUAL "test_launchers")
            target_sources(${name} PRIVATE cli/_launchers.c)
            target_include_directories(${name} PRIVATE cli)
        endif()
        if(name MATCHES "_threads$" OR name IN_LIST threaded)
            add_dependencies(threads ${name})
            # The same test once more without oneDNN, whose generated code no sanitizer sees.
            if(KEEL_SANITIZE STREQUAL "thread" AND KEEL_HAVE_DNNL AND
               EXISTS ${PROJECT_BINARY_DIR}/registry/registry_kernel_own.c)
                keel_test_program(${name}_own ${source} tests
                                  ${PROJECT_BINARY_DIR}/registry/registry_kernel_own.c)
                add_dependencies(threads ${name}_own)
                list(APPEND made ${name}_own)
            endif()
        endif()
        if(name IN_LIST both)
            keel_test_program(${name}_debian ${source} tests)
            list(APPEND made ${name}_debian)
        endif()
        foreach(program IN LISTS made)
            target_include_directories(${program} PRIVATE ${CMOCKA_INCLUDE_DIRS})
            if(support_sources)
                target_sources(${program} PRIVATE $<TARGET_OBJECTS:keel_test_support>)
            endif()
            target_link_libraries(${program} PRIVATE ${CMOCKA_LINK_LIBRARIES})
            add_dependencies(tests ${program})
        endforeach()
    endforeach()
    file(WRITE ${PROJECT_BINARY_DIR}/tests.left_out "${left_out}")
endif()

# What make check-keras passes to the real Keras; see tests/interop.
add_custom_target(interop)
add_dependencies(tests interop)
foreach(name random_graphs exact_step cases)
    keel_test_program(${name} tests/interop/${name}.c tests)
    add_dependencies(interop ${name})
endforeach()
if(TARGET keel_test_support)
    target_sources(cases PRIVATE $<TARGET_OBJECTS:keel_test_support>)
    target_include_directories(cases PRIVATE ${CMOCKA_INCLUDE_DIRS})
    target_link_libraries(cases PRIVATE ${CMOCKA_LINK_LIBRARIES})
endif()

# bench/NAME.c is build/bench/bench_NAME, like tests not part of `all`: the target bench.
add_custom_target(bench)
file(GLOB bench_sources CONFIGURE_DEPENDS bench/*.c)
foreach(source IN LISTS bench_sources)
    get_filename_component(name ${source} NAME_WE)
    keel_test_program(bench_${name} ${source} bench)
    add_dependencies(bench bench_${name})
endforeach()

# What tests/test_mpi.sh starts several times at once. It loads the plug-in that it is told.
if(KEEL_MPIS AND KEEL_SANITIZE STREQUAL "") # it has a malloc of its own
    keel_test_program(mpi_exchange tests/mpi/exchange.c tests)
    target_link_libraries(mpi_exchange PRIVATE ${CMAKE_DL_LIBS})
    add_dependencies(tests mpi_exchange)
    foreach(mpi IN LISTS KEEL_MPIS)
        add_dependencies(mpi_exchange keel_mpi_${mpi})
    endforeach()
endif()

# What tests/test_mpi_end.sh starts, as a program of each MPI.
if(KEEL_SANITIZE STREQUAL "")
    foreach(mpi IN LISTS KEEL_MPIS)
        add_executable(mpi_ending_${mpi} EXCLUDE_FROM_ALL tests/mpi/ending.c)
        target_include_directories(mpi_ending_${mpi} PRIVATE include)
        target_include_directories(mpi_ending_${mpi} SYSTEM PRIVATE ${PC_${mpi}_INCLUDE_DIRS})
        target_compile_options(mpi_ending_${mpi} PRIVATE ${test_warnings})
        target_link_libraries(mpi_ending_${mpi} PRIVATE keel_mpi_${mpi} keel_shared ${KEEL_MPI_LIBRARIES_${mpi}})
        set_target_properties(mpi_ending_${mpi} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
        add_dependencies(tests mpi_ending_${mpi})
    endforeach()
endif()

# What tests/network.sh has between two namespaces, and a plug-in that fails where it is told to.
add_executable(mpi_forwarder EXCLUDE_FROM_ALL tests/mpi/forwarder.c)
add_library(keel_mpi_faulty SHARED EXCLUDE_FROM_ALL tests/mpi/faulty.c)
target_include_directories(keel_mpi_faulty PRIVATE include)
target_link_libraries(keel_mpi_faulty PRIVATE ${CMAKE_DL_LIBS})
foreach(target mpi_forwarder keel_mpi_faulty)
    target_compile_options(${target} PRIVATE ${test_warnings})
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests
                          LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    add_dependencies(tests ${target})
endforeach()

# What tools/check.sh preloads where keel with AddressSanitizer runs as several processes.
if(KEEL_MPIS AND KEEL_SANITIZE STREQUAL "address")
    add_library(keel_keep_open SHARED EXCLUDE_FROM_ALL tests/mpi/keep_open.c)
    target_compile_options(keel_keep_open PRIVATE -fno-sanitize=all)
    set_target_properties(keel_keep_open PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    add_dependencies(keel_keep_open keel_command)
    foreach(mpi IN LISTS KEEL_MPIS)
        add_dependencies(keel_keep_open keel_mpi_${mpi})
    endforeach()
    add_dependencies(tests keel_keep_open)
endif()

# Examples see what an installed Keel shows: the public headers and the shared library.
file(GLOB example_sources CONFIGURE_DEPENDS examples/*.c)
foreach(source IN LISTS example_sources)
    get_filename_component(name ${source} NAME_WE)
    add_executable(example_${name} EXCLUDE_FROM_ALL ${source})
    set_target_properties(example_${name} PROPERTIES OUTPUT_NAME ${name}
                          RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
    target_compile_options(example_${name} PRIVATE ${KEEL_WARNINGS})
    target_link_libraries(example_${name} PRIVATE keel_shared m)
    add_dependencies(examples example_${name})
endforeach()

# Fuzz targets: by libFuzzer of clang in a build of their own, and with AddressSanitizer, which needs no
# second build of the library, by tests/fuzz/replay.c.
if(KEEL_SANITIZE MATCHES "^(fuzzer|address)$")
    file(GLOB fuzz_sources CONFIGURE_DEPENDS tests/fuzz/fuzz_*.c)
    foreach(source IN LISTS fuzz_sources)
        get_filename_component(name ${source} NAME_WE)
        keel_test_program(${name} ${source} fuzz)
        if(KEEL_SANITIZE STREQUAL "fuzzer")
            target_link_options(${name} PRIVATE -fsanitize=fuzzer)
        else()
            target_sources(${name} PRIVATE tests/fuzz/replay.c)
        endif()
        if(name STREQUAL "fuzz_launchers")
            target_sources(${name} PRIVATE cli/_launchers.c)
            target_include_directories(${name} PRIVATE cli)
        endif()
        add_dependencies(fuzz ${name})
    endforeach()
endif()
