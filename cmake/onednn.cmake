# Which oneDNN is built against, by KEEL_DNNL:
#   AUTO    oneDNN 3.2, fetched once into KEEL_DNNL_DIR; where that fails, what the system has; else none
#   wheel   oneDNN 3.2 or an error      debian  the system's (2.x or 3.x) or an error      OFF  none
# 3.2 comes as two wheels of PyPI, the last of GNU OpenMP (later ones need SYCL and TBB), and both are
# pinned by their SHA-256. On processors with AVX-512 it is as fast as Debian's 2.6.3, on those with AMX
# 1.2 to 1.9 times as fast in bfloat16.
#
# Sets KEEL_DNNL_USED (wheel, debian or OFF), DNNL_INCLUDE_DIR and DNNL_LIBRARY of it, and, of the
# system's, whichever is used, DEBIAN_DNNL_INCLUDE_DIR and DEBIAN_DNNL_LIBRARY.
set(KEEL_DNNL_DIR ${PROJECT_BINARY_DIR}/onednn CACHE PATH "where oneDNN 3.2 is kept or put")
set(KEEL_DNNL_SITE https://files.pythonhosted.org/packages CACHE STRING "where the wheels lie")
mark_as_advanced(KEEL_DNNL_SITE)
set(KEEL_DNNL_WHEELS # address; SHA-256; what is taken out of it
    65/b4/792e6d3ef02a0e14fdc0392bd378dc78f3c8356e6a40fda8c0b9366628a1/onednn_cpu_gomp-2023.2.0-py2.py3-none-manylinux1_x86_64.whl
    2f22a54d6a890ed14bfa185d42a4be65d8b5b1df85dc1f0f3a9abe31620416fb
    "*.data/data/lib/libdnnl.so.3 *.data/data/share/*"
    d4/26/e1f06fc4810583d892831817e3217d32be475dd740c86c0b4058cec9d172/onednn_devel_cpu_gomp-2023.2.0-py2.py3-none-manylinux1_x86_64.whl
    9763c69e8c907e119056bd52ad918ca84ac9ba939d130a99dfa95ccca3e5e284
    "*.data/data/include/*")

# Fetch and unpack the wheels into KEEL_DNNL_DIR; `why` is empty or says what went wrong. The folder
# appears under its name only when all of it is there.
function(keel_dnnl_fetch why)
    set(${why} "" PARENT_SCOPE)
    if(EXISTS ${KEEL_DNNL_DIR}/lib/libdnnl.so.3)
        return()
    endif()
    if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux" OR NOT CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
        set(${why} "there is none for ${CMAKE_SYSTEM_NAME} on ${CMAKE_SYSTEM_PROCESSOR}" PARENT_SCOPE)
        return()
    endif()
    set(part ${KEEL_DNNL_DIR}.part)
    file(REMOVE_RECURSE ${part} ${KEEL_DNNL_DIR})
    message(NOTICE "oneDNN 3.2: fetching 39 MB from PyPI")
    set(rest ${KEEL_DNNL_WHEELS})
    while(rest)
        list(POP_FRONT rest address hash parts)
        separate_arguments(parts)
        string(PREPEND address ${KEEL_DNNL_SITE}/)
        # not EXPECTED_HASH, which would end the configuration
        file(DOWNLOAD ${address} ${part}/wheel.zip STATUS status TIMEOUT 300 INACTIVITY_TIMEOUT 20)
        list(GET status 0 code)
        set(got)
        if(code EQUAL 0)
            file(SHA256 ${part}/wheel.zip got)
        endif()
        if(NOT got STREQUAL hash)
            list(GET status 1 text)
            if(code EQUAL 0)
                set(text "${address} is not the file that Keel knows (SHA-256 ${got})")
            endif()
            file(REMOVE_RECURSE ${part})
            set(${why} "${text}" PARENT_SCOPE)
            return()
        endif()
        file(ARCHIVE_EXTRACT INPUT ${part}/wheel.zip DESTINATION ${part}/wheel
             PATTERNS ${parts})
        file(REMOVE ${part}/wheel.zip)
    endwhile()
    file(GLOB folders ${part}/wheel/*.data/data)
    foreach(folder IN LISTS folders)
        file(COPY ${folder}/ DESTINATION ${part})
    endforeach()
    file(REMOVE_RECURSE ${part}/wheel)
    file(RENAME ${part} ${KEEL_DNNL_DIR})
endfunction()

find_path(DEBIAN_DNNL_INCLUDE_DIR dnnl.h)
find_library(DEBIAN_DNNL_LIBRARY dnnl)
set(debian OFF)
if(DEBIAN_DNNL_INCLUDE_DIR AND DEBIAN_DNNL_LIBRARY)
    set(debian ON)
endif()

# What AUTO came to is kept, so that a build folder does not change its mind, nor wait for a network
# that is not there, whenever CMake runs again.
set(used ${KEEL_DNNL})
if(KEEL_DNNL STREQUAL "AUTO" AND KEEL_DNNL_AUTO)
    set(used ${KEEL_DNNL_AUTO})
endif()
if(used MATCHES "^(AUTO|wheel)$")
    keel_dnnl_fetch(why)
    if(why STREQUAL "")
        set(used wheel)
    elseif(used STREQUAL "wheel")
        message(FATAL_ERROR "oneDNN 3.2: ${why}")
    elseif(debian)
        message(NOTICE "oneDNN 3.2: not to be had (${why}): building with ${DEBIAN_DNNL_LIBRARY}; "
                       "to try again: make KEEL_DNNL=wheel")
        set(used debian)
    else()
        message(NOTICE "oneDNN 3.2: not to be had (${why}), and no libdnnl-dev: convolutions will be slow")
        set(used OFF)
    endif()
elseif(used STREQUAL "debian" AND NOT debian)
    message(FATAL_ERROR "KEEL_DNNL=debian, but dnnl.h or libdnnl was not found: install libdnnl-dev")
elseif(NOT used MATCHES "^(debian|OFF)$")
    message(FATAL_ERROR "KEEL_DNNL=${KEEL_DNNL}: use AUTO, wheel, debian or OFF")
endif()
if(KEEL_DNNL STREQUAL "AUTO")
    set(KEEL_DNNL_AUTO ${used} CACHE INTERNAL "what AUTO came to")
endif()
set(KEEL_DNNL_USED ${used})
if(used STREQUAL "wheel")
    set(DNNL_INCLUDE_DIR ${KEEL_DNNL_DIR}/include)
    set(DNNL_LIBRARY ${KEEL_DNNL_DIR}/lib/libdnnl.so.3)
elseif(used STREQUAL "debian")
    set(DNNL_INCLUDE_DIR ${DEBIAN_DNNL_INCLUDE_DIR})
    set(DNNL_LIBRARY ${DEBIAN_DNNL_LIBRARY})
endif()
message(STATUS "oneDNN: ${KEEL_DNNL_USED} ${DNNL_LIBRARY}")
