/* One dataset as tasks: the classes that each gets, what is said and stored of it, and a run on it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/scenario/label_split.h"
#include "tests/harness/whole_run.h"

enum { COLORS = 6 };

#define CUT "data.order=third", "tasks.third.classes=6", "data.split_by=labels"

static double within(struct small_run *run, uint64_t seed, const char *similarity, uint32_t task_of[COLORS])
{
    small_run_reopen(run, seed, WORDS(CUT, "data.parts=3", similarity));
    const struct label_split *cut = run->experiment->data.cut;
    double sum = 0;
    memcpy(task_of, cut->task_of, COLORS * sizeof *task_of);
    for (size_t k = 0; k < 3; k++)
        sum += cut->cosines[k * 3 + k] / 3;
    assert_true(fabs(sum - cut->within) < 1e-12); /* all tasks have one pair */
    assert_true(cut->within > -1 && cut->within < 1);
    return cut->within;
}

RUN_TEST(similarity_is_what_was_asked_for, NULL)
{
    uint32_t first[COLORS], again[COLORS], other[COLORS];
    double together = within(run, 1, "data.similarity=together", first),
           by_chance = within(run, 1, "data.similarity=random", other),
           apart = within(run, 1, "data.similarity=apart", other);
    assert_true(together >= by_chance && by_chance >= apart && together > apart);
    /* a run's seed does not change the data */
    assert_true(within(run, 2, "data.similarity=together", again) == together);
    assert_memory_equal(first, again, sizeof first);
}

RUN_TEST(what_is_printed, CUT, "data.parts=6", "data.similarity=apart", NULL)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    label_split_print(run->experiment->data.cut, run->experiment->data.whole.dataset, out);
    fclose(out);
    assert_non_null(strstr(text, "# task 1 of 6: red\n"));
    assert_non_null(strstr(text, "# task 6 of 6: white\n"));
    assert_non_null(strstr(text, "names: 0."));
    assert_true(isnan(run->experiment->data.cut->within)); /* no pair */
    free(text);
}

static status add_class(struct store *store, const char *name)
{
    return store_add(store, 1, "task_classes",
                     NAMED({"task", value_integer(0)}, {"class", value_integer(0)}, {"name", value_text(name)}),
                     &error);
}

/* Every class is in one task, under its name and with its images. */
RUN_TEST(a_run_over_the_parts, CUT, "data.parts=4", "data.similarity=together", NULL)
{
    struct store *store;
    assert_int_equal(run->experiment->model.settings.adapter.tasks, 4);
    must(whole_run(run, "a.db", NULL));
    expect_text(run, "a.db", "SELECT group_concat(name, ' ') FROM tasks", "third-1 third-2 third-3 third-4");
    expect_text(run, "a.db", "SELECT group_concat(name, ' ') FROM (SELECT name FROM task_classes ORDER BY name)",
                "black blue green red white yellow");
    expect_text(
        run, "a.db",
        "SELECT group_concat(line, ' ') FROM (SELECT count(*) || '/' || training_images AS line FROM task_classes "
        "JOIN tasks USING (task) GROUP BY task ORDER BY line)",
        "1/6 1/6 2/12 2/12");
    expect_text(run, "a.db", "SELECT count(*) || ' ' || count(cosine) FROM task_similarities", "10 8");
    expect_number(run, "a.db", "SELECT count(*) FROM evaluations", 20);
    must(store_open(&store, small_run_file(run, "a.db"), STORE_WRITE, &error));
    must(add_class(store, dataset_class_name(run->experiment->data.tasks[0].dataset, 0)));
    must_refuse(add_class(store, "purple"), ERROR_ARGUMENT, "task 0", "\"purple\"", "cut in another way");
    store_close(store);
}
