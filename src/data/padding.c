/* See padding.h. */
#include "data/padding.h"

keel_status keel_padding_read(keel_padding *out, const json_t *value, const keel_data_field *field)
{
    *out = (keel_padding){ 0 };
    if (!value || json_is_null(value)) return KEEL_OK;
    if (field->dtype == KEEL_STRING) {
        if (!json_is_string(value))
            return keel_fail(KEEL_EARG, "'%s' has texts, and is padded with a text", field->path);
        out->text = (keel_string){ json_string_value(value), (int64_t)json_string_length(value) };
        return KEEL_OK;
    }
    const int64_t whole = json_is_boolean(value) ? json_is_true(value) : json_integer_value(value);
    const double real = json_real_value(value);
    if (!json_is_number(value) && !json_is_boolean(value))
        return keel_fail(KEEL_EARG, "'%s' has numbers, and is padded with a number", field->path);
    if (json_is_real(value) ? keel_convert(out->number, field->dtype, &real, KEEL_FLOAT64, 1) == 1
                            : keel_convert(out->number, field->dtype, &whole, KEEL_INT64, 1) == 1)
        return KEEL_OK;
    return keel_fail(KEEL_EARG, "'%s' cannot be padded with %g: its type does not have it",
                     field->path, json_number_value(value));
}
