/* Commands that write, tried again and again in a folder that can be set back; what an undisturbed one leaves is known.
 *
 *     struct trial trial;
 *     trial_open(&trial, &scenarios[0]);                 // runs it once, undisturbed
 *     trial_reset();
 *     … program_start(&process, &ground, &(struct launch){.arguments = trial.scenario->command}) …
 *     trial_finish(&trial, "killed after 0.1 s");        // runs it again; the folder is to be what it was at first
 *     trial_close(&trial);
 */
#pragma once

#include "tests/end_to_end/workshop.h"

/* Everything is written below work/. */
struct scenario {
    const char *name;
    const char *prepare; /* commands, an extra line each, whose results are there before; NULL: none */
    const char *command;
    size_t faults_most; /* that are tried; 0: all */
    bool slow;          /* is tried less often, unless the number is given */
};
extern const struct scenario scenarios[];
extern const size_t scenario_count;

extern struct workshop ground; /* of crash_main */

struct trial {
    const struct scenario *scenario;
    struct text before, expected, without_caches; /* what is in the folder */
    bool caches_may_lack; /* a cache that cannot be written is a warning, and a finished run needs none */
    double seconds;       /* that it takes undisturbed */
};
void trial_open(struct trial *trial, const struct scenario *scenario);
void trial_close(struct trial *trial);

void trial_reset(void);

/* The folder is what the undisturbed command left. */
void trial_expect_whole(const struct trial *trial, const char *after);
/* No file under a final name has other contents than it has in the end, or had in the beginning. */
void trial_expect_nothing_half(const struct trial *trial, const char *after);
/* The command is given again, ends well, and leaves a whole folder. */
void trial_finish(const struct trial *trial, const char *after);

/* A number from the environment, or the fallback. */
long crash_setting(const char *name, long fallback);
/* How often to try: the setting, or the fallback, of which a slow scenario gets half. */
long crash_tries(const struct scenario *scenario, const char *name, long fallback);

/* The main of a program that tries every scenario in one workshop, the ground. */
int crash_main(const char *group, CMUnitTestFunction survives);
