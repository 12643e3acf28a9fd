// SPDX-License-Identifier: MIT OR Apache-2.0
// The first process of bench/rules-oracle.sh's guest: runs the planted programs one after the other beside the kernel's own
// monitors, and writes what both said to port 0xe9, QEMU's debug console, which has no interrupt that could be lost.
//
//   K<line>   a line of the trace instance in which the monitors' errors are recorded (clock mono)
//   V<line>   a line of `watch --rules --violations`
//   J<line>   the answer of `watch --rules --json`
//   E<line>   what `watch` wrote to standard error
//
// The program's modes are words of the kernel's command line: modes=A,B seconds=N watch=OPTIONS,… events=yes.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRACE "/sys/kernel/tracing/"
#define OWN TRACE "instances/oracle/"

#define PORT 0xe9

static FILE *out;

static ssize_t to_port(void *unused, const char *bytes, size_t n)
{
	(void)unused;
	for (size_t i = 0; i < n; i++)
		outb(bytes[i], PORT);
	return n;
}

static void put(const char *path, const char *text, int flags)
{
	int fd = open(path, O_WRONLY | flags);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		fprintf(out, "!%s: %s: %s\n", path, text, strerror(errno));
	if (fd >= 0)
		close(fd);
}

// Copies a file line by line, each behind a letter.
static void copy(const char *path, char letter)
{
	FILE *in = fopen(path, "r");
	char *line = NULL;
	size_t room = 0;

	if (!in)
		return;
	while (getline(&line, &room, in) > 0) {
		line[strcspn(line, "\n")] = 0;
		fprintf(out, "%c%s\n", letter, line);
	}
	free(line);
	fclose(in);
}

static void watch(const char *mode, const char *seconds, char *options)
{
	char *words[32] = { "/tailbound", "watch", "--rules", "--json", "-q", "--violations", "/tmp/v", "--force" };
	int n = 8, status;
	pid_t pid;

	for (char *word = strtok(options, ","); word && n < 24; word = strtok(NULL, ","))
		words[n++] = word;
	words[n++] = "--";
	words[n++] = "/planted";
	words[n++] = (char *)mode;
	words[n++] = (char *)seconds;
	fprintf(out, "=%s\n", mode);
	fflush(out);
	put(TRACE "rv/enabled_monitors", "rtapp:sleep", O_TRUNC);
	put(TRACE "rv/enabled_monitors", "rtapp:pagefault", O_APPEND);
	put(OWN "tracing_on", "1", 0);
	pid = fork();
	if (!pid) {
		dup2(open("/tmp/j", O_CREAT | O_TRUNC | O_WRONLY, 0600), 1);
		dup2(open("/tmp/e", O_CREAT | O_TRUNC | O_WRONLY, 0600), 2);
		chdir("/tmp");
		execv(words[0], words);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) != pid)
		;
	put(OWN "tracing_on", "0", 0);
	close(open(TRACE "rv/enabled_monitors", O_WRONLY | O_TRUNC));
	fprintf(out, "?%d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	copy(OWN "trace", 'K');
	copy("/tmp/v", 'V');
	copy("/tmp/j", 'J');
	copy("/tmp/e", 'E');
	put(OWN "trace", "", O_TRUNC);
	fflush(out);
}

int main(void)
{
	char *modes = getenv("modes"), *seconds = getenv("seconds"), *events = getenv("events");
	char *options = getenv("watch");
	char *rest;

	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	mount("tracefs", TRACE, "tracefs", 0, NULL);
	mount("tmpfs", "/tmp", "tmpfs", 0, NULL);
	out = fopencookie(NULL, "w", (cookie_io_functions_t){ .write = to_port });
	if (!out || ioperm(PORT, 1, 1)) {
		perror("port 0xe9");
		reboot(RB_AUTOBOOT);
	}
	mkdir(TRACE "instances/oracle", 0700);
	put(OWN "tracing_on", "0", 0);
	put(OWN "trace_clock", "mono", 0);
	put(OWN "buffer_size_kb", "32768", 0);
	put(OWN "events/rv/error_sleep/enable", "1", 0);
	put(OWN "events/rv/error_pagefault/enable", "1", 0);
	put(OWN "events/exceptions/page_fault_user/enable", "1", 0);
	put(OWN "events/exceptions/page_fault_kernel/enable", "1", 0);
	if (events) {
		put(OWN "events/rv/event_sleep/enable", "1", 0);
		put(OWN "events/sched/sched_switch/enable", "1", 0);
		put(OWN "events/sched/sched_waking/enable", "1", 0);
	}
	put(TRACE "rv/monitoring_on", "1", 0);
	for (char *mode = strtok_r(modes ? modes : "clean", ",", &rest); mode; mode = strtok_r(NULL, ",", &rest)) {
		char copied[256];

		snprintf(copied, sizeof(copied), "%s", options ? options : "");
		watch(mode, seconds ? seconds : "1", copied);
	}
	fprintf(out, "=end\n");
	fflush(out);
	sync();
	reboot(RB_AUTOBOOT);
	return 0;
}
