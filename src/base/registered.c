/* See registered.h. Names are checked here, since they go into files and messages. */
#include "base/registered.h"
#include "base/memory.h"
#include <pthread.h>
#include <string.h>

enum { NAME_MAX_BYTES = 120, KEYS_MAX = 64, CONFIG_MAX = 1 << 20 };

_Static_assert(sizeof(keel_key_ints) == sizeof(keel_ints) &&
                   offsetof(keel_key_ints, at) == offsetof(keel_ints, at) &&
                   (int)KEEL_ARG_INTS_MAX == (int)KEEL_INTS_MAX,
               "the reader of fields fills the program's struct");

/* ---- the list -------------------------------------------------------------------------------- */

struct keel_registry_entry {
    struct keel_registry_entry *next;
    const keel_type *type;
};

/* One thread adds at a time; readers take no lock, since an entry is whole before it is linked. */
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;

static struct keel_registry_entry *load(struct keel_registry_entry *const *at)
{
    return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

const keel_type *keel_registry_find(const keel_registry *r, const char *name)
{
    for (const struct keel_registry_entry *e = load(&r->first); e; e = load(&e->next))
        if (!strcmp(e->type->registered->name, name)) return e->type;
    return NULL;
}

keel_status keel_registry_add(keel_registry *r, const keel_type *type)
{
    keel_status s = KEEL_OK;
    struct keel_registry_entry **end = &r->first;
    struct keel_registry_entry *e = keel_calloc(1, sizeof *e);
    if (!e) return KEEL_ENOMEM;
    e->type = type;
    pthread_mutex_lock(&adding);
    if (keel_registry_find(r, type->registered->name))
        s = keel_fail(KEEL_EARG, "%s '%s' is registered already", r->what, type->registered->name);
    while (s >= 0 && *end) end = &(*end)->next;
    if (s >= 0) {
        __atomic_store_n(end, e, __ATOMIC_RELEASE);
        e = NULL;
    }
    pthread_mutex_unlock(&adding);
    keel_free(e);
    return s;
}

/* ---- types ----------------------------------------------------------------------------------- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* A name of Python: it becomes the names of layers, and groups in files. */
static bool is_class_name(const char *name)
{
    if (!is_letter(*name)) return false;
    while (is_letter(*name) || (*name >= '0' && *name <= '9')) name++;
    return !*name;
}

static bool is_package(const char *name, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)name[i] <= ' ' || name[i] == '/' || name[i] == 0x7F) return false;
    return n > 0;
}

static keel_status check_name(const keel_registry *r, const char *name, bool ours)
{
    if (!name || !*name) return keel_fail(KEEL_EARG, "a %s must have a name", r->what);
    const char *own = strchr(name, '>');
    if (strlen(name) > NAME_MAX_BYTES || (own && !is_package(name, (size_t)(own - name))) ||
        !is_class_name(own ? own + 1 : name))
        return keel_fail(KEEL_EARG,
                         "%s '%.120s': its name must be that of a Python class, \"Gain\", or with "
                         "its package, \"my>Gain\", and have at most %d bytes",
                         r->what, name, NAME_MAX_BYTES);
    if (ours)
        return keel_fail(KEEL_EARG,
                         "%s '%s': Keras has this name itself; give yours a package, "
                         "\"my>%s\"",
                         r->what, name, name);
    return KEEL_OK;
}

static size_t size_of(keel_key_kind kind)
{
    switch (kind) {
    case KEEL_KEY_IS_INT:
        return sizeof(int64_t);
    case KEEL_KEY_IS_FLOAT:
        return sizeof(double);
    case KEEL_KEY_IS_BOOL:
        return sizeof(bool);
    case KEEL_KEY_IS_STR:
        return sizeof(char *);
    case KEEL_KEY_IS_INTS:
        return sizeof(keel_key_ints);
    default:
        return 0;
    }
}

static keel_field_kind kind_of(keel_key_kind kind)
{
    static const keel_field_kind kinds[] = { KEEL_FIELD_INT, KEEL_FIELD_FLOAT, KEEL_FIELD_BOOL,
                                             KEEL_FIELD_STRING, KEEL_FIELD_INTS };
    return kinds[kind];
}

static int count_fields(const keel_field *f)
{
    int n = 0;
    while (f && f[n].key) n++;
    return n;
}

/* Keys of every layer, loss or metric, which are read elsewhere. */
static bool is_taken(const keel_field *fields, const char *key)
{
    static const char *const of_all[] = { "name", "trainable", "dtype", "activity_regularizer" };
    for (size_t i = 0; i < sizeof of_all / sizeof *of_all; i++)
        if (!strcmp(key, of_all[i])) return true;
    for (; fields->key; fields++)
        if (!strcmp(key, fields->key)) return true;
    return false;
}

static keel_status add_key(const keel_custom_type *of, const keel_key *k, keel_field *fields)
{
    const size_t size = size_of(k->kind);
    if (!*k->key || is_taken(fields, k->key))
        return keel_fail(KEEL_EARG, "%s: the key '%s' is there already, or Keel's", of->name,
                         k->key);
    if (!size) return keel_fail(KEEL_EARG, "%s: the key '%s' is of no kind", of->name, k->key);
    if (k->offset > of->config_size || size > of->config_size - k->offset)
        return keel_fail(KEEL_EARG, "%s: the key '%s' does not lie in a struct of %zu bytes",
                         of->name, k->key, of->config_size);
    fields[count_fields(fields)] = (keel_field){ .key = k->key,
                                                 .kind = kind_of(k->kind),
                                                 .offset = KEEL_REGISTERED_CONFIG + k->offset,
                                                 .dflt = k->dflt,
                                                 .help = k->help ? k->help : "",
                                                 .min = k->min,
                                                 .max = k->max };
    return KEEL_OK;
}

/* A default that is wrong is found now, not when a model is read. */
static keel_status check_default(const keel_type *type, const keel_field *f)
{
    const keel_field alone[] = { *f, { 0 } };
    keel_type one = *type;
    one.fields = alone;
    one.ready = NULL;
    if (!f->dflt || f->kind == KEEL_FIELD_IGNORE || f->kind == KEEL_FIELD_REFUSE) return KEEL_OK;
    json_t *v = json_loads(f->dflt, JSON_DECODE_ANY, NULL);
    if (!v)
        return keel_fail(KEEL_EARG, "%s: the default of '%s' is not JSON: %.80s", type->name,
                         f->key, f->dflt);
    json_decref(v);
    void *args = keel_calloc(1, type->args_size);
    if (!args) return KEEL_ENOMEM;
    const keel_status s = keel_fields_read(&one, NULL, args);
    if (s >= 0) keel_fields_free(&one, args);
    keel_free(args);
    return s < 0 ? keel_fail_within(s, "a default") : KEEL_OK;
}

/* The program's own word on a configuration. */
static keel_status ready(void *args)
{
    const keel_registered *of = keel_registered_of(args);
    const char *why = of->type.refuse(keel_registered_config(args));
    return why ? keel_fail(KEEL_EARG, "%s: %.400s", of->name, why) : KEEL_OK;
}

static keel_status make_fields(const keel_registration *from, keel_type *type)
{
    const keel_custom_type *of = from->type;
    const int more = count_fields(from->more);
    int n = 0;
    while (of->keys && of->keys[n].key) n++;
    if (n > KEYS_MAX || of->config_size > CONFIG_MAX)
        return keel_fail(KEEL_EARG, "%s: %d keys in a struct of %zu bytes; possible are %d in %d",
                         of->name, n, of->config_size, KEYS_MAX, CONFIG_MAX);
    keel_field *fields = keel_calloc((size_t)(more + n + 1), sizeof *fields);
    if (!fields) return KEEL_ENOMEM;
    type->fields = fields;
    for (int i = 0; i < more; i++) fields[i] = from->more[i];
    for (int i = 0; i < n; i++) KEEL_TRY(add_key(of, &of->keys[i], fields));
    for (int i = 0; i < n; i++) KEEL_TRY(check_default(type, &fields[more + i]));
    return KEEL_OK;
}

keel_status keel_registered_make(const keel_registry *r, const keel_registration *from,
                                 keel_type *out)
{
    keel_type type = { .help = "registered by the program",
                       .args_size = KEEL_REGISTERED_CONFIG + from->type->config_size };
    if (from->size != from->wanted)
        return keel_fail(KEEL_EARG, "a %s: size is %zu, not %zu: begin with KEEL_CUSTOM_...",
                         r->what, from->size, from->wanted);
    KEEL_TRY(check_name(r, from->type->name, from->ours));
    keel_registered *own = keel_calloc(1, sizeof *own + from->wanted);
    char *name = keel_strdup(from->type->name);
    keel_status s = own && name ? KEEL_OK : KEEL_ENOMEM;
    if (s < 0) {
        keel_free(own);
        keel_free(name);
        return s;
    }
    memcpy(own + 1, from->of, from->wanted);
    *own = (keel_registered){ .name = name, .type = *from->type, .of = own + 1 };
    type.registered = own;
    type.name = strchr(name, '>') ? strchr(name, '>') + 1 : name;
    if (own->type.refuse) type.ready = ready;
    if ((s = make_fields(from, &type)) < 0)
        keel_registered_free(&type);
    else
        *out = type;
    return s;
}

void keel_registered_free(keel_type *type)
{
    if (!type->registered) return;
    keel_free((void *)type->registered->name);
    keel_free((void *)type->registered);
    keel_free((void *)type->fields);
    *type = (keel_type){ 0 };
}
