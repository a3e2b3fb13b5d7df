# Where the kept libraries are. Sets KEEL_INCLUDES, KEEL_LIBRARIES, KEEL_PC_LIBS (linker flags for who
# takes libkeel.a and the shared libraries of the others) and KEEL_HAVE_DNNL.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

set(KEEL_INCLUDES)
set(KEEL_LIBRARIES Threads::Threads m)
set(KEEL_PC_LIBS "-lpthread -lm")
foreach(name hdf5-serial libzip jansson libjpeg spng zlib hwloc libxxhash)
    pkg_check_modules(PC_${name} REQUIRED ${name})
    list(APPEND KEEL_INCLUDES ${PC_${name}_INCLUDE_DIRS})
    list(APPEND KEEL_LIBRARIES ${PC_${name}_LINK_LIBRARIES})
    string(JOIN " " KEEL_PC_LIBS ${KEEL_PC_LIBS} ${PC_${name}_LDFLAGS})
endforeach()

find_path(RANDOM123_INCLUDE_DIR Random123/philox.h REQUIRED)
list(APPEND KEEL_INCLUDES ${RANDOM123_INCLUDE_DIR})

# oneDNN 2.x or 3.x.
find_path(DNNL_INCLUDE_DIR dnnl.h)
find_library(DNNL_LIBRARY dnnl)
set(KEEL_HAVE_DNNL OFF)
if(KEEL_DNNL AND DNNL_INCLUDE_DIR AND DNNL_LIBRARY)
    set(KEEL_HAVE_DNNL ON)
elseif(KEEL_DNNL STREQUAL "AUTO")
    # fine without
elseif(KEEL_DNNL)
    message(FATAL_ERROR "KEEL_DNNL=ON, but dnnl.h or libdnnl was not found: install libdnnl-dev")
endif()
if(KEEL_HAVE_DNNL)
    list(APPEND KEEL_INCLUDES ${DNNL_INCLUDE_DIR})
    list(APPEND KEEL_LIBRARIES ${DNNL_LIBRARY})
    string(APPEND KEEL_PC_LIBS " -ldnnl")
endif()
list(REMOVE_DUPLICATES KEEL_INCLUDES)
list(REMOVE_ITEM KEEL_INCLUDES /usr/include) # the compiler knows; naming it breaks include_next
message(STATUS "oneDNN kernels: ${KEEL_HAVE_DNNL}")
