/* Suites that are refused, and what is said: refusals.txt. */
#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "tests/harness/suites.h"

struct refusal {
    struct text yaml;
    char override[256]; /* "": none */
};

/* The message has to be the line's. */
static void check(struct refusal *refusal, const char *message)
{
    struct suite *suite;
    const char *override = refusal->override;
    status result =
        suites_try(&suite, refusal->yaml.data, (const char *const[]){*override != 0 ? override : NULL, NULL});
    if (result == OK)
        fail_msg("accepted: %s+ %s", refusal->yaml.data, override);
    if (strcmp(error.message, message) != 0)
        fail_msg("%s+ %s\nexpected: %s\nfound:    %s", refusal->yaml.data, override, message, error.message);
    suite_destroy(suite);
    text_free(&refusal->yaml);
    *refusal = (struct refusal){0};
}

TEST(every_case_of_the_file_holds)
{
    char line[1024];
    size_t count = 0;
    struct refusal refusal = {0};
    FILE *file = fopen(REFUSALS, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        size_t length = strcspn(line, "\n");
        assert_int_equal(line[length], '\n');
        line[length] = 0;
        if (strncmp(line, "+ ", 2) == 0)
            snprintf(refusal.override, sizeof refusal.override, "%s", line + 2);
        else if (strncmp(line, "> ", 2) == 0)
            check(&refusal, (count++, line + 2));
        else if (*line && *line != '#')
            text_add(&refusal.yaml, "%s\n", line);
    }
    fclose(file);
    assert_true(count >= 200);
}
