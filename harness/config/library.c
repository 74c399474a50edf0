#include "harness/config/library.h"

#include <stdio.h>
#include <string.h>

#include "core/embedded.h"

EMBEDDED_FILES(embedded_suites);

size_t suite_library_size(void)
{
    size_t count = 0;
    while (embedded_suites[count].name != NULL)
        count++;
    return count;
}

struct shipped_suite suite_library_get(size_t index)
{
    const struct embedded_file *file = &embedded_suites[index];
    struct shipped_suite suite = {.text = (const char *)file->data, .size = file->size};
    snprintf(suite.name, sizeof suite.name, "%.*s", (int)strcspn(file->name, "."), file->name);
    if (*suite.text == '#') {
        const char *summary = suite.text + strspn(suite.text, "# ");
        snprintf(suite.summary, sizeof suite.summary, "%.*s", (int)strcspn(summary, "\n"), summary);
    }
    static const char heading[] = "# Table: ";
    const char *second = suite.text + strcspn(suite.text, "\n");
    if (strncmp(second + (*second != 0), heading, strlen(heading)) == 0) {
        const char *table = second + 1 + strlen(heading);
        snprintf(suite.table, sizeof suite.table, "%.*s", (int)strcspn(table, "\n"), table);
    }
    return suite;
}
