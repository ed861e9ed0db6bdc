// Four system calls in turn, about a thousand times a second each, until it is ended.
#include <sys/syscall.h>
#include <unistd.h>

int main(void) {
  for (;;) {
    syscall(SYS_getppid);
    syscall(SYS_getuid);
    syscall(SYS_getgid);
    syscall(SYS_geteuid);
    usleep(1000);
  }
}
