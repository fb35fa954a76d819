/* SPDX-License-Identifier: Apache-2.0 */
/* What every unit test program shares: run its suites, and find the golden files. */
#ifndef TESTS_UNIT_UNIT_H
#define TESTS_UNIT_UNIT_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

static inline int unit_run(Suite *suite) {
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* "SRCDIR/tests/golden/NAME" in a buffer of the caller's. */
static inline const char *unit_golden(char *out, size_t cap, const char *name) {
    const char *srcdir = getenv("srcdir");
    snprintf(out, cap, "%s/tests/golden/%s", srcdir ? srcdir : ".", name);
    return out;
}

#endif
