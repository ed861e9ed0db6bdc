// Threads that contend for one lock of the kernel: they read from one open file, which has a mutex for its position. Arguments:
// the file, which is made, how many threads there are, and how many pieces each reads.
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { PIECE = 64 << 10, FILE_PIECES = 16, MOST = 16 };

static int file;
static pthread_barrier_t start;
static long pieces;

__attribute__((noinline)) void read_pieces(char *piece) {
    for (long done = 0; done < pieces; done++) {
        long got = read(file, piece, PIECE);
        if (got < 0 || (got == 0 && lseek(file, 0, SEEK_SET) < 0)) exit(3);
    }
}

static void *reads(void *nothing) {
    char piece[PIECE];
    pthread_barrier_wait(&start);
    read_pieces(piece);
    return nothing;
}

int main(int count, char **values) {
    static char piece[PIECE];
    if (count != 4) return 2;
    file = open(values[1], O_CREAT | O_RDWR, 0600);
    long threads = atol(values[2]);
    pieces = atol(values[3]);
    if (file < 0 || threads < 1 || threads > MOST) return 2;
    for (long done = 0; done < FILE_PIECES; done++) {
        if (write(file, piece, PIECE) != PIECE) return 2;
    }
    pthread_barrier_init(&start, NULL, threads);
    pthread_t handles[MOST];
    for (long thread = 0; thread < threads; thread++) pthread_create(&handles[thread], NULL, reads, NULL);
    for (long thread = 0; thread < threads; thread++) pthread_join(handles[thread], NULL);
    return 0;
}
