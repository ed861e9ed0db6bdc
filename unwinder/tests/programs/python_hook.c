/* A shared object that a Python program loads and calls from deep inside of the interpreter. */
#include "capture.h"

int hook(const char *name) {
    capture(name);
    return 0;
}

void finish(void) { put_maps(); }
