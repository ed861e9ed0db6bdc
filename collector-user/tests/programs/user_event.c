/* Writes a tracepoint of its own, by what the kernel's header says (include/uapi/linux/user_events.h, which systems may lack).
   user_event DECLARATION COUNT now: registers it and writes COUNT occurrences, numbered from 0.
   user_event DECLARATION COUNT [multi|thread]: the same for each line that it is sent, after it has printed `registered`.
   After COUNT it prints how many of them the kernel took, of which thread, and whether its bit said that somebody records them.
   With `multi` the event may be there with other fields, too; with `thread`, a thread registers it that has ended by then.
   The fields are
   u32 number; s16 negative; u8 odd; __rel_loc char[] rel; __data_loc char[] data; char[8] name; struct pair both 8 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

struct user_reg {
	uint32_t size;
	uint8_t enable_bit;
	uint8_t enable_size;
	uint16_t flags;
	uint64_t enable_addr;
	uint64_t name_args;
	uint32_t write_index;
} __attribute__((packed));

#define DIAG_IOCSREG _IOWR('*', 0, struct user_reg *)
enum { MULTI_FORMAT = 2, COMMON = 8 };

struct payload {
	uint32_t index;
	uint32_t number;
	int16_t negative;
	uint8_t odd;
	uint32_t rel;
	uint32_t data;
	char name[8];
	uint32_t both[2];
	char texts[64];
} __attribute__((packed));

static volatile uint64_t enabled;
static int file;
static struct user_reg registration = { sizeof registration, 31, 8, 0, (uintptr_t)&enabled, 0, 0 };

static void *register_it(void *unused)
{
	(void)unused;
	if (ioctl(file, DIAG_IOCSREG, &registration) != 0) {
		perror("DIAG_IOCSREG");
		exit(1);
	}
	return NULL;
}

__attribute__((noinline)) static int write_event(uint32_t number)
{
	struct payload payload = { .index = registration.write_index, .number = number, .negative = -(int16_t)number,
		.odd = number & 1, .both = { number, ~number } };
	/* Offsets are from behind a word, and from the start of the record, which has COMMON bytes of its own. */
	char *text = payload.texts;
	int rel = sprintf(text, "rel %u", number) + 1, data = sprintf(text + rel, "data %u", number) + 1;
	uint32_t begin = offsetof(struct payload, texts), behind = offsetof(struct payload, rel) + sizeof payload.rel;
	payload.rel = (uint32_t)rel << 16 | (begin - behind);
	payload.data = (uint32_t)data << 16 | (COMMON + begin - sizeof payload.index + rel);
	snprintf(payload.name, sizeof payload.name, "n%u", number % 10);
	return write(file, &payload, offsetof(struct payload, texts) + rel + data) > 0;
}

static void write_all(int count)
{
	int bit = enabled >> 31 & 1, taken = 0;
	for (int number = 0; number < count; number++)
		taken += write_event(number);
	printf("%d of %ld, bit %d\n", taken, (long)syscall(SYS_gettid), bit);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const char *how = argc > 3 ? argv[3] : "";
	file = open("/sys/kernel/tracing/user_events_data", O_RDWR);
	if (argc < 3 || file < 0) {
		perror("user_events_data");
		return 1;
	}
	registration.name_args = (uintptr_t)argv[1];
	registration.flags = strcmp(how, "multi") == 0 ? MULTI_FORMAT : 0;
	pthread_t thread;
	if (strcmp(how, "thread") != 0)
		register_it(NULL);
	else if (pthread_create(&thread, NULL, register_it, NULL) != 0 || pthread_join(thread, NULL) != 0)
		return 1;
	if (strcmp(how, "now") == 0) {
		write_all(atoi(argv[2]));
		return 0;
	}
	printf("registered\n");
	fflush(stdout);
	for (int sent; (sent = getchar()) != EOF;) {
		if (sent == '\n')
			write_all(atoi(argv[2]));
	}
	return 0;
}
