/* Accuracies of classes and confusions, of two tasks whose few answers are written down here. */
#include "tests/test.h"

#include "results/query.h"
#include "results/store/store_internal.h"
#include "results/verify.h"
#include "tests/results/sample.h"

enum { IMAGES = 6 };

struct fixture {
    char *path;
    struct store *store;
    int64_t joint, apart, old; /* runs: classes of both tasks compete; those of the task alone; without classes */
};

static const char *const names[2][3] = {{"cat", "dog"}, {"bus", "car", "van"}};
static const uint16_t labels[2][IMAGES] = {{0, 0, 0, 0, 1, 1}, {0, 1, 1, 2, 2, 2}};

/* predicted: classes of both tasks, the second's from 2 on. */
static void write_cell(struct store *store, int64_t run, int64_t after_task, int64_t task, bool joint, bool bits,
                       const uint16_t predicted[IMAGES])
{
    uint16_t stored[IMAGES], offset = task == 0 ? 0 : 2;
    uint8_t right[IMAGES];
    int16_t router[IMAGES] = {0};
    int64_t correct = 0;
    for (size_t i = 0; i < IMAGES; i++) {
        right[i] = predicted[i] == labels[task][i] + offset;
        correct += right[i];
        stored[i] = joint ? predicted[i] : (uint16_t)(predicted[i] - offset);
    }
    struct per_image kept = {.kind = bits ? PER_IMAGE_BITS : PER_IMAGE_PREDICTIONS,
                             .images = IMAGES,
                             .right = right,
                             .predicted = stored,
                             .router = router};
    assert_ok(store_add_evaluation(
        store, run,
        &(struct evaluation_row){
            .after_task = after_task, .task = task, .correct = correct, .images = IMAGES, .per_image = &kept},
        &error));
}

static int64_t begin(struct store *store, const char *setting, const char *hash, bool classes)
{
    struct run_start start;
    struct run_description description = sample_description(1);
    description.setting = setting;
    description.suite_hash = hash;
    description.tasks = 2;
    assert_ok(store_run_start(store, &description, &start, &error));
    for (int64_t k = 0; k < 2; k++) {
        assert_ok(sample_add_task(store, start.run,
                                  &(struct sample_task){.task = k,
                                                        .name = k == 0 ? "pets" : "cars",
                                                        .classes = 2 + k,
                                                        .training_images = 9,
                                                        .test_images = IMAGES,
                                                        .test_digest = "00"},
                                  &error));
        if (!classes)
            continue;
        assert_ok(sample_add_classes(store, start.run, k, names[k], (size_t)(2 + k), &error));
        assert_ok(store_add(store, start.run, "test_labels",
                            NAMED({"task", value_integer(k)}, {"labels", value_blob(labels[k], 2 * (IMAGES))}),
                            &error));
        assert_ok(store_add(store, start.run, "test_labels",
                            NAMED({"task", value_integer(k)}, {"labels", value_blob(labels[k], 2 * (IMAGES))}),
                            &error)); /* again: a resumed run */
    }
    return start.run;
}

static int create(void **state)
{
    static struct fixture f;
    f.path = sample_path("results.sqlite");
    assert_ok(store_open(&f.store, f.path, STORE_WRITE, &error));
    f.joint = begin(f.store, "class_incremental", "aa", true);
    write_cell(f.store, f.joint, -1, 0, true, false, (const uint16_t[]){4, 4, 4, 4, 1, 4});
    write_cell(f.store, f.joint, -1, 1, true, false, (const uint16_t[]){0, 0, 0, 0, 0, 0});
    write_cell(f.store, f.joint, 0, 0, true, false, (const uint16_t[]){0, 0, 0, 1, 1, 1});
    write_cell(f.store, f.joint, 1, 0, true, false, (const uint16_t[]){0, 1, 2, 2, 4, 1});
    write_cell(f.store, f.joint, 1, 1, true, false, (const uint16_t[]){2, 3, 4, 4, 4, 0});
    assert_ok(store_run_end(f.store, f.joint, RUN_FINISHED, NULL, &error));
    f.apart = begin(f.store, "full_shot", "bb", true);
    write_cell(f.store, f.apart, 1, 0, false, true, (const uint16_t[]){0, 0, 0, 1, 1, 0});
    write_cell(f.store, f.apart, 1, 1, false, false, (const uint16_t[]){2, 2, 3, 3, 4, 4});
    assert_ok(store_run_end(f.store, f.apart, RUN_STOPPED, NULL, &error));
    f.old = begin(f.store, "x_tail", "cc", false);
    write_cell(f.store, f.old, 1, 0, true, false, (const uint16_t[]){0, 0, 0, 1, 1, 0});
    assert_ok(store_run_end(f.store, f.old, RUN_STOPPED, NULL, &error));
    *state = &f;
    return 0;
}

static int destroy(void **state)
{
    struct fixture *f = *state;
    store_close(f->store);
    sample_remove(f->path);
    return 0;
}

static void expect(const struct fixture *f, const char *query, struct query_filter filter, const char *expected)
{
    struct table table = {0};
    struct text text = {0};
    assert_ok(query_named(f->store, query, &filter, &table, &error));
    for (size_t i = 0; i < table.count; i++) {
        const struct table_cell *cell = &table.cell[i];
        if (cell->kind == CELL_TEXT)
            text_add(&text, "%s", cell->text);
        else if (cell->kind == CELL_INTEGER)
            text_add(&text, "%d", (int)cell->integer);
        else if (cell->kind == CELL_REAL)
            text_add(&text, "%.1f", cell->real);
        else
            text_add(&text, "-");
        text_add(&text, (i + 1) % table.columns == 0 ? "\n" : " ");
    }
    assert_string_equal(text.data != NULL ? text.data : "", expected);
    text_free(&text);
    table_free(&table);
}

TEST_WITH(accuracies_of_classes, create, destroy)
{
    const struct fixture *f = *state;
    /* zero-shot, after the own task, after the last */
    expect(f, "classes", (struct query_filter){.run = f->joint},
           "1 0 pets 0 cat 4 0.0 75.0 25.0\n"
           "1 0 pets 1 dog 2 50.0 100.0 50.0\n"
           "1 1 cars 0 bus 1 0.0 100.0 100.0\n"
           "1 1 cars 1 car 2 0.0 50.0 50.0\n"
           "1 1 cars 2 van 3 0.0 66.7 66.7\n");
    /* from bits; without a zero-shot row */
    expect(f, "classes", (struct query_filter){.run = f->apart, .dataset = "pets"},
           "2 0 pets 0 cat 4 - - 75.0\n"
           "2 0 pets 1 dog 2 - - 50.0\n");
    expect(f, "classes", (struct query_filter){.run = f->old}, "");
}

TEST_WITH(confusion_of_tasks, create, destroy)
{
    const struct fixture *f = *state;
    expect(f, "confusion", (struct query_filter){.run = f->joint},
           "1 pets 6 50.0 50.0\n"
           "1 cars 6 16.7 83.3\n");
    expect(f, "confusion", (struct query_filter){.run = f->apart}, ""); /* an image is never taken for another task's */
}

TEST_WITH(confusion_of_classes, create, destroy)
{
    const struct fixture *f = *state;
    expect(f, "confusion", (struct query_filter){.run = f->joint, .dataset = "pets"},
           "1 pets 0 cat pets 0 cat 1 25.0\n"
           "1 pets 0 cat pets 1 dog 1 25.0\n"
           "1 pets 0 cat cars 0 bus 2 50.0\n"
           "1 pets 1 dog pets 1 dog 1 50.0\n"
           "1 pets 1 dog cars 2 van 1 50.0\n");
    expect(f, "confusion", (struct query_filter){.run = f->apart, .dataset = "cars"},
           "2 cars 0 bus cars 0 bus 1 100.0\n"
           "2 cars 1 car cars 0 bus 1 50.0\n"
           "2 cars 1 car cars 1 car 1 50.0\n"
           "2 cars 2 van cars 1 car 1 33.3\n"
           "2 cars 2 van cars 2 van 2 66.7\n");
    expect(f, "confusion", (struct query_filter){.run = f->apart, .dataset = "pets"}, ""); /* bits alone */
}

/* Avg and Last. */
TEST_WITH(means_of_classes_seen, create, destroy)
{
    const struct fixture *f = *state;
    struct table table = {0};
    assert_ok(query_sql(f->store,
                        "SELECT printf('%.2f %.2f %.2f', average, last, zero_shot) FROM metrics WHERE run = 1", &table,
                        &error));
    assert_string_equal(table.cell[0].text, "66.67 50.00 8.33"); /* (5/6 + 6/12) / 2; 6/12; 1/12 */
    table_free(&table);
}

/* How many faults verify finds in what it calls what, in the runs of the joint and the apart setting. */
static size_t faults(const struct fixture *f, const char *what)
{
    size_t found = 0;
    struct verification verification = {.runs = (const int64_t[]){f->joint, f->apart}, .count = 2};
    assert_ok(verify_database(f->store, &verification, &error));
    for (size_t i = 0; i < table_rows(&verification.faults); i++)
        found += strstr(table_cell_at(&verification.faults, i, 1)->text, what) != NULL;
    verification_free(&verification);
    return found;
}

TEST_WITH(other_labels_are_noticed, create, destroy)
{
    const struct fixture *f = *state;
    static const uint16_t others[IMAGES] = {1, 0, 0, 0, 1, 1}, none[IMAGES] = {0, 0, 0, 0, 1, 2};
    assert_int_equal(faults(f, "labels"), 0);
    assert_fails(store_add(f->store, f->joint, "test_labels",
                           NAMED({"task", value_integer(0)}, {"labels", value_blob(others, 2 * (IMAGES))}), &error),
                 ERROR_ARGUMENT, "with other data");
    assert_ok(database_execute(f->store->database, "DELETE FROM test_labels WHERE run = 1 AND task = 0", &error));
    assert_ok(store_add(f->store, f->joint, "test_labels",
                        NAMED({"task", value_integer(0)}, {"labels", value_blob(others, 2 * (IMAGES))}), &error));
    assert_int_equal(faults(f, "labels"), 2); /* where the image was right, or is now */
    assert_ok(database_execute(f->store->database, "DELETE FROM test_labels WHERE run = 1 AND task = 0", &error));
    assert_ok(store_add(f->store, f->joint, "test_labels",
                        NAMED({"task", value_integer(0)}, {"labels", value_blob(none, 2 * (IMAGES))}), &error));
    assert_int_equal(faults(f, "labels"), 3); /* a class that the task does not have: in each cell */
    assert_ok(database_execute(f->store->database, "DELETE FROM test_labels WHERE run = 1 AND task = 0", &error));
    assert_ok(store_add(f->store, f->joint, "test_labels",
                        NAMED({"task", value_integer(0)}, {"labels", value_blob(labels[0], 2 * (IMAGES - 1))}),
                        &error));
    assert_int_equal(faults(f, "labels"), 3); /* one per cell */
    struct table table = {0};
    assert_fails(query_named(f->store, "classes", &(struct query_filter){.run = f->joint}, &table, &error),
                 ERROR_FORMAT, "do not fit");
    table_free(&table);
}
