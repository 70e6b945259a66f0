/* Of PufferLib 5's contract, what an env for the GPU uses: written for the tests, in our words. */
#pragma once

#include "ini.h"

#define PUF_CPU 0
#define PUF_GPU 1

typedef struct Env Env;
typedef struct Log Log;
typedef struct Agent {
    obs_t *observations;
    float *actions, *rewards, *terminals;
    unsigned char *action_mask;
    int policy;
} Agent;
