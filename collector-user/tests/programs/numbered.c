/* System calls that no kernel has, so that nobody else makes them: call 1000 with six known arguments, from one function. */
#include <unistd.h>
#include <sys/syscall.h>
#include <stdlib.h>

__attribute__((noinline)) static void numbered_call(long number)
{
	syscall(1000, number, 2 * number, -number, 0x1122334455667788L, 5L, 6L);
	__asm__ volatile("");
}

int main(int count, char **arguments)
{
	long calls = count > 1 ? atol(arguments[1]) : 1;
	for (long number = 0; number < calls; number++)
		numbered_call(number);
	/* One that fails, and one that does not. */
	close(12345);
	close(0);
	return 0;
}
