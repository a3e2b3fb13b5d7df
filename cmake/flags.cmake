# Compiler flags: for every file, for sanitizers, and for the files that hold the mathematics.
# The baseline is plain x86-64; speed comes from kernels that are chosen when the program runs.
set(KEEL_WARNINGS -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
    -Wpointer-arith -Wwrite-strings -Wno-missing-field-initializers)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
    list(APPEND KEEL_WARNINGS -Wno-override-init -Wno-psabi)
else()
    list(APPEND KEEL_WARNINGS -Wno-initializer-overrides)
endif()

# Sums must not depend on flags like -ffast-math: these two change no value.
set(KEEL_MATH_FLAGS -fno-math-errno -fno-trapping-math)
if(KEEL_SANITIZE STREQUAL "")
    list(APPEND KEEL_WARNINGS -Werror)
    add_compile_options(-O2 -g)
    list(PREPEND KEEL_MATH_FLAGS -O3)
else() # gcc warns wrongly in instrumented code, so no -Werror here
    if(KEEL_SANITIZE STREQUAL "address")
        set(flags -fsanitize=address,undefined -fno-sanitize-recover=all)
    elseif(KEEL_SANITIZE STREQUAL "thread")
        set(flags -fsanitize=thread)
    elseif(KEEL_SANITIZE STREQUAL "fuzzer")
        if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
            message(FATAL_ERROR "KEEL_SANITIZE=fuzzer needs clang: cmake -DCMAKE_C_COMPILER=clang-14")
        endif()
        set(flags -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all)
    else()
        message(FATAL_ERROR "KEEL_SANITIZE=${KEEL_SANITIZE}: use address, thread, fuzzer or nothing")
    endif()
    add_compile_options(-O1 -g1 -fno-omit-frame-pointer ${flags})
    add_link_options(${flags})
endif()

# The flags of an instruction set. Loops begin at a cache line wherever the linker puts their function:
# where they did not, code that was added elsewhere in the library slowed the loops of a convolution down
# by 4 to 25 %. Kernels are half of the time of a build, and where each of their variables lives (-g
# instead of -g1, which keeps functions and lines) would be 40 % of that.
set(KEEL_FLAGS_avx2 -mavx2 -mfma)
if(KEEL_SANITIZE STREQUAL "")
    list(APPEND KEEL_FLAGS_avx2 -g1 -falign-functions=64 -falign-loops=64)
endif()
set(KEEL_FLAGS_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl ${KEEL_FLAGS_avx2})
set(KEEL_FLAGS_avx512_bf16 ${KEEL_FLAGS_avx512} -mavx512bf16)
set(KEEL_FLAGS_amx ${KEEL_FLAGS_avx512} -mamx-tile -mamx-bf16 -mamx-int8)
# In builds with sanitizers, kernels that do not run on this machine need not be instrumented, nor be
# fast: they are compiled well by the plain build.
if(NOT KEEL_SANITIZE STREQUAL "")
    set(has)
    if(EXISTS /proc/cpuinfo)
        file(STRINGS /proc/cpuinfo has REGEX "^flags" LIMIT_COUNT 1)
    endif()
    foreach(row "avx2 avx2" "avx512 avx512vl" "avx512_bf16 avx512_bf16" "amx amx_bf16")
        separate_arguments(row)
        list(GET row 0 isa)
        list(GET row 1 flag)
        if(NOT "${has} " MATCHES " ${flag} ")
            list(APPEND KEEL_FLAGS_${isa} -O0 -fno-sanitize=all)
        endif()
    endforeach()
    # A program runs the kernels of the better set. Those of the other one are compiled from the same
    # files, so the sanitizer has seen their lines.
    if("${has} " MATCHES " avx512vl ")
        set(KEEL_SET_FLAGS_avx2 -O0 -fno-sanitize=all)
    endif()
endif()

# Fuzz targets read files, and run no op and no step, so that the optimiser only takes time
# (clang: 1.6 s for 700 lines of train/, 0.3 s without it). Checks are the same.
set(KEEL_ROOMS_QUICK_TO_BUILD)
if(KEEL_SANITIZE STREQUAL "fuzzer")
    set(KEEL_ROOMS_QUICK_TO_BUILD "ops|graph|train|losses|metrics|optimizers")
endif()

# The flags that a file's place asks for and, in src/ops/x86 and src/device/cpu, the instruction set
# it is named for. Kernels named for none are compiled once for each set, by CMakeLists.txt.
function(keel_file_flags files)
    foreach(file IN LISTS files)
        set(flags)
        if(file MATCHES "/src/(data|ops|losses|metrics|optimizers|graph|tensor|train)/")
            list(APPEND flags ${KEEL_MATH_FLAGS})
        endif()
        # images are the same on any processor, statistics of rows on devices the same as on these
        if(file MATCHES "/src/(ops/(recolor|rescaling|warp)|graph/moments)\\.c$")
            list(APPEND flags -ffp-contract=off)
        endif()
        if(file MATCHES "/src/(ops/x86|device/cpu)/.*_(avx2|avx512|avx512_bf16|amx)\\.c$")
            string(REGEX REPLACE ".*_(avx2|avx512|avx512_bf16|amx)\\.c$" "\\1" isa ${file})
            list(APPEND flags ${KEEL_FLAGS_${isa}})
        endif()
        if(KEEL_ROOMS_QUICK_TO_BUILD AND file MATCHES "/src/(${KEEL_ROOMS_QUICK_TO_BUILD})/")
            list(APPEND flags -O0)
        endif()
        if(flags)
            set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${flags}")
        endif()
    endforeach()
endfunction()
