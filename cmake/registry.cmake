# Lists of everything a user can name, made from the folders: src/ops/relu.c holds keel_op_relu, so
# keel_ops[] lists it. A stem that does not match its symbol fails at link, by name. Not listed: the
# file named like the kind (ops/op.c), names that begin with _ or end in _impl, and vendor suffixes,
# which under src/ops are kernels (conv2d_dnnl.c holds keel_kernel_conv2d_dnnl).
set(KEEL_KERNEL_SUFFIX "_(dnnl|avx2|avx512|avx512_bf16|amx|cuda)$")

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
# compiler finds a name that is not there.
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
        if(stem MATCHES "^_|_impl$|^${kind}$|^main$|_cuda$"
           OR (stem MATCHES "_dnnl$" AND NOT KEEL_HAVE_DNNL))
            continue()
        endif()
        if((stem MATCHES "${KEEL_KERNEL_SUFFIX}" AND kind STREQUAL "kernel")
           OR (NOT stem MATCHES "${KEEL_KERNEL_SUFFIX}" AND NOT kind STREQUAL "kernel" AND NOT stem STREQUAL "op"))
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
    if(kind STREQUAL "kernel") # the same list without oneDNN, for tests of our own kernels alone
        list(FILTER stems EXCLUDE REGEX "_dnnl$")
        keel_write_registry(${kind} ${plural} ${header} "${stems}"
                            ${PROJECT_BINARY_DIR}/registry/registry_kernel_own.c)
    endif()
endfunction()

# Every list of the library.
function(keel_registries out)
    set(all)
    foreach(row "op ops ops/op.h *.c" "kernel ops ops/op.h *.c" "layer layers layers/layer.h */*.c"
            "loss losses losses/loss.h *.c" "metric metrics metrics/metric.h *.c"
            "optimizer optimizers optimizers/optimizer.h *.c"
            "initializer initializers initializers/initializer.h *.c"
            "regularizer regularizers regularizers/regularizer.h *.c"
            "activation activations activations/activation.h *.c"
            "source data/sources data/source.h *.c")
        separate_arguments(row)
        list(GET row 0 kind)
        list(GET row 1 dir)
        list(GET row 2 header)
        list(GET row 3 glob)
        keel_registry(${kind} src/${dir} ${header} file ${glob})
        list(APPEND all ${file})
    endforeach()
    set(${out} ${all} PARENT_SCOPE)
endfunction()
