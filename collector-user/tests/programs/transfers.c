// Reads, writes and talks as it is told to by its first argument. What it finds out about itself, numbers, goes to the file of the
// second one. The calls that are counted are those of the functions below, and one that writes to that file.
#define _GNU_SOURCE
#include "asleep.h"
#include "burn.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define CHECK(what) do { if (!(what)) { fprintf(stderr, "line %d: %s\n", __LINE__, strerror(errno)); return 1; } } while (0)

enum { NAPS = 10, WRITES = 100, PIECE = 1000, SYNCS = 5, WRONG = 7, LOOPS = 20000, FEW = 60 };

static char text[256];
static char buffer[4096];

static _Atomic long reader, came, least;

// Gives so often what the other thread waits for: when that has been seen asleep, and then for 20 ms more.
static int give_late(int end, int (*give)(int)) {
  for (int i = 0; i < NAPS; i++) {
    while (!came) nap(1000);
    // It may sleep for another reason for a moment.
    do nap(1000); while (!is_asleep(reader));
    long asleep = now();
    nap(20000);
    least += now() - asleep;
    came = 0;
    if (!give(end)) return 0;
  }
  return 1;
}

static int pipe_ends[2];

static int give_byte(int end) {
  return write(end, "x", 1) == 1;
}

static void *write_late(void *unused) {
  return give_late(pipe_ends[1], give_byte) ? &pipe_ends : unused;
}

NOIPA static long read_late(int end) {
  long all = 0;
  for (int i = 0; i < NAPS; i++) {
    while (came) sched_yield();
    char byte;
    long before = now();
    came = before;
    if (read(end, &byte, 1) != 1) return -1;
    all += now() - before;
  }
  KEEP_FRAME();
  return all;
}

// Tells the least and the most nanoseconds for which it can have waited in all.
static int through_a_pipe(void) {
  pthread_t writer;
  void *is_done;
  reader = syscall(SYS_gettid);
  CHECK(!pipe(pipe_ends) && !pthread_create(&writer, NULL, write_late, NULL));
  long most = read_late(pipe_ends[0]);
  CHECK(most > 0 && !pthread_join(writer, &is_done) && is_done);
  sprintf(text, "%ld %ld\n", least, most);
  return 0;
}

// In the folder that it is started in.
static int to_a_file(void) {
  int file = open("written", O_RDWR | O_CREAT | O_EXCL, 0600);
  CHECK(file >= 0);
  for (int i = 0; i < WRITES; i++) CHECK(write(file, buffer, PIECE) == PIECE);
  for (int i = 0; i < SYNCS; i++) CHECK(!fsync(file));
  for (int i = 0; i < WRITES; i++) CHECK(pread(file, buffer, PIECE, i * PIECE) == PIECE);
  CHECK(pread(file, buffer, PIECE, WRITES * PIECE) == 0);
  for (int i = 0; i < WRONG; i++) CHECK(write(-1, buffer, 1) == -1 && errno == EBADF);
  int only_read = open("written", O_RDONLY);
  CHECK(write(only_read, buffer, 1) == -1 && errno == EBADF);
  return 0;
}

static int listening;

// 10 times 100 bytes, 3 messages of 11 and what is left of 5 times 7.
static void *answer(void *unused) {
  int one = accept(listening, NULL, NULL);
  for (int i = 0; i < 10; i++) if (recv(one, buffer, 100, MSG_WAITALL) != 100) return NULL;
  if (recv(one, buffer, 33, MSG_WAITALL) != 33) return NULL;
  struct iovec part = {buffer, 7};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  for (int i = 0; i < 5; i++) if (sendmsg(one, &message, 0) != 7) return NULL;
  close(one);
  return &listening;
}

// On all addresses.
static int listen_on(int family, int backlog, int *port) {
  struct sockaddr_in6 address = {.sin6_family = family};
  struct sockaddr_in *address4 = (struct sockaddr_in *)&address;
  socklen_t len = sizeof address;
  int one = socket(family, SOCK_STREAM, 0);
  if (bind(one, (struct sockaddr *)&address, len) || listen(one, backlog)) return -1;
  if (getsockname(one, (struct sockaddr *)&address, &len)) return -1;
  *port = ntohs(address4->sin_port);
  return one;
}

// To the address `host` of 127.0.0.0/8, or to ::1.
static int connect_to(int family, int host, int port, int flags) {
  struct sockaddr_in6 address = {.sin6_family = family, .sin6_addr = in6addr_loopback};
  struct sockaddr_in *address4 = (struct sockaddr_in *)&address;
  if (family == AF_INET) address4->sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + host);
  address4->sin_port = htons(port);
  int one = socket(family, SOCK_STREAM | flags, 0);
  return !connect(one, (struct sockaddr *)&address, sizeof address) || errno == EINPROGRESS ? one : -1;
}

// Tells the ports: that of the connection, and one that nobody listens on.
static int over_tcp(int family) {
  int port, closed;
  pthread_t server;
  void *is_done;
  close(listen_on(family, 1, &closed));
  listening = listen_on(family, 1, &port);
  CHECK(listening >= 0 && !pthread_create(&server, NULL, answer, NULL));
  int one = connect_to(family, 1, port, 0);
  CHECK(one >= 0);
  for (int i = 0; i < 10; i++) CHECK(send(one, buffer, 100, 0) == 100);
  struct iovec part = {buffer, 11};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  struct mmsghdr three[3] = {{message, 0}, {message, 0}, {message, 0}};
  CHECK(sendmmsg(one, three, 3, 0) == 3);
  part.iov_len = 7;
  for (int i = 0; i < 5; i++) CHECK(recvmsg(one, &message, MSG_WAITALL) == 7);
  CHECK(!pthread_join(server, &is_done) && is_done);
  CHECK(connect_to(family, 1, closed, 0) == -1 && errno == ECONNREFUSED);
  sprintf(text, "%d %d\n", port, closed);
  return 0;
}

static int give_message(int end) {
  return send(end, buffer, 7, 0) == 7;
}

static void *answer_late(void *unused) {
  int one = accept(listening, NULL, NULL);
  int is_done = give_late(one, give_message);
  close(one);
  return is_done ? &listening : unused;
}

NOIPA static long receive_late(int one) {
  long all = 0;
  for (int i = 0; i < NAPS; i++) {
    while (came) sched_yield();
    long before = now();
    came = before;
    if (recv(one, buffer, 7, MSG_WAITALL) != 7) return -1;
    all += now() - before;
  }
  KEEP_FRAME();
  return all;
}

// Tells the port, and the least and the most nanoseconds for which it can have waited in all.
static int late_over_tcp(void) {
  int port;
  pthread_t server;
  void *is_done;
  listening = listen_on(AF_INET, 1, &port);
  reader = syscall(SYS_gettid);
  CHECK(listening >= 0 && !pthread_create(&server, NULL, answer_late, NULL));
  int one = connect_to(AF_INET, 1, port, 0);
  CHECK(one >= 0);
  long most = receive_late(one);
  CHECK(most > 0 && !pthread_join(server, &is_done) && is_done);
  sprintf(text, "%d %ld %ld\n", port, least, most);
  return 0;
}

// Messages through a socket with a name in the folder that it is started in, and to a port that is told.
static int in_messages(void) {
  struct sockaddr_un name = {AF_UNIX, "bound"};
  int one = socket(AF_UNIX, SOCK_DGRAM, 0), other = socket(AF_UNIX, SOCK_DGRAM, 0);
  CHECK(!bind(one, (struct sockaddr *)&name, sizeof name));
  CHECK(!connect(other, (struct sockaddr *)&name, sizeof name));
  struct iovec part = {buffer, 11};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  struct mmsghdr three[3] = {{message, 0}, {message, 0}, {message, 0}};
  CHECK(sendmmsg(other, three, 3, 0) == 3);
  part.iov_len = sizeof buffer;
  CHECK(recvmmsg(one, three, 3, 0, NULL) == 3 && three[2].msg_len == 11);
  strcpy(name.sun_path, "absent");
  CHECK(connect(other, (struct sockaddr *)&name, sizeof name) == -1 && errno == ENOENT);
  struct sockaddr_in port = {.sin_family = AF_INET, .sin_port = htons(9), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  int udp = socket(AF_INET, SOCK_DGRAM, 0);
  CHECK(sendto(udp, buffer, 5, 0, (struct sockaddr *)&port, sizeof port) == 5);
  return 0;
}

// The queue of who listens has room for one: packets of the second who connects are dropped, and sent again after a second.
static int without_an_answer(void) {
  int port;
  listening = listen_on(AF_INET, 0, &port);
  CHECK(listening >= 0 && connect_to(AF_INET, 2, port, 0) >= 0);
  int second = connect_to(AF_INET, 1, port, SOCK_NONBLOCK);
  CHECK(second >= 0);
  nap(1500000);
  close(second);
  sprintf(text, "%d\n", port);
  return 0;
}

static int again_and_again(void) {
  int zero = open("/dev/zero", O_RDONLY);
  for (int i = 0; i < LOOPS; i++) CHECK(read(zero, buffer, 1) == 1);
  return 0;
}

static int below_a_large_frame(void) {
  volatile char frame[60 << 10];
  for (size_t at = 0; at < sizeof frame; at += 1024) frame[at] = 1;
  int zero = open("/dev/zero", O_RDONLY);
  CHECK(zero >= 0);
  for (int i = 0; i < FEW; i++) CHECK(read(zero, buffer, 1) == 1);
  return frame[0] != 1;
}

int main(int count, char **arguments) {
  if (count != 3) return 2;
  int failed = 2;
  if (!strcmp(arguments[1], "pipe")) failed = through_a_pipe();
  if (!strcmp(arguments[1], "file")) failed = to_a_file();
  if (!strcmp(arguments[1], "tcp")) failed = over_tcp(AF_INET);
  if (!strcmp(arguments[1], "tcp6")) failed = over_tcp(AF_INET6);
  if (!strcmp(arguments[1], "late")) failed = late_over_tcp();
  if (!strcmp(arguments[1], "messages")) failed = in_messages();
  if (!strcmp(arguments[1], "unanswered")) failed = without_an_answer();
  if (!strcmp(arguments[1], "loop")) failed = again_and_again();
  if (!strcmp(arguments[1], "deep")) failed = below_a_large_frame();
  FILE *told = fopen(arguments[2], "w");
  if (failed || !told) return 1;
  fputs(text, told);
  return fclose(told);
}
