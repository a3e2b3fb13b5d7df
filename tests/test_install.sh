#!/bin/bash
# An installed Keel serves a C program: through pkg-config (shared and static), and through CMake; the
# command runs from where it was put.
set -eu
to=$KEEL_TEST_TMP/usr
cmake --install "$KEEL_BUILD" --prefix "$to" >/dev/null
cat >"$KEEL_TEST_TMP/main.c" <<'C'
#include <keel/status.h>
#include <keel/tensor.h>
#include <string.h>
int main(void)
{
    keel_tensor t = { 0 };
    const keel_shape shape = { 2, { 3, 4 } };
    if (keel_tensor_create(&t, KEEL_FLOAT32, &shape) < 0) return 1;
    keel_tensor_free(&t);
    return strcmp(keel_status_name(KEEL_EARG), "KEEL_EARG") != 0;
}
C
cd "$KEEL_TEST_TMP"
PKG_CONFIG_PATH=$(dirname "$(find "$to" -name keel.pc)")
export PKG_CONFIG_PATH
libdir=$(pkg-config --variable=libdir keel)

cc -std=c11 -Wall -Wextra -Werror main.c $(pkg-config --cflags --libs keel) -o shared
LD_LIBRARY_PATH=$libdir ./shared
echo "pkg-config, shared library: runs"

cc -std=c11 main.c $(pkg-config --cflags keel) "$libdir/libkeel.a" \
    $(pkg-config --static --libs keel | sed 's/-lkeel//') -o static
./static
echo "pkg-config, static library: runs"

mkdir project
cp main.c project
cat >project/CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(uses_keel LANGUAGES C)
find_package(Keel 0.1 REQUIRED)
add_executable(main main.c)
target_link_libraries(main PRIVATE keel::keel)
add_executable(main_static main.c)
target_link_libraries(main_static PRIVATE keel::keel_static)
CMAKE
cmake -S project -B project/build -G Ninja -DCMAKE_PREFIX_PATH="$to" >/dev/null
cmake --build project/build >/dev/null
project/build/main
project/build/main_static
echo "CMake package: runs"

# a program of its own MPI, which brings mpicc
if [ -e "$libdir/keel/libkeel_mpi.so" ] && command -v mpicc >/dev/null; then
    cat >with_mpi.c <<'C'
#include <keel/mpi.h>
#include <keel/train.h>
int main(int argc, char **argv)
{
    int level = 0, count = 0;
    keel_strategy *s = NULL;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    if (keel_strategy_create_mpi(&s, "cpu:0", MPI_COMM_NULL) != KEEL_EARG) return 1;
    if (keel_strategy_create_mpi(&s, "cpu:0", MPI_COMM_WORLD) < 0) return 2;
    count = keel_strategy_processes(s);
    keel_strategy_destroy(s);
    MPI_Finalize();
    return count != 1;
}
C
    mpicc -std=c11 with_mpi.c $(pkg-config --cflags --libs keel-mpi) -o with_mpi
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 LD_LIBRARY_PATH=$libdir ./with_mpi
    echo "MPI: runs"
fi

# nothing leads back to the folder it was built in: no path in a text, none that the loader follows
if grep -rIl "$KEEL_BUILD" "$to"; then
    echo "error: these texts name the build folder"
    exit 1
fi
for file in "$to"/bin/* "$libdir"/libkeel.so "$libdir"/keel/libkeel_mpi*.so; do
    [ -e "$file" ] || continue
    if readelf -d "$file" | grep -E "(RPATH|RUNPATH|NEEDED).*$KEEL_BUILD"; then
        echo "error: $file looks for libraries in the build folder"
        exit 1
    fi
    if ldd "$file" | grep -E "not found|$KEEL_BUILD"; then
        echo "error: $file finds its libraries only beside the build"
        exit 1
    fi
done
[ ! -e "$libdir/keel/libdnnl.so.3" ] || ldd "$libdir/libkeel.so" | grep -q "$to/.*libdnnl" ||
    { echo "error: the installed oneDNN is not the one that is used" && exit 1; }
echo "paths: none into the build folder"

if [ -e "$to/bin/keel" ]; then
    "$to/bin/keel" --help >/dev/null
    echo "command: runs"
fi
