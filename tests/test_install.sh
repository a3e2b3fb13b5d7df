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

if [ -e "$to/bin/keel" ]; then
    "$to/bin/keel" --help >/dev/null
    echo "command: runs"
fi
