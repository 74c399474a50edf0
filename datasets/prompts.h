/* Built-in prompts: templates of every dataset, and class names of the datasets whose files have none.
 *
 *     const struct prompts *prompts = prompts_find("eurosat");
 *     for (size_t i = 0; prompts->templates[i] != NULL; i++)
 *         … prompts->templates[i] …                              // "a centered satellite photo of {}."
 *     if (prompts->classes != NULL) … prompts->classes[0] …      // "annual crop land"
 */
#ifndef MTIL_DATASETS_PROMPTS_H
#define MTIL_DATASETS_PROMPTS_H

struct prompts {
    const char *dataset;
    const char *const *templates; /* end with NULL */
    const char *const *classes;   /* by label, end with NULL; NULL: the dataset's files name them */
};

/* An unknown dataset has one template, "a photo of a {}.", and no names. */
const struct prompts *prompts_find(const char *dataset);

#endif
