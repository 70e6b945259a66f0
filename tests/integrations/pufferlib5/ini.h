/* A dictionary of numbers by name: written for the tests. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Dict {
    const char *names[32];
    double values[32];
    int size;
} Dict;

static inline void dict_set(Dict *dict, const char *name, double value)
{
    dict->names[dict->size] = name;
    dict->values[dict->size++] = value;
}

static inline double dict_get(Dict *dict, const char *name)
{
    for (int i = 0; i < dict->size; i++)
        if (!strcmp(dict->names[i], name))
            return dict->values[i];
    fprintf(stderr, "no key %s\n", name);
    exit(1);
}
