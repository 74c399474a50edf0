#include "harness/scenario/order.h"

#include <stdbool.h>
#include <string.h>

static const struct order {
    const char *name, *tasks;
} orders[] = {{"I", ORDER_I}, {"II", ORDER_II}};

enum { ORDERS = sizeof orders / sizeof *orders };

const char *order_tasks(const char *name)
{
    for (size_t i = 0; i < ORDERS; i++)
        if (strcmp(orders[i].name, name) == 0)
            return orders[i].tasks;
    return NULL;
}

static bool is_order(const struct options *options, const char *key, const char *tasks)
{
    for (size_t i = 0; i < options_list_size(options, key); i++) {
        const char *name = options_list_item(options, key, i);
        size_t size = strcspn(tasks, " ");
        if (size == 0 || strlen(name) != size || memcmp(name, tasks, size) != 0)
            return false;
        tasks += size + (tasks[size] != 0);
    }
    return *tasks == 0;
}

const char *order_name(const struct options *options, const char *key)
{
    for (size_t i = 0; i < ORDERS; i++)
        if (is_order(options, key, orders[i].tasks))
            return orders[i].name;
    return options_as_text(options, key);
}
