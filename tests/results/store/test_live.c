/* What is shown of runs that are going on: what they report beside the database, and the questions that read it. */
#include "tests/test.h"

#include <stdlib.h>
#include <unistd.h>

#include "core/file.h"
#include "results/query.h"
#include "results/store/live.h"
#include "tests/results/sample.h"

static const struct live training = {"train", "digits", 2, 4, 5, 20, 1.25, 310.4, 185, 0.314};

#define HEAD "run,suite,policy,seed,task,doing,step,done,left,loss,images/s,method\n"

/* One reads, and one, if any, writes a run: a store does not see its own locks. */
struct stores {
    char *path;
    struct store *writer, *reader;
    int64_t run;
};

static void expect(const struct stores *s, const char *question, const char *expected)
{
    struct table table = {0};
    struct text text = {0};
    struct query_filter running = {.status = "running"}, all = {0};
    assert_ok(query_named(s->reader, question, strcmp(question, "counts") ? &running : &all, &table, &error));
    table_render(&table, TABLE_CSV, false, &text);
    for (char *end; (end = strstr(text.data, "\r\n")) != NULL;)
        memmove(end, end + 1, strlen(end));
    assert_string_equal(text.data, expected);
    text_free(&text);
    table_free(&table);
}

static struct stores open_stores(void)
{
    struct run_description description = sample_description(1);
    struct run_start start;
    struct stores s = {.path = sample_path("results.sqlite")};
    assert_ok(store_open(&s.writer, s.path, STORE_WRITE, &error));
    assert_ok(store_open(&s.reader, s.path, STORE_READ, &error));
    expect(&s, "counts", "counts\nno runs\n");
    assert_ok(store_run_start(s.writer, &description, &start, &error));
    s.run = start.run;
    return s;
}

static void close_stores(struct stores *s)
{
    store_close(s->writer);
    store_close(s->reader);
    sample_remove(s->path);
}

TEST(a_report_is_read_until_the_run_ends)
{
    struct live live;
    struct stores s = open_stores();
    assert_true(live_has_process(s.reader, s.run) && !live_has_process(s.reader, s.run + 1));
    assert_false(live_read(s.reader, s.run, &live));
    live_write(s.writer, s.run, &training);
    assert_true(!live_read(s.reader, s.run + 1, &live) && live_read(s.reader, s.run, &live));
    assert_true(live.task == 2 && live.tasks == 4 && live.seconds_left == 185 && live.done == 0.314);
    expect(&s, "progress",
           HEAD "1,sample,most_used,1,2/4,train digits,5/20,███░░░░░░░ 31%,3 min 05 s,1.25,310.4,adapters\n");
    char *lock = path_format("%s-lock", s.path);
    assert_int_equal(truncate(lock, s.run * LIVE_SIZE + 50), 0); /* half a report is none */
    free(lock);
    expect(&s, "progress", HEAD "1,sample,most_used,1,,,,,,,,adapters\n");
    live_write(s.writer, s.run, &training);
    assert_ok(store_run_end(s.writer, s.run, RUN_FINISHED, NULL, &error));
    assert_false(live_read(s.reader, s.run, &live) || live_has_process(s.reader, s.run));
    close_stores(&s);
}

/* As far as it is committed: here 13 steps of task 2. Tasks of all runs are columns. */
TEST(without_a_report_the_database_answers)
{
    struct run_description description = sample_description(2);
    struct run_start start;
    struct sample_task cars = {.name = "cars", .classes = 2, .training_images = 8, .test_images = 8};
    struct stores s = open_stores();
    assert_ok(sample_write(s.writer, s.run, 1, -1, 0, 2, 14, &error));
    expect(&s, "progress", HEAD "1,sample,most_used,1,3/4,train textures_&_more,13,,,0.548865497112274,,adapters\n");
    assert_ok(store_run_start(s.writer, &description, &start, &error));
    assert_ok(sample_add_task(s.writer, start.run, &cars, &error));
    assert_ok(store_add_evaluation(s.writer, start.run,
                                   &(struct evaluation_row){.after_task = -1, .correct = 2, .images = 8}, &error));
    expect(&s, "reached",
           "run,after,aircraft,digits,textures_&_more,flowers,cars,mean\n1,digits,26,52.5,73.5,48,,50\n"
           "2,zero-shot,,,,,25,\n");
    close_stores(&s);
}
