/*
 * The init process of a User-Mode Linux that tests whether the kernel preserves vector registers. Usage, on the
 * kernel's command line: init=THIS -- FOLDER, where FOLDER is a folder of the host. The file "outcome" there gets a line
 * for each check: its name and "ok" or the fault. Started as an ordinary program, it tests the running kernel and writes
 * to its standard output.
 *
 * Each check loads all vector registers of the processor with known values, enters the kernel by a system call, a page
 * fault or a signal, and compares the registers. There is no compiled code between load and store.
 */
#define _GNU_SOURCE
#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/ucontext.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REGISTERS = 32, WIDTH = 64, MASKS = 8, ROUNDS = 200, PAGE = 4096 };
enum { SW_RESERVED = 464, MAGIC1 = 0x46505853, MAGIC2 = 0x46505845 };

struct image {
	uint8_t vector[REGISTERS][WIDTH];
	uint64_t mask[MASKS];
};

/*
 * Loads the registers from one image, makes a system call (or, if its number is -1, writes a byte at `first`), and
 * stores the registers in another image. Returns the result of the call.
 */
typedef long exchange(const struct image *load, struct image *store, long number, long first, long second, long third);
exchange with_sse, with_avx, with_avx512;

#define FUNCTION(name, load, store)                                                                                    \
	".globl " name "\n" name ":\n" load                                                                            \
	" push %rsi\n mov %rdx, %rax\n mov %rcx, %rdi\n mov %r8, %rsi\n mov %r9, %rdx\n"                                \
	" cmp $-1, %rax\n je 1f\n syscall\n jmp 2f\n1: movb $1, (%rdi)\n2: pop %rsi\n" store " ret\n"
#define MACRO(name, instruction) ".macro " name " n\n " instruction "\n .endm\n"

asm(".text\n.altmacro\n"
    MACRO("sse_load", "movups 64*\\n(%rdi), %xmm\\n")
    MACRO("sse_store", "movups %xmm\\n, 64*\\n(%rsi)")
    MACRO("avx_load", "vmovups 64*\\n(%rdi), %ymm\\n")
    MACRO("avx_store", "vmovups %ymm\\n, 64*\\n(%rsi)")
    MACRO("zmm_load", "vmovups 64*\\n(%rdi), %zmm\\n")
    MACRO("zmm_store", "vmovups %zmm\\n, 64*\\n(%rsi)")
    MACRO("mask_load", "kmovq 2048+8*\\n(%rdi), %k\\n")
    MACRO("mask_store", "kmovq %k\\n, 2048+8*\\n(%rsi)")
    ".macro each what, count\n number = 0\n .rept \\count\n \\what %number\n number = number + 1\n .endr\n.endm\n"
    FUNCTION("with_sse", "each sse_load, 16\n", "each sse_store, 16\n")
    FUNCTION("with_avx", "each avx_load, 16\n", "each avx_store, 16\n vzeroupper\n")
    FUNCTION("with_avx512", "each zmm_load, 32\n each mask_load, 8\n",
	     "each zmm_store, 32\n each mask_store, 8\n vzeroupper\n")
    ".noaltmacro\n");

static exchange *pass;
static int count, width, masks;
static FILE *outcome;

/* Chooses the widest registers of this processor. */
static void choose(void)
{
	if (__builtin_cpu_supports("avx512bw")) {
		pass = with_avx512, count = 32, width = 64, masks = 8;
	} else if (__builtin_cpu_supports("avx")) {
		pass = with_avx, count = 16, width = 32;
	} else {
		pass = with_sse, count = 16, width = 16;
	}
}

static void fill(struct image *image, unsigned seed)
{
	uint8_t *bytes = (void *)image;

	for (size_t i = 0; i < sizeof *image; i++)
		bytes[i] = seed * 37 + i * 11 + (i >> 8);
}

/* Returns a description of the first register that differs, or NULL. */
static const char *difference(const struct image *expected, const struct image *found)
{
	static char text[60];

	for (int i = 0; i < count; i++)
		if (memcmp(expected->vector[i], found->vector[i], width)) {
			snprintf(text, sizeof text, "vector register %d differs", i);
			return text;
		}
	for (int i = 0; i < masks; i++)
		if (expected->mask[i] != found->mask[i]) {
			snprintf(text, sizeof text, "mask register %d differs", i);
			return text;
		}
	return NULL;
}

/* One of two tasks that pass a byte to each other, so that each system call switches tasks. */
struct partner {
	int in, out, is_first;
	unsigned seed;
};

static const char *play(const struct partner *p)
{
	struct image mine, found;
	const char *wrong;
	char byte = 0;

	for (int round = 0; round < ROUNDS; round++)
		for (int step = 0; step < 2; step++) {
			int writes = step == !p->is_first;
			fill(&mine, p->seed + round);
			if (pass(&mine, &found, writes ? SYS_write : SYS_read, writes ? p->out : p->in, (long)&byte, 1) != 1)
				return "the other task has ended";
			wrong = difference(&mine, &found);
			if (wrong)
				return wrong;
		}
	return NULL;
}

static const char *pair_up(struct partner two[2])
{
	int there[2], back[2];

	if (pipe(there) || pipe(back))
		return "no pipe";
	two[0] = (struct partner){ back[0], there[1], 1, 1 };
	two[1] = (struct partner){ there[0], back[1], 0, 101 };
	return NULL;
}

static const char *processes(void)
{
	struct partner two[2];
	const char *wrong = pair_up(two);
	int status;

	if (wrong)
		return wrong;
	pid_t child = fork();
	if (child == 0)
		_exit(play(&two[1]) != NULL);
	wrong = play(&two[0]);
	waitpid(child, &status, 0);
	return wrong ? wrong : status ? "registers of the child differ" : NULL;
}

static void *other(void *partner)
{
	return (void *)play(partner);
}

/* All threads of a process of the guest share one process of the host. */
static const char *threads(void)
{
	struct partner two[2];
	const char *wrong = pair_up(two);
	void *others;
	pthread_t thread;

	if (wrong)
		return wrong;
	if (pthread_create(&thread, NULL, other, &two[1]))
		return "no thread";
	wrong = play(&two[0]);
	pthread_join(thread, &others);
	return wrong ? wrong : others;
}

static const char *forks(void)
{
	struct image mine, found;
	const char *wrong;
	int status;

	fill(&mine, 3);
	long child = pass(&mine, &found, SYS_fork, 0, 0, 0);
	wrong = difference(&mine, &found);
	if (child == 0)
		_exit(wrong != NULL);
	waitpid(child, &status, 0);
	return wrong ? wrong : status ? "registers of the child differ after fork" : NULL;
}

static const char *faults(void)
{
	char *pages = mmap(NULL, ROUNDS * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct image mine, found;
	const char *wrong = pages == MAP_FAILED ? "no memory" : NULL;

	for (int i = 0; !wrong && i < ROUNDS; i++) {
		fill(&mine, i);
		pass(&mine, &found, -1, (long)(pages + i * PAGE), 0, 0);
		wrong = difference(&mine, &found);
	}
	return wrong;
}

static struct image changed;
static const char *in_handler;
static int changes_frame;

static void clobber(int number, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	uint8_t *state = (void *)uc->uc_mcontext.fpregs;
	uint32_t magic, size;
	struct image ignored;
	(void)number, (void)info;

	fill(&changed, 77);
	pass(&changed, &ignored, SYS_getpid, 0, 0, 0);
	memcpy(&magic, state + SW_RESERVED, 4);
	memcpy(&size, state + SW_RESERVED + 16, 4);
	if (magic != MAGIC1)
		in_handler = "the frame has no extended state";
	else if (memcpy(&magic, state + size, 4), magic != MAGIC2)
		in_handler = "the extended state of the frame has no end";
	/* Register 1, 16 bytes */
	if (changes_frame)
		memset(state + 160 + 16, 0x5a, 16);
}

static const char *signals(void)
{
	struct sigaction action = { .sa_sigaction = clobber, .sa_flags = SA_SIGINFO };
	struct image mine, found;
	const char *wrong = NULL;

	in_handler = NULL;
	sigaction(SIGUSR1, &action, NULL);
	for (int i = 0; !wrong && i < ROUNDS; i++) {
		fill(&mine, i);
		pass(&mine, &found, SYS_kill, getpid(), SIGUSR1, 0);
		wrong = in_handler ? in_handler : difference(&mine, &found);
	}
	return wrong;
}

/* A signal handler changes registers of the program through the signal frame, as debuggers and emulators do. */
static const char *frames(void)
{
	struct sigaction action = { .sa_sigaction = clobber, .sa_flags = SA_SIGINFO };
	struct image mine, found;

	changes_frame = 1;
	sigaction(SIGUSR1, &action, NULL);
	fill(&mine, 5);
	pass(&mine, &found, SYS_kill, getpid(), SIGUSR1, 0);
	changes_frame = 0;
	memset(mine.vector[1], 0x5a, 16);
	return difference(&mine, &found);
}

static const char *alternate(size_t room, uint8_t **below)
{
	struct sigaction action = { .sa_sigaction = clobber, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	uint8_t *memory = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	stack_t stack = { .ss_sp = memory + (1 << 19), .ss_size = room };

	if (memory == MAP_FAILED || sigaltstack(&stack, NULL))
		return "no alternate stack";
	*below = memory;
	sigaction(SIGUSR1, &action, NULL);
	return NULL;
}

/* A stack with the size of a frame that the kernel reports, plus the needs of the handler, is large enough. */
static const char *roomy(void)
{
	size_t frame_bytes = getauxval(AT_MINSIGSTKSZ);
	struct image mine, found;
	uint8_t *memory;
	const char *wrong = alternate(frame_bytes + 3 * PAGE, &memory);

	if (wrong || frame_bytes < 512)
		return wrong ? wrong : "the kernel does not report the size of a frame";
	in_handler = NULL;
	fill(&mine, 6);
	pass(&mine, &found, SYS_kill, getpid(), SIGUSR1, 0);
	return in_handler ? in_handler : difference(&mine, &found);
}

/* If a frame does not fit on the stack, the process is killed, and nothing below the stack is written. */
static const char *tight(void)
{
	size_t frame_bytes = getauxval(AT_MINSIGSTKSZ), room = 2048;
	uint8_t *memory;
	const char *wrong = alternate(room, &memory);
	int status;

	if (wrong || frame_bytes <= room)
		return wrong;
	pid_t child = fork();
	if (child == 0) {
		kill(getpid(), SIGUSR1);
		_exit(0);
	}
	waitpid(child, &status, 0);
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSEGV)
		return "a signal was delivered on a stack that is too small";
	for (int i = 0; i < 1 << 19; i++)
		if (memory[i])
			return "memory below the stack was written";
	return NULL;
}

static const struct {
	const char *name;
	const char *(*check)(void);
} checks[] = {
	{ "processes", processes }, { "threads", threads }, { "fork", forks },	 { "faults", faults },
	{ "signals", signals },	    { "frames", frames },   { "roomy", roomy }, { "tight", tight },
};

/* Mounts a folder of the host, and opens the file of the outcome there. */
static FILE *reach(const char *folder)
{
	mount("proc", "/proc", "proc", 0, NULL);
	mount("run", "/run", "tmpfs", 0, NULL);
	mkdir("/run/shared", 0755);
	if (mount("none", "/run/shared", "hostfs", 0, folder))
		return NULL;
	return fopen("/run/shared/outcome", "w");
}

int main(int words, char **word)
{
	int is_first = getpid() == 1;
	uint32_t a, b, c, d;

	outcome = is_first && words > 1 ? reach(word[1]) : stdout;
	if (!outcome)
		goto end;
	choose();
	__cpuid_count(13, 0, a, b, c, d);
	fprintf(outcome, "registers %d of %d bytes; state %u bytes, frame %lu\n", count, width, b,
		getauxval(AT_MINSIGSTKSZ));
	for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
		/* Each check runs in a process of its own, so that one that is killed does not stop the others. */
		int status, answer[2];
		char verdict[100] = "the check was killed";
		if (pipe(answer))
			break;
		fflush(outcome);
		if (fork() == 0) {
			const char *wrong = checks[i].check();
			dprintf(answer[1], "%s", wrong ? wrong : "ok");
			_exit(0);
		}
		wait(&status);
		close(answer[1]);
		ssize_t length = read(answer[0], verdict, sizeof verdict - 1);
		if (length > 0)
			verdict[length] = 0;
		close(answer[0]);
		fprintf(outcome, "%s: %s\n", checks[i].name, verdict);
	}
	fclose(outcome);
end:
	if (!is_first)
		return 0;
	sync();
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}
