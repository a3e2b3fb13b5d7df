# Lists of everything a user can name, made from the folders: src/ops/relu.c holds keel_op_relu, so
# keel_ops[] lists it. A stem that does not match its symbol fails at link, by name. Not listed: the
# file named like the kind (ops/op.c) and names that begin with _ or end in _impl.
#
# Kernels: src/ops/dnnl/conv2d.c holds keel_kernel_conv2d_dnnl. src/ops/x86/relu.c is compiled once
# for each set of KEEL_VECTOR_SETS and holds keel_kernel_relu_avx2 and keel_kernel_relu_avx512; a
# file named for a set (src/ops/x86/conv2d_few_avx512.c) is compiled once. src/train/x86/ is the same for
# ops of that room. Fuzz targets read files and
# run no kernel, so that their build, which takes long enough, has none.
set(KEEL_VECTOR_SETS avx2 avx512)
set(KEEL_X86_KERNELS ON)
if(KEEL_SANITIZE STREQUAL "fuzzer")
    set(KEEL_VECTOR_SETS)
    set(KEEL_X86_KERNELS OFF)
endif()
set(KEEL_ONE_SET "_(avx2|avx512|avx512_bf16|amx)$")

# The names of all kernels, without or with oneDNN's.
function(keel_kernel_stems out with_dnnl)
    set(stems)
    file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/ops/x86/*.c
         ${PROJECT_SOURCE_DIR}/src/train/x86/*.c)
    foreach(file IN LISTS files)
        get_filename_component(stem ${file} NAME_WE)
        if(stem MATCHES "^_" OR NOT KEEL_X86_KERNELS)
            continue()
        elseif(stem MATCHES "${KEEL_ONE_SET}")
            list(APPEND stems ${stem})
        else()
            foreach(isa IN LISTS KEEL_VECTOR_SETS)
                list(APPEND stems ${stem}_${isa})
            endforeach()
        endif()
    endforeach()
    file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/ops/dnnl/*.c)
    foreach(file IN LISTS files)
        get_filename_component(stem ${file} NAME_WE)
        if(with_dnnl AND NOT stem MATCHES "^_")
            list(APPEND stems ${stem}_dnnl)
        endif()
    endforeach()
    list(SORT stems)
    set(${out} ${stems} PARENT_SCOPE)
endfunction()

# Our kernels for CUDA: src/ops/cuda/relu.cu holds keel_kernel_relu_cuda, which keel_cuda_kernels[]
# lists. They are compiled by nvcc for the plug-in, and by g++ for the emulator of the tests; OUT gets
# the file of the list, SOURCES all files.
function(keel_cuda_registry out sources)
    file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/ops/cuda/*.cu
         ${PROJECT_SOURCE_DIR}/src/train/cuda/*.cu)
    set(stems)
    foreach(file IN LISTS files)
        get_filename_component(stem ${file} NAME_WE)
        if(NOT stem MATCHES "^_")
            list(APPEND stems ${stem}_cuda)
        endif()
    endforeach()
    list(SORT stems)
    set(file ${PROJECT_BINARY_DIR}/registry/registry_cuda_kernel.c)
    keel_write_registry(kernel cuda_kernels ops/op.h "${stems}" ${file})
    set(${out} ${file} PARENT_SCOPE)
    set(${sources} ${files} PARENT_SCOPE)
endfunction()

# Write registry_KIND.c with the array of `stems`.
function(keel_write_registry kind plural header stems file)
    set(text "/* Made by the build from the names of the files. */\n#include \"${header}\"\n\n")
    set(list "")
    foreach(stem IN LISTS stems)
        string(APPEND text "extern const keel_${kind} keel_${kind}_${stem};\n")
        string(APPEND list "    &keel_${kind}_${stem},\n")
    endforeach()
    string(APPEND text "\nconst keel_${kind} *const keel_${plural}[] = {\n${list}    0,\n};\n")
    file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
endfunction()

# Write ops/all.h, which declares every op: rooms above name an op by its symbol, so that the
# compiler finds a name that is not there. Kernels take a while to compile and each is of one op;
# they declare it by KEEL_USES_OP, so that a new op does not build them anew.
function(keel_write_ops_header stems)
    set(text "/* Made by the build from the names of the files in src/ops. */\n#include \"ops/op.h\"\n\n")
    foreach(stem IN LISTS stems)
        string(APPEND text "extern const keel_op keel_op_${stem};\n")
    endforeach()
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/registry/ops/all.h CONTENT "${text}" @ONLY)
endfunction()

# keel_registry(KIND DIR HEADER OUT [GLOB]): list the files of DIR; OUT gets the file made, or
# nothing while the folder has no header yet.
function(keel_registry kind dir header out)
    set(glob *.c)
    if(ARGN)
        set(glob ${ARGN})
    endif()
    string(REGEX REPLACE "^loss$" "losse" plural ${kind})
    set(plural ${plural}s)
    set(${out} "" PARENT_SCOPE)
    if(NOT EXISTS ${PROJECT_SOURCE_DIR}/src/${header} AND NOT EXISTS ${PROJECT_SOURCE_DIR}/${dir}/${header})
        return()
    endif()
    file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${dir}/${glob})
    set(stems)
    foreach(file IN LISTS files)
        get_filename_component(stem ${file} NAME_WE)
        if(NOT stem MATCHES "^_|_impl$|^${kind}$|^main$|_cuda$")
            list(APPEND stems ${stem})
        endif()
    endforeach()
    list(SORT stems)
    set(file ${PROJECT_BINARY_DIR}/registry/registry_${kind}.c)
    keel_write_registry(${kind} ${plural} ${header} "${stems}" ${file})
    set(${out} ${file} PARENT_SCOPE)
    if(kind STREQUAL "op")
        keel_write_ops_header("${stems}")
    endif()
endfunction()

# The layers of Keras's folder of preprocessing once more, which are stages of pipelines, too.
function(keel_preprocessing_list out)
    file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/layers/preprocessing/*.c)
    set(stems)
    foreach(file IN LISTS files)
        get_filename_component(stem ${file} NAME_WE)
        if(NOT stem MATCHES "^_")
            list(APPEND stems ${stem})
        endif()
    endforeach()
    list(SORT stems)
    set(file ${PROJECT_BINARY_DIR}/registry/registry_preprocessing.c)
    keel_write_registry(layer preprocessing_layers layers/layer.h "${stems}" ${file})
    set(${out} ${file} PARENT_SCOPE)
endfunction()

# Every list of the library.
function(keel_registries out)
    set(all)
    foreach(row "op ops ops/op.h *.c" "layer layers layers/layer.h */*.c"
            "loss losses losses/loss.h *.c" "metric metrics metrics/metric.h *.c"
            "optimizer optimizers optimizers/optimizer.h *.c"
            "rate optimizers/schedules optimizers/schedules/rate.h *.c"
            "initializer initializers initializers/initializer.h *.c"
            "constraint constraints constraints/constraint.h *.c"
            "regularizer regularizers regularizers/regularizer.h *.c"
            "activation activations activations/activation.h *.c"
            "watcher train/callbacks train/callbacks/watcher.h *.c"
            "source data/sources data/source.h *.c" "stage data/stages data/stage.h *.c")
        separate_arguments(row)
        list(GET row 0 kind)
        list(GET row 1 dir)
        list(GET row 2 header)
        list(GET row 3 glob)
        keel_registry(${kind} src/${dir} ${header} file ${glob})
        list(APPEND all ${file})
    endforeach()
    keel_preprocessing_list(file)
    list(APPEND all ${file})
    set(file ${PROJECT_BINARY_DIR}/registry/registry_kernel.c)
    keel_kernel_stems(stems "${KEEL_HAVE_DNNL}")
    keel_write_registry(kernel kernels ops/op.h "${stems}" ${file})
    list(APPEND all ${file})
    keel_kernel_stems(stems FALSE) # for tests of our own kernels alone
    keel_write_registry(kernel kernels ops/op.h "${stems}"
                        ${PROJECT_BINARY_DIR}/registry/registry_kernel_own.c)
    set(${out} ${all} PARENT_SCOPE)
endfunction()
