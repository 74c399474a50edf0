/* Descriptions of classes that a language model wrote, in the form of ENGINE's public code (LAMDA-CL/ICCV25-ENGINE, chat): in
 * {"cat": {"dog": ["Slit pupils.", …], …}, …} stands what tells a cat from a dog.
 *
 *     TRY(descriptions_read(&file, "cifar100.json", error));
 *     TRY(descriptions_encode(file, model, "cat", names, count, pairs, error));
 *     descriptions_close(file);
 */
#pragma once

#include "harness/model/model.h"

struct json_t;

status descriptions_read(struct json_t **file, const char *path, struct error *error);
void descriptions_close(struct json_t *file); /* NULL is allowed */

/* pairs [count, embed]: for each of the names the mean feature, not normalised, of the texts "CLASS with DESCRIPTION" that tell the
 * class from it; zeros where the file has none. ERROR_FORMAT where it has none of the class. */
status descriptions_encode(const struct json_t *file, struct model *model, const char *class, const char *const *names,
                           size_t count, float *pairs, struct error *error);
