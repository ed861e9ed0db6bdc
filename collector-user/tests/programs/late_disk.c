// A file whose reads take a known time, for a loop device to be made of; and who reads from that.
//
// "serve" FOLDER KIB US: mounts a file system with one file `disk` at the folder, so large and of zeros, and keeps each read of it
// waiting. Says "ready"; then, for each line that it is told, how many reads it has answered and for how many nanoseconds it has kept them
// waiting in all: from when the kernel had asked until it was answered. It takes the file system away when its standard input ends.
//
// "read" DEVICE COUNT KIB TOLD: reads so many pieces of that size, past the page cache, and writes to the last file for how many
// nanoseconds it saw them take in all.
//
// The file system is a process of its own by the protocol of include/uapi/linux/fuse.h.
#define _GNU_SOURCE
#include "asleep.h"
#include "burn.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { DISK = 2, LARGEST = 1 << 20 };

static int device;
static long size, late_us, reads, waited;
static char zeros[LARGEST];
static union {
    struct fuse_in_header header;
    char bytes[LARGEST];
} request;

static int fail(const char *what) {
    perror(what);
    return 3;
}

static void answer(int error, const void *data, size_t len) {
    struct fuse_out_header header = {sizeof header + len, -error, request.header.unique};
    struct iovec parts[] = {{&header, sizeof header}, {(void *)data, len}};
    // Who asked may have been killed meanwhile.
    if (writev(device, parts, 2) < 0 && errno != ENOENT) exit(fail("/dev/fuse"));
}

static struct fuse_attr attributes(unsigned long node) {
    struct fuse_attr attributes = {.ino = node, .nlink = 1, .blksize = 4096, .mode = S_IFDIR | 0755};
    if (node == DISK) attributes.mode = S_IFREG | 0600, attributes.size = size, attributes.blocks = size / 512;
    return attributes;
}

static void serve_one(void) {
    const void *data = (char *)&request + sizeof request.header;
    switch (request.header.opcode) {
    case FUSE_INIT: {
        struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = 4096};
        answer(0, &init, sizeof init);
        break;
    }
    case FUSE_LOOKUP: {
        struct fuse_entry_out entry = {.nodeid = DISK, .attr = attributes(DISK)};
        if (strcmp(data, "disk")) answer(ENOENT, NULL, 0);
        else answer(0, &entry, sizeof entry);
        break;
    }
    case FUSE_GETATTR: {
        struct fuse_attr_out told = {.attr = attributes(request.header.nodeid)};
        answer(0, &told, sizeof told);
        break;
    }
    case FUSE_OPEN:
    case FUSE_OPENDIR: {
        // What is read twice is asked for twice.
        struct fuse_open_out opened = {.open_flags = FOPEN_DIRECT_IO};
        answer(0, &opened, sizeof opened);
        break;
    }
    case FUSE_READ: {
        long since = now();
        const struct fuse_read_in *read = data;
        long left = size - (long)read->offset;
        nap(late_us);
        reads++, waited += now() - since;
        answer(0, zeros, left < 0 ? 0 : left < read->size ? left : read->size);
        break;
    }
    case FUSE_FLUSH:
    case FUSE_RELEASE:
    case FUSE_RELEASEDIR:
        answer(0, NULL, 0);
        break;
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT:
        break;
    default:
        answer(ENOSYS, NULL, 0);
    }
}

static int serve(const char *folder) {
    char options[128], line[16];
    device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (device < 0) return fail("/dev/fuse");
    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=%d,group_id=%d", device, getuid(), getgid());
    if (mount("late_disk", folder, "fuse", MS_NOSUID | MS_NODEV, options)) return fail(folder);
    puts("ready"), fflush(stdout);
    struct pollfd ends[] = {{device, POLLIN, 0}, {0, POLLIN, 0}};
    while (poll(ends, 2, -1) > 0) {
        if (ends[0].revents & POLLIN) {
            if (read(device, &request, sizeof request) < 0) {
                if (errno != ENODEV && errno != EINTR && errno != ENOENT) return fail("/dev/fuse");
            } else {
                serve_one();
            }
        }
        if (ends[1].revents) {
            if (read(0, line, sizeof line) <= 0) break;
            printf("%ld %ld\n", reads, waited), fflush(stdout);
        }
    }
    return umount2(folder, MNT_DETACH) ? fail(folder) : 0;
}

NOIPA static long read_pieces(int from, long count, long piece) {
    static char bytes[LARGEST] __attribute__((aligned(4096)));
    long all = 0;
    for (long done = 0; done < count; done++) {
        long before = now();
        if (pread(from, bytes, piece, done * piece) != piece) exit(fail("read"));
        all += now() - before;
    }
    KEEP_FRAME();
    return all;
}

int main(int count, char **values) {
    if (count == 5 && !strcmp(values[1], "serve")) {
        size = atol(values[3]) * 1024, late_us = atol(values[4]);
        return serve(values[2]);
    }
    if (count != 6 || strcmp(values[1], "read")) return 2;
    int from = open(values[2], O_RDONLY | O_DIRECT);
    if (from < 0) return fail(values[2]);
    long all = read_pieces(from, atol(values[3]), atol(values[4]) * 1024);
    FILE *told = fopen(values[5], "w");
    if (!told) return fail(values[5]);
    fprintf(told, "%ld\n", all);
    return fclose(told);
}
