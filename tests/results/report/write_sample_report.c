/* Writes the sample database: write_sample_report FILE. */
#include <stdio.h>

#include "tests/results/report/sample_report.h"

int main(int argc, char **argv)
{
    struct store *store;
    struct error error;
    if (argc != 2) {
        fputs("usage: write_sample_report FILE\n", stderr);
        return 2;
    }
    status result = store_open(&store, argv[1], STORE_WRITE, &error);
    if (result == OK) {
        result = sample_report_write(store, &error);
        store_close(store);
    }
    if (result != OK)
        fprintf(stderr, "write_sample_report: %s\n", error.message);
    return result == OK ? 0 : 1;
}
