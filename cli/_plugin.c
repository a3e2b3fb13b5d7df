/* --plugin: a shared library of the user, which registers classes. It stays loaded, since models
 * call its functions until the end. */
#include "setup.h"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int keel_setup_plugin(const char *file)
{
    char path[4096], text[512];
    if (!file) return -1;
    /* without a '/' the loader would look in the folders of the system */
    const int n = snprintf(path, sizeof path, "%s%s", strchr(file, '/') ? "" : "./", file);
    if (n < 0 || (size_t)n >= sizeof path)
        return keel_complain(EXIT_USAGE, "--plugin: the path is too long");
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return keel_complain(EXIT_FAILED, "--plugin: %s",
                             keel_printable(text, sizeof text, dlerror()));
    keel_status (*plugin)(void) = NULL;
    *(void **)&plugin = dlsym(library, "keel_plugin");
    if (!plugin)
        return keel_complain(EXIT_FAILED, "--plugin: %s has no function keel_plugin", path);
    const keel_status s = plugin();
    return s < 0 ? keel_complain_within(s, file) : -1;
}
