/* Writes a database for tests outside of C: two policies of one suite, three seeds each. With SQL, runs it on one that is
 * there, without its foreign keys. With a policy and seeds, adds runs to be compared (compare.txt has the keys).
 *
 *     write_sample results.db
 *     write_sample results.db "UPDATE runs SET seed = 7"
 *     write_sample results.db most_used 1 8 lift=4
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/digest.h"
#include "tests/results/compare_sample.h"
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

/* The value behind "key="; NULL: there is none. */
static const char *find(char **words, const char *key)
{
    for (; *words != NULL; words++)
        if (strncmp(*words, key, strlen(key)) == 0 && (*words)[strlen(key)] == '=')
            return *words + strlen(key) + 1;
    return NULL;
}

static int64_t integer(char **words, const char *key)
{
    const char *value = find(words, key);
    return value != NULL ? atoll(value) : 0;
}

/* "merge.decay:0.5" as lines of a suite; merge is the section that the sample ends with. */
static void make_own(const char *own, char text[static 100])
{
    const char *key = strchr(own, '.') + 1, *value = strchr(key, ':') + 1;
    int section = (int)(key - own) - 1, size = (int)(value - key);
    if (strncmp(own, "merge.", 6) == 0)
        snprintf(text, 100, "  %.*s %s\n", size, key, value);
    else
        snprintf(text, 100, "%.*s:\n  %.*s %s\n", section, own, size, key, value);
}

/* POLICY FIRST LAST key=value…: finished runs of these seeds. */
static void add_compared(struct store *store, char **words)
{
    const char *kept = find(words, "kept"), *own = find(words, "own"), *every = find(words, "every"),
               *last = every != NULL ? strstr(every, "..") : NULL;
    char text[100] = "";
    struct compare_sample sample = {.policy = words[0],
                                    .lift = integer(words, "lift"),
                                    .noise = integer(words, "noise"),
                                    .threads = integer(words, "threads"),
                                    .more_images = integer(words, "more"),
                                    .stopped = integer(words, "stopped"),
                                    .holes = integer(words, "holes"),
                                    .untrained = integer(words, "untrained"),
                                    .version = find(words, "version"),
                                    .weights = find(words, "weights"),
                                    .training = find(words, "training"),
                                    .tests = find(words, "tests"),
                                    .path = find(words, "path"),
                                    .own = text};
    if (own != NULL)
        make_own(own, text);
    sample.kept = kept == NULL ? PER_IMAGE_NONE : *kept == 'b' ? PER_IMAGE_BITS : PER_IMAGE_PREDICTIONS;
    sample.every = every != NULL ? atoll(every) : 50;
    do
        for (sample.seed = atoll(words[1]); sample.seed <= atoll(words[2]); sample.seed++)
            compare_sample_add(store, &sample);
    while (last != NULL && ++sample.every <= atoll(last + 2));
}

static status write(int count, char **words, struct error *error)
{
    struct store *store;
    if (count == 3)
        return sample_execute(words[1], words[2], error);
    TRY(store_open(&store, words[1], STORE_WRITE, error));
    status result = OK;
    if (count == 2)
        result = write_runs(store, error);
    else
        add_compared(store, words + 2);
    store_close(store);
    return result;
}

int main(int argc, char **argv)
{
    struct error error = {0};
    if (argc < 2 || argc == 4) {
        fprintf(stderr, "usage: write_sample DATABASE [SQL|POLICY FIRST LAST [KEY=VALUE...]]\n");
        return 2;
    }
    status result = write(argc, argv, &error);
    if (result != OK)
        fprintf(stderr, "write_sample: %s\n", error.message);
    return result == OK ? 0 : 1;
}
