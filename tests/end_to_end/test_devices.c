/* The program on a machine with two devices: the one that auto finds, what results say of it, and sweeps over both. */
#include "tests/end_to_end/rows.h"

#include <stdlib.h>
#include <string.h>

#define SHORT "data.order=mnist training.iterations=2 training.batch=2 selector.iterations=2 merge.every=1 "

TEST(a_device_is_found_and_shown)
{
    struct workshop workshop;
    workshop_open(&workshop);
    struct outcome outcome = program_run(&workshop, &(struct launch){.arguments = "doctor"});
    assert_int_equal(outcome.exit_status, 0);
    assert_non_null(strstr(outcome.out.data, "GPU 0"));
    assert_non_null(strstr(outcome.out.data, "GPU 1"));
    outcome_free(&outcome);
    program_fails(&workshop, &(struct launch){.arguments = "run tiny.yaml --quiet --backend cuda --device 7"},
                  (const char *const[]){"device 7", "2", NULL});
    workshop_close(&workshop);
}

/* A run on the device, and its adapters evaluated on both backends. */
TEST(runs_say_where_they_were_computed)
{
    struct workshop workshop;
    workshop_open(&workshop);
    program_succeeds(&workshop, "run tiny.yaml --quiet " SHORT);
    rows_expect(&workshop, "results.db", "SELECT backend, precision, status FROM runs", "cuda,f32,finished\n");
    char *adapters = workshop_find(&workshop, "runs/*/seed1/adapters.safetensors");
    assert_non_null(adapters);
    struct text words = {0}, answers[2] = {{0}, {0}};
    for (int i = 0; i < 2; i++) {
        text_clear(&words);
        text_add(&words, "eval tiny.yaml --quiet --format csv --router own --backend %s --adapters %s " SHORT,
                 i == 0 ? "cpu" : "cuda", adapters);
        struct outcome outcome = program_run(&workshop, &(struct launch){.arguments = words.data});
        assert_int_equal(outcome.exit_status, 0);
        text_add(&answers[i], "%s", outcome.out.data);
        outcome_free(&outcome);
    }
    assert_string_equal(answers[0].data, answers[1].data);
    text_free(&answers[0]);
    text_free(&answers[1]);
    text_free(&words);
    free(adapters);
    workshop_close(&workshop);
}

/* One run on each device at a time, so each gets one of two. */
TEST(a_sweep_takes_both_devices)
{
    struct workshop workshop;
    workshop_open(&workshop);
    program_succeeds(&workshop, "sweep tiny.yaml --quiet --backend cuda " SHORT "seed=1,2");
    rows_expect(&workshop, "results.db",
                "SELECT suite_text LIKE '%device: 0%', suite_text LIKE '%device: 1%', backend FROM runs ORDER BY seed",
                "1,0,cuda\n0,1,cuda\n");
    rows_expect(&workshop, "results.db", "SELECT count(DISTINCT suite_hash) FROM runs", "1\n");
    workshop_close(&workshop);
}
