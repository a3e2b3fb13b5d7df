# What `cmake --install` lays down: headers, both libraries, the command, pkg-config, CMake package, the
# package for Python.
include(CMakePackageConfigHelpers)
set_target_properties(keel_shared PROPERTIES EXPORT_NAME keel)
install(TARGETS keel_shared keel_static EXPORT KeelTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/keel)
if(TARGET keel_command)
    install(TARGETS keel_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(EXISTS ${PROJECT_SOURCE_DIR}/docs/keel.1)
    install(FILES docs/keel.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()

# For PYTHONPATH, or for pip; it finds the library three folders up.
install(DIRECTORY python DESTINATION ${CMAKE_INSTALL_LIBDIR}/keel
        FILES_MATCHING PATTERN "*.py" PATTERN "pyproject.toml" PATTERN "__pycache__" EXCLUDE)

# Our own copy of oneDNN, in a folder where nobody else looks. Debian's stays where it is.
if(KEEL_DNNL_USED STREQUAL "wheel")
    install(FILES ${DNNL_LIBRARY} DESTINATION ${CMAKE_INSTALL_LIBDIR}/keel)
    install(DIRECTORY ${KEEL_DNNL_DIR}/share/doc/onednn DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/keel)
    string(APPEND KEEL_PC_LIBS " -L\${libdir}/keel -l:libdnnl.so.3 -Wl,-rpath,\${libdir}/keel")
elseif(KEEL_HAVE_DNNL)
    string(APPEND KEEL_PC_LIBS " -ldnnl")
endif()

# The plug-ins lie where keel looks for them, beside our oneDNN. libkeel_mpi.so is the one of mpicc.
if(KEEL_MPIS)
    foreach(mpi IN LISTS KEEL_MPIS)
        install(TARGETS keel_mpi_${mpi} EXPORT KeelTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/keel)
    endforeach()
    install(FILES ${PROJECT_BINARY_DIR}/libkeel_mpi.so DESTINATION ${CMAKE_INSTALL_LIBDIR}/keel)
    install(FILES include/keel/mpi.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/keel)
endif()

# The .pc file finds its prefix from its own place, so that the tree can be moved.
file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" KEEL_PC_UP "${up}")
configure_file(cmake/keel.pc.in ${PROJECT_BINARY_DIR}/keel.pc @ONLY)
if(KEEL_MPIS)
    configure_file(cmake/keel-mpi.pc.in ${PROJECT_BINARY_DIR}/keel-mpi.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/keel-mpi.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
install(FILES ${PROJECT_BINARY_DIR}/keel.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Keel)
install(EXPORT KeelTargets NAMESPACE keel:: DESTINATION ${package})
configure_package_config_file(cmake/KeelConfig.cmake.in ${PROJECT_BINARY_DIR}/KeelConfig.cmake
                              INSTALL_DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/KeelConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/KeelConfig.cmake ${PROJECT_BINARY_DIR}/KeelConfigVersion.cmake
        DESTINATION ${package})
