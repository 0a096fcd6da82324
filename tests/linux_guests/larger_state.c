/*
 * Simulates a host with a larger processor state, for a kernel that is started with this library (LD_PRELOAD). Its
 * calls of ptrace see a state of STATE_BYTES bytes (by default 11008, as on processors with AMX). The part after the
 * XSAVE header is moved to the end, behind zeros, so that a kernel that saves only the beginning loses it. Like a real
 * host, it accepts only the complete state.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>

enum { HEADER_END = 576, MOST = 1 << 18 };

typedef long call(int request, pid_t pid, void *address, void *data);
static unsigned char own[MOST], shown[MOST];

static size_t shown_bytes(void)
{
	const char *text = getenv("STATE_BYTES");
	size_t bytes = text ? strtoul(text, NULL, 10) : 11008;

	return bytes < MOST ? bytes : MOST;
}

long ptrace(enum __ptrace_request request, ...)
{
	call *real = (call *)dlsym(RTLD_NEXT, "ptrace");
	struct iovec *asked, mine = { own, sizeof own };
	size_t total = shown_bytes(), behind;
	pid_t pid;
	void *address, *data;
	va_list list;
	long result;

	va_start(list, request);
	pid = va_arg(list, pid_t);
	address = va_arg(list, void *);
	data = va_arg(list, void *);
	va_end(list);
	if ((request != PTRACE_GETREGSET && request != PTRACE_SETREGSET) || (long)address != NT_X86_XSTATE)
		return real(request, pid, address, data);
	asked = data;
	result = real(PTRACE_GETREGSET, pid, address, &mine);
	if (result < 0)
		return result;
	behind = mine.iov_len - HEADER_END;
	if (asked->iov_len > total)
		asked->iov_len = total;
	if (request == PTRACE_GETREGSET) {
		memset(shown, 0, total);
		memcpy(shown, own, HEADER_END);
		memcpy(shown + total - behind, own + HEADER_END, behind);
		memcpy(asked->iov_base, shown, asked->iov_len);
		return 0;
	}
	if (asked->iov_len != total) {
		errno = EFAULT;
		return -1;
	}
	memcpy(own, asked->iov_base, HEADER_END);
	memcpy(own + HEADER_END, (unsigned char *)asked->iov_base + total - behind, behind);
	return real(request, pid, address, &mine);
}
