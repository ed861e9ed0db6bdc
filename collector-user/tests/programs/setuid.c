// Installed setuid: lives for some rounds of a recording, runs the program in its arguments and waits for it.
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
  usleep(300000);
  pid_t child = argc > 1 ? fork() : -1;
  if (child < 0) return 1;
  if (child == 0) {
    execv(argv[1], argv + 1);
    _exit(127);
  }
  int status;
  return waitpid(child, &status, 0) != child || status != 0;
}
