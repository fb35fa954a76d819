/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <string.h>

#define PYTHON_DIGITS_MAX 4300 /* of an integer: sys.int_info.default_max_str_digits */

bool json_valid(const char *text, size_t len) {
    struct json json;
    json_start(&json, text, len);
    json.undecoded = true;
    enum json_event event;
    do
        event = json_next(&json);
    while (event != JSON_END && event != JSON_ERROR);
    json_stop(&json);
    return event == JSON_END;
}

/* The last NUMBER has no fraction or exponent and more digits than Python converts. */
static bool too_long(const struct json *json) {
    size_t sign = json->value[0] == '-';
    if (json->value_len - sign <= PYTHON_DIGITS_MAX)
        return false;
    for (size_t i = 0; i < json->value_len; i++)
        if (strchr(".eE", json->value[i]))
            return false;
    return true;
}

bool json_python(const char *text, size_t len) {
    struct json json;
    json_start(&json, text, len);
    json.lone_surrogates = json.undecoded = true;
    enum json_event event;
    do
        event = json_next(&json);
    while (event != JSON_END && event != JSON_ERROR && !(event == JSON_NUMBER && too_long(&json)));
    json_stop(&json);
    return event == JSON_END;
}
