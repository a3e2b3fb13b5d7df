# Where the kept libraries are. Sets KEEL_INCLUDES, KEEL_LIBRARIES, KEEL_PC_LIBS (linker flags for who
# takes libkeel.a and the shared libraries of the others), KEEL_HAVE_DNNL and what onednn.cmake sets.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

set(KEEL_INCLUDES)
set(KEEL_LIBRARIES Threads::Threads m)
set(KEEL_PC_LIBS "-lpthread -lm")
foreach(name hdf5-serial jansson libjpeg spng libwebp libgif zlib hwloc libxxhash)
    pkg_check_modules(PC_${name} REQUIRED ${name})
    list(APPEND KEEL_INCLUDES ${PC_${name}_INCLUDE_DIRS})
    list(APPEND KEEL_LIBRARIES ${PC_${name}_LINK_LIBRARIES})
    string(JOIN " " KEEL_PC_LIBS ${KEEL_PC_LIBS} ${PC_${name}_LDFLAGS})
endforeach()

find_path(RANDOM123_INCLUDE_DIR Random123/philox.h REQUIRED)
list(APPEND KEEL_INCLUDES ${RANDOM123_INCLUDE_DIR})

list(REMOVE_DUPLICATES KEEL_INCLUDES)
list(REMOVE_ITEM KEEL_INCLUDES /usr/include) # the compiler knows; naming it breaks include_next

# oneDNN's headers are not among KEEL_INCLUDES: only the files that know it see them.
include(cmake/onednn.cmake)
set(KEEL_HAVE_DNNL OFF)
if(KEEL_DNNL_USED)
    set(KEEL_HAVE_DNNL ON)
endif()
