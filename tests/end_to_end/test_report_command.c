/* mtil report where it cannot write; what it writes of runs of the program is seen by page.sh. */
#include "tests/end_to_end/workshop.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define REPORT "report results.db --out page"

TEST(mistakes_are_told_and_nothing_is_written)
{
    static const struct {
        struct launch launch;
        const char *words[4];
    } mistakes[] = {
        {{.arguments = "report"}, {"--out"}},
        {{.arguments = "report results.db"}, {"--out"}},
        {{.arguments = "report nothing.db --out page"}, {"nothing.db", "no such file"}},
        {{.arguments = REPORT " --suite tny"}, {"tny", "did you mean", "tiny"}},
        {{.arguments = REPORT " --by polcy"}, {"polcy", "policy"}},
        {{.arguments = REPORT " --best 7"}, {"best", "1 to 6"}},
        {{.arguments = "report results.db --out data"}, {"data", "another folder"}},
        {{.arguments = "report results.db --out tiny.yaml"}, {"tiny.yaml", "found a file"}},
        {{.arguments = REPORT, .file_limit = 40000}, {"page"}},
    };
    struct workshop workshop;
    workshop_open(&workshop);
    program_succeeds(&workshop, "run tiny.yaml --quiet");
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
        program_fails(&workshop, &mistakes[i].launch, mistakes[i].words);
    assert_int_equal(chmod(workshop.scratch.path, 0555), 0);
    program_fails(&workshop, &(struct launch){.arguments = REPORT, .unprivileged = true},
                  (const char *const[]){"page", "Permission denied", NULL});
    char *page = workshop_path(&workshop, "page");
    assert_int_not_equal(access(page, F_OK), 0);
    free(page);
    workshop_close(&workshop);
}
