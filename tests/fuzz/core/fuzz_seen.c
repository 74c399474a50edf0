/* Files of what was seen. Whatever one holds, a record that was written is found, and another file's is not. */
#include "tests/fuzz/target.h"

#include <stdlib.h>
#include <string.h>

#include "core/seen.h"
#include "tests/fuzz/input.h"

int fuzz_target(const uint8_t *data, size_t size)
{
    static const struct seen_place place = {.kind = "dtd", .root = "/data", .version = "1"};
    const struct file_stamp stamp = {.size = 3, .inode = 4, .modified = 5, .changed = 6};
    const uint64_t written = 7;
    const struct seen_record record = {"new.jpg", stamp, &written, sizeof written};
    struct seen_listing listing;
    struct seen *seen;
    uint64_t found = 0;
    input_folder_write(SEEN_FILE, data, size);
    (void)seen_open(&seen, input_folder(), &place, NULL);
    if (seen_find(seen, "new.jpg", &stamp, &found, sizeof found) && found != written)
        abort();
    (void)seen_write(seen, &record, 1, NULL);
    seen_close(seen);
    if (seen_list(&listing, input_folder(), NULL) == OK)
        for (size_t i = 0; i < listing.count; i++)
            fuzz_touch(listing.places[i].root, strlen(listing.places[i].root));
    seen_listing_free(&listing);
    (void)seen_forget(input_folder(), "/data", NULL);
    return 0;
}
