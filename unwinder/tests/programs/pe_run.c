/* Maps a PE image and calls its entry point, for a debugger to watch. */
#define _GNU_SOURCE
#include "pe_image.h"

int main(int count, char **arguments) {
    if (count != 2) return 1;
    long (*entry)(long) = load(arguments[1]);
    printf("%ld\n", entry(3));
    return image_start == image_end;
}
