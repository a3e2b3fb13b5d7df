/* See type_help.h. */
#include "base/type_help.h"

static void field_line(keel_text *t, const keel_field *f)
{
    if (f->kind == KEEL_FIELD_IGNORE) return;
    keel_text_add(t, "  %-28s ", f->key);
    if (f->kind == KEEL_FIELD_REFUSE) {
        keel_text_add(t, "only %s; %s: not supported\n", f->dflt ? f->dflt : "null", f->help);
        return;
    }
    if (f->dflt)
        keel_text_add(t, "default %-18s ", f->dflt);
    else
        keel_text_add(t, "%-26s ", "must be given");
    keel_text_add(t, "%s", f->help);
    if (f->kind == KEEL_FIELD_CHOICE) keel_text_add(t, " (%s)", f->choices);
    keel_text_add(t, "\n");
}

void keel_type_lines(keel_text *t, const keel_type *type)
{
    keel_text_add(t, "%s: %s\n", type->name, type->help);
    for (const keel_field *f = type->fields; f && f->key; f++) field_line(t, f);
}

keel_status keel_type_help(const keel_type *type, char **out)
{
    keel_text t = { 0 };
    keel_type_lines(&t, type);
    if (t.failed) {
        keel_text_free(&t);
        return keel_fail(KEEL_ENOMEM, "out of memory");
    }
    *out = t.data;
    return KEEL_OK;
}
