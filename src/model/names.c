/* Texts that a model keeps for later readers: names in logs outlive the fit or evaluation that made
 * them. There are few, so a list is enough. */
#include "base/memory.h"
#include "model/model.h"
#include <string.h>

const char *keel_model_keep_name(keel_model *m, const char *name)
{
    for (int i = 0; i < m->n_kept; i++)
        if (!strcmp(m->kept[i], name)) return m->kept[i];
    char *copy = keel_strdup(name);
    char **more = copy ? keel_grow(m->kept, (size_t)m->n_kept + 1, sizeof *more) : NULL;
    if (!more) {
        keel_free(copy);
        return NULL;
    }
    m->kept = more;
    return m->kept[m->n_kept++] = copy;
}
