/* mtil report on runs that the program made, and where it cannot write. */
#include "tests/end_to_end/workshop.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file.h"

#define REPORT "report results.db --out page"

static void expect_file(const struct workshop *workshop, const char *name, const char *const *parts)
{
    struct error error;
    struct bytes page;
    char *path = workshop_path(workshop, name);
    if (file_read(path, FILE_LIMIT, &page, &error) != OK)
        fail_msg("%s", error.message);
    for (; *parts != NULL; parts++)
        if (strstr((const char *)page.data, *parts) == NULL)
            fail_msg("%s does not say: %s", name, *parts);
    bytes_free(&page);
    free(path);
}

static bool is_there(const struct workshop *workshop, const char *name)
{
    char *path = workshop_path(workshop, name);
    bool there = access(path, F_OK) == 0;
    free(path);
    return there;
}

static void runs_of_the_program(void **state)
{
    (void)state;
    struct workshop workshop;
    workshop_open(&workshop);
    program_succeeds(&workshop, "run tiny.yaml --quiet run.seeds=1,2 merge.policy=none");
    program_succeeds(&workshop, REPORT);
    expect_file(&workshop, "page/index.html",
                (const char *const[]){"1 configuration.", "id=\"section-matrix\"", "id=\"section-loss\"", NULL});
    expect_file(&workshop, "page/figures/forgetting.svg",
                (const char *const[]){"<style>", ">tasks trained</text>", NULL});
    program_succeeds(&workshop, "run tiny.yaml --quiet run.seeds=1,2 merge.policy=most_used");
    program_succeeds(&workshop, REPORT " --figures=false"); /* takes the place of the first one */
    expect_file(&workshop, "page/index.html",
                (const char *const[]){"4 runs, 4 finished; 2 configurations.", "Differences by policy",
                                      "over 2 common seeds", "id=\"section-frozen\"", NULL});
    assert_false(is_there(&workshop, "page/figures"));
    assert_int_equal(workshop_leftovers(&workshop), 0);
    workshop_close(&workshop);
}

static void read_only(const struct workshop *workshop)
{
    assert_int_equal(chmod(workshop->scratch.path, 0555), 0);
}

static void mistakes_are_told_and_nothing_is_written(void **state)
{
    (void)state;
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
    read_only(&workshop);
    program_fails(&workshop, &(struct launch){.arguments = REPORT, .unprivileged = true},
                  (const char *const[]){"page", "Permission denied", NULL});
    assert_false(is_there(&workshop, "page"));
    workshop_close(&workshop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_of_the_program),
        cmocka_unit_test(mistakes_are_told_and_nothing_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
