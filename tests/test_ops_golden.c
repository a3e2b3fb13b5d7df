/* Every op against the real Keras: forward, gradients and moved statistics, in float32 and float64,
 * with the rows in one piece and in three. The numbers come from tests/golden/make_ops.py. */
#include "ops_harness.h"
#include "golden.h"

static const char *case_name(const json_t *c, char name[200])
{
    const char *args = golden_text(c, "args");
    snprintf(name, 200, "%s of %s (%s)", golden_text(c, "op"), golden_text(c, "in"),
             args ? args : "");
    return name;
}

static void load(const lab *l, void *to, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        lab_set(l, to, (int64_t)i, json_number_value(json_array_get(list, i)));
}

static void same(const lab *l, const char *name, const char *what, const void *have,
                 const json_t *list, int64_t count)
{
    double most = 1e-30;
    if (!json_is_array(list)) return;
    if ((int64_t)json_array_size(list) != count)
        fail_msg("%s: %s has %lld elements, Keras has %zu", name, what, (long long)count,
                 json_array_size(list));
    for (int64_t i = 0; i < count; i++)
        most = fmax(most, fabs(json_number_value(json_array_get(list, (size_t)i))));
    for (int64_t i = 0; i < count; i++) {
        const double want = json_number_value(json_array_get(list, (size_t)i));
        const double got = lab_get(l, have, i);
        if (!(fabs(got - want) <= (l->f64 ? 1e-7 : 1e-5) * most))
            fail_msg("%s: %s[%lld] is %.9g, Keras has %.9g (float%d)", name, what, (long long)i,
                     got, want, l->f64 ? 64 : 32);
    }
}

static void one_case(const json_t *c, bool f64, const int64_t *pieces, int n_piece)
{
    char name[200];
    lab l;
    const keel_op *op = keel_op_find(golden_text(c, "op"));
    const keel_case shapes = { golden_text(c, "in"), golden_text(c, "weights"),
                               golden_text(c, "args") };
    case_name(c, name);
    if (!op) fail_msg("%s: no such op", name);
    if (lab_open(&l, op, &shapes, f64, json_is_true(json_object_get(c, "training")),
                 json_integer_value(json_object_get(c, "rows"))) < 0)
        fail_msg("%s: %s", name, keel_error());
    for (int i = 0; i < l.node.n_in; i++)
        load(&l, l.in[i], json_array_get(json_object_get(c, "x"), (size_t)i));
    for (int i = 0; i < l.node.n_weight; i++)
        load(&l, l.weight[i], json_array_get(json_object_get(c, "w"), (size_t)i));
    load(&l, l.out_grad, json_object_get(c, "r"));
    const json_t *more = json_object_get(c, "more"); /* of the op's other outputs */
    for (int i = 1; more && i < l.node.n_out; i++)
        load(&l, l.more_grad[i], json_object_get(json_array_get(more, (size_t)i - 1), "r"));
    lab_forward(&l, pieces, n_piece);
    same(&l, name, "y", l.out, json_object_get(c, "y"), lab_out_count(&l));
    for (int i = 1; more && i < l.node.n_out; i++)
        same(&l, name, "another y", l.more_out[i],
             json_object_get(json_array_get(more, (size_t)i - 1), "y"), lab_more_count(&l, i));
    if (op->backward[f64]) lab_backward(&l, pieces, n_piece);
    for (int i = 0; op->backward[f64] && i < l.node.n_in; i++)
        same(&l, name, "dx", l.in_grad[i], json_array_get(json_object_get(c, "dx"), (size_t)i),
             lab_in_count(&l, i));
    for (int i = 0; i < l.node.n_weight; i++)
        same(&l, name, "dw", l.weight_grad[i], json_array_get(json_object_get(c, "dw"), (size_t)i),
             keel_row_count(&l.node.weight[i]));
    if (op->commit) op->commit(&l.node, l.merged, l.weight);
    for (int i = 0; i < l.node.n_weight; i++)
        same(&l, name, "moved weight", l.weight[i],
             json_array_get(json_object_get(c, "moved"), (size_t)i),
             keel_row_count(&l.node.weight[i]));
    lab_close(&l);
}

static void every_op_computes_what_keras_computes(void **state)
{
    (void)state;
    json_t *all = golden_load("ops.json");
    for (size_t i = 0; i < json_array_size(all); i++)
        for (int f64 = 0; f64 < 2; f64++) {
            one_case(json_array_get(all, i), f64, (int64_t[]){ 3 }, 1);
            one_case(json_array_get(all, i), f64, (int64_t[]){ 2, 0, 1 }, 3);
        }
    print_message("%zu cases\n", json_array_size(all));
    json_decref(all);
}

static void every_op_has_numbers_of_keras(void **state)
{
    (void)state;
    json_t *all = golden_load("ops.json");
    for (int k = 0; keel_ops[k]; k++) {
        bool found = keel_ops[k]->loss || !keel_ops[k]->cases;
        for (size_t i = 0; !found && i < json_array_size(all); i++)
            found = strcmp(golden_text(json_array_get(all, i), "op"), keel_ops[k]->name) == 0;
        if (!found) fail_msg("%s: no case in tests/golden/ops.json", keel_ops[k]->name);
    }
    json_decref(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_op_computes_what_keras_computes),
        cmocka_unit_test(every_op_has_numbers_of_keras),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
