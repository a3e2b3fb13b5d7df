# Compile by way of ccache, where it is installed: another clone, worktree or sanitizer build then compiles
# only what no other has. Paths below the project count as relative, so that they all share results;
# debuggers may therefore show the path of the clone that compiled a file first. -DKEEL_CCACHE=OFF, or a
# launcher of one's own, leaves it out.
option(KEEL_CCACHE "compile by way of ccache, where it is installed" ON)
find_program(KEEL_CCACHE_PROGRAM ccache)
mark_as_advanced(KEEL_CCACHE_PROGRAM)
if(KEEL_CCACHE AND KEEL_CCACHE_PROGRAM)
    foreach(language C CXX)
        if(NOT CMAKE_${language}_COMPILER_LAUNCHER)
            set(CMAKE_${language}_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
                CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${KEEL_CCACHE_PROGRAM})
        endif()
    endforeach()
endif()
