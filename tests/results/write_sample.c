/* Writes a database for tests outside of C: two policies of one suite, three seeds each. With SQL, runs it on one that is
 * there, without its foreign keys.
 *
 *     write_sample results.db
 *     write_sample results.db "UPDATE runs SET seed = 7"
 */
#include <stdio.h>

#include "core/digest.h"
#include "tests/results/sample.h"

static status write_run(struct store *store, const char *policy, int64_t seed, struct error *error)
{
    char hash[DIGEST_SIZE], text[128];
    snprintf(text, sizeof text, "merge:\n  policy: %s\n  every: 10\ntraining:\n  iterations: 20\nnote: a | b\n",
             policy);
    digest_text(text, hash);
    struct run_description description = sample_description(seed);
    description.policy = policy;
    sample_tell(&description, text);
    description.suite_hash = hash;
    struct run_start start;
    TRY(store_run_start(store, &description, &start, error));
    TRY(sample_write_at_once(store, start.run, seed, -1, 0, -1, 0, error));
    return store_run_end(store, start.run, RUN_FINISHED, NULL, error);
}

static status write_runs(struct store *store, struct error *error)
{
    for (int64_t seed = 1; seed <= 3; seed++) {
        TRY(write_run(store, "none", seed, error));
        TRY(write_run(store, "most_used", seed, error));
    }
    return OK;
}

int main(int argc, char **argv)
{
    struct error error = {0};
    struct store *store;
    if (argc != 2 && argc != 3) {
        fprintf(stderr, "usage: write_sample DATABASE [SQL]\n");
        return 2;
    }
    status result =
        argc == 3 ? sample_execute(argv[1], argv[2], &error) : store_open(&store, argv[1], STORE_WRITE, &error);
    if (result == OK && argc == 2) {
        result = write_runs(store, &error);
        store_close(store);
    }
    if (result != OK)
        fprintf(stderr, "write_sample: %s\n", error.message);
    return result == OK ? 0 : 1;
}
