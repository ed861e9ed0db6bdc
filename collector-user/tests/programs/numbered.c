/* System calls that no kernel has, so that nobody else makes them: call 1000 with six known arguments, from one function.
   numbered CALLS [deep|turns]: from a function with a large frame; by two threads on two CPUs, each in its turn. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LARGE = 60 << 10 };

static long calls = 1;
static atomic_long next;

__attribute__((noinline)) static void numbered_call(long number)
{
	syscall(1000, number, 2 * number, -number, 0x1122334455667788L, 5L, 6L);
	__asm__ volatile("");
}

__attribute__((noinline)) static void deep(void)
{
	volatile char frame[LARGE];
	for (int at = 0; at < LARGE; at += 1024)
		frame[at] = 1;
	for (long number = 0; number < calls; number++)
		numbered_call(number);
	__asm__ volatile("" : : "r"(frame) : "memory");
}

static void *take_turns(void *second)
{
	cpu_set_t cpus;
	CPU_ZERO(&cpus);
	CPU_SET(second != NULL, &cpus);
	/* With one CPU it takes longer. */
	sched_setaffinity(0, sizeof cpus, &cpus);
	for (long number = second != NULL; number < calls; number += 2) {
		while (atomic_load(&next) != number)
			;
		numbered_call(number);
		atomic_store(&next, number + 1);
	}
	return NULL;
}

int main(int count, char **arguments)
{
	calls = count > 1 ? atol(arguments[1]) : 1;
	const char *way = count > 2 ? arguments[2] : "";
	if (strcmp(way, "deep") == 0) {
		deep();
	} else if (strcmp(way, "turns") == 0) {
		pthread_t other;
		if (pthread_create(&other, NULL, take_turns, &next) != 0)
			return 1;
		take_turns(NULL);
		pthread_join(other, NULL);
	} else {
		for (long number = 0; number < calls; number++)
			numbered_call(number);
	}
	/* One that fails, and one that does not. */
	close(12345);
	close(0);
	return 0;
}
