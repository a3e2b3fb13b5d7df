# Plug-ins that connect processes by MPI: libkeel_mpi_openmpi.so and libkeel_mpi_mpich.so, one for each
# MPI that is found, because the binary interfaces of the two differ. libkeel_mpi.so is a link to the one
# of mpicc, for programs that include keel/mpi.h. Nothing else in Keel sees an MPI. Sets KEEL_MPIS (the
# names of those found) and KEEL_MPI_DEFAULT.
set(KEEL_MPIS)
set(KEEL_MPI_DEFAULT)
if(KEEL_MPI AND NOT KEEL_SANITIZE STREQUAL "fuzzer")
    pkg_check_modules(PC_openmpi QUIET ompi-c)
    pkg_check_modules(PC_mpich QUIET mpich)
    foreach(mpi openmpi mpich)
        if(NOT PC_${mpi}_FOUND)
            continue()
        endif()
        # the .pc files also name what only the MPI itself needs
        set(libraries ${PC_${mpi}_LINK_LIBRARIES})
        list(FILTER libraries INCLUDE REGEX "libmpi(ch)?\\.so$")
        set(KEEL_MPI_LIBRARIES_${mpi} ${libraries})
        set(plugin keel_mpi_${mpi})
        add_library(${plugin} SHARED mpi/keel_mpi.c mpi/eager.c mpi/end.c)
        target_include_directories(${plugin} PRIVATE include)
        target_include_directories(${plugin} SYSTEM PRIVATE ${PC_${mpi}_INCLUDE_DIRS})
        target_compile_options(${plugin} PRIVATE ${KEEL_WARNINGS})
        target_link_libraries(${plugin} PRIVATE ${libraries} Threads::Threads ${CMAKE_DL_LIBS})
        set_target_properties(${plugin} PROPERTIES EXPORT_NAME mpi_${mpi} INSTALL_RPATH_USE_LINK_PATH ON)
        target_include_directories(${plugin} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
        list(APPEND KEEL_MPIS ${mpi})
    endforeach()
endif()

if(KEEL_MPIS)
    list(GET KEEL_MPIS 0 KEEL_MPI_DEFAULT)
    find_program(KEEL_MPICC mpicc)
    mark_as_advanced(KEEL_MPICC)
    if(KEEL_MPICC) # Open MPI's knows --showme, MPICH's does not
        execute_process(COMMAND ${KEEL_MPICC} --showme:version RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
        if(failed AND "mpich" IN_LIST KEEL_MPIS)
            set(KEEL_MPI_DEFAULT mpich)
        endif()
    endif()
    add_custom_command(TARGET keel_mpi_${KEEL_MPI_DEFAULT} POST_BUILD VERBATIM
        COMMAND ${CMAKE_COMMAND} -E create_symlink libkeel_mpi_${KEEL_MPI_DEFAULT}.so
                ${PROJECT_BINARY_DIR}/libkeel_mpi.so)
elseif(KEEL_MPI STREQUAL "AUTO")
    if(NOT KEEL_SANITIZE STREQUAL "fuzzer")
        message(NOTICE "no MPI: Keel is built for one process; for more, install libopenmpi-dev and openmpi-bin, or libmpich-dev and mpich")
    endif()
elseif(KEEL_MPI AND NOT KEEL_SANITIZE STREQUAL "fuzzer")
    message(FATAL_ERROR "KEEL_MPI=${KEEL_MPI}, but pkg-config finds neither ompi-c nor mpich: install libopenmpi-dev or libmpich-dev")
endif()
