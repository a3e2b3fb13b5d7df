# libkeel_cuda.so, the plug-in for NVIDIA's GPUs, where there are nvcc and cuDNN's headers: all kernels
# for CUDA and the device, for the GPUs that have bfloat16. It has its own copy of CUDA's runtime and
# takes the rest from libkeel; cuBLASLt and cuDNN are loaded when a kernel asks for them
# (src/device/cuda/libraries.cu). nvcc makes multiply-adds only of what says fmaf: left to itself it
# makes them in one of two loops over the same numbers and not in the other, and then the bits of a
# row depend on where it lies. Every warning is an error. What ptxas says of registers and spills lies
# in BUILD/cuda/NAME.log. cuda-kernels: the objects alone.
set(KEEL_CUDA_GPUS 80 90 100 CACHE STRING
    "compute capabilities that libkeel_cuda.so has code for; later GPUs compile its PTX")
if(NOT KEEL_CUDA_GPUS MATCHES "^[0-9]+(;[0-9]+)*$")
    set(wrong "${KEEL_CUDA_GPUS}")
    unset(KEEL_CUDA_GPUS CACHE) # else every later make would fail, too
    message(FATAL_ERROR "KEEL_CUDA_GPUS=${wrong}: write compute capabilities without their dots, such as 80;90")
endif()
find_program(KEEL_NVCC nvcc PATHS /usr/local/cuda/bin)
find_path(KEEL_CUDNN_INCLUDE_DIR cudnn.h HINTS /usr/local/cuda/include)
if(KEEL_NVCC AND KEEL_CUDA AND NOT KEEL_SANITIZE AND NOT KEEL_CUDNN_INCLUDE_DIR)
    message(NOTICE "There is nvcc, but no cudnn.h of cuDNN 9: libkeel_cuda.so is left out")
elseif(KEEL_NVCC AND KEEL_CUDA AND NOT KEEL_SANITIZE)
    get_filename_component(cuda_folder ${KEEL_NVCC} REALPATH)
    get_filename_component(cuda_folder ${cuda_folder}/../.. ABSOLUTE)
    find_library(KEEL_CUDART libcudart_static.a HINTS ${cuda_folder}/lib64 ${cuda_folder}/lib)
    set(KEEL_NVCC_FLAGS -std=c++20 -O3 -fmad=false -lineinfo -Werror all-warnings -Xptxas -v -Xcompiler -fPIC,-Wall)
    foreach(gpu IN LISTS KEEL_CUDA_GPUS)
        list(APPEND KEEL_NVCC_FLAGS -gencode arch=compute_${gpu},code=sm_${gpu})
    endforeach()
    set(gpus ${KEEL_CUDA_GPUS})
    list(SORT gpus COMPARE NATURAL)
    list(GET gpus -1 last)
    list(APPEND KEEL_NVCC_FLAGS -gencode arch=compute_${last},code=compute_${last})
    # keel_nvcc(FILE OUT): OUT gets the object of FILE.cu
    function(keel_nvcc file out)
        get_filename_component(stem ${file} NAME_WE)
        set(object ${PROJECT_BINARY_DIR}/cuda/${stem}.o)
        add_custom_command(OUTPUT ${object}
            COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} ${KEEL_NVCC} ${KEEL_NVCC_FLAGS} -DKEEL_VERSION=\\\"${PROJECT_VERSION}\\\" -I ${PROJECT_SOURCE_DIR}/include
                    -I ${PROJECT_SOURCE_DIR}/src -I ${PROJECT_SOURCE_DIR}/tests -I ${PROJECT_SOURCE_DIR}/tests/emulator -isystem ${KEEL_CUDNN_INCLUDE_DIR} -MD -MF ${object}.d -c ${file} -o ${object}
                    > ${PROJECT_BINARY_DIR}/cuda/${stem}.log 2>&1
                    || (cat ${PROJECT_BINARY_DIR}/cuda/${stem}.log && false)
            DEPENDS ${file} DEPFILE ${object}.d COMMENT "nvcc ${stem}.cu")
        set(${out} ${object} PARENT_SCOPE)
    endfunction()
    set(cuda_objects)
    file(GLOB cuda_device_sources CONFIGURE_DEPENDS src/device/cuda/*.cu src/optimizers/cuda/*.cu)
    foreach(file IN LISTS cuda_sources cuda_device_sources)
        keel_nvcc(${file} object)
        list(APPEND cuda_objects ${object})
    endforeach()
    file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/cuda)
    add_custom_target(cuda-kernels DEPENDS ${cuda_objects})
    set(plugin ${PROJECT_BINARY_DIR}/libkeel_cuda.so)
    add_library(keel_cuda_list OBJECT ${cuda_registry})
    target_include_directories(keel_cuda_list PRIVATE include src)
    set_target_properties(keel_cuda_list PROPERTIES POSITION_INDEPENDENT_CODE ON)
    add_custom_command(OUTPUT ${plugin}
        COMMAND ${KEEL_NVCC} -shared -cudart static -o ${plugin} ${cuda_objects}
                $<TARGET_OBJECTS:keel_cuda_list> -Xlinker $<TARGET_FILE:keel_shared>
                -Xlinker -rpath=${cuda_folder}/lib64:${cuda_folder}/lib
        DEPENDS ${cuda_objects} keel_cuda_list $<TARGET_OBJECTS:keel_cuda_list> keel_shared
        COMMAND_EXPAND_LISTS VERBATIM COMMENT "nvcc libkeel_cuda.so")
    add_custom_target(keel_cuda ALL DEPENDS ${plugin})
    install(FILES ${plugin} DESTINATION ${CMAKE_INSTALL_LIBDIR}/keel)
endif()
