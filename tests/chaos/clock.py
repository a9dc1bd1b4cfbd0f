"""A clock that is wrong: a few lines of C laid over the C library's, for Python and Java alike."""

from __future__ import annotations

import shutil
import subprocess
from functools import lru_cache
from pathlib import Path

_SOURCE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>

static long shift(void) { const char *s = getenv("CLOCK_SHIFT"); return s ? atol(s) : 0; }

int clock_gettime(clockid_t id, struct timespec *at) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(id, at);
    if (code == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) at->tv_sec += shift();
    return code;
}

int gettimeofday(struct timeval *at, void *zone) {
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}

/* Who waits until a moment of the wrong clock must wait until that moment of the right one. */
static struct timespec right(const struct timespec *until) {
    struct timespec moved = *until;
    if (moved.tv_sec > 1000000000) moved.tv_sec -= shift();
    return moved;
}

int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until) {
    static int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    if (!real) real = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    if (!real) real = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    struct timespec moved = right(until);
    return real(cond, mutex, &moved);
}

int cnd_timedwait(cnd_t *cond, mtx_t *mutex, const struct timespec *until) {
    static int (*real)(cnd_t *, mtx_t *, const struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "cnd_timedwait");
    struct timespec moved = right(until);
    return real(cond, mutex, &moved);
}

int sem_timedwait(sem_t *sem, const struct timespec *until) {
    static int (*real)(sem_t *, const struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "sem_timedwait");
    struct timespec moved = right(until);
    return real(sem, &moved);
}
"""


@lru_cache
def _library(folder: Path) -> Path:
    source, library = folder / "clock.c", folder / "clock.so"
    source.write_text(_SOURCE)
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"], check=True)
    return library


def can_shift() -> bool:
    return shutil.which("cc") is not None


def shifted(folder: Path, seconds: int) -> dict[str, str]:
    """The environment of a process whose clock is off by so much."""
    return {"LD_PRELOAD": str(_library(folder)), "CLOCK_SHIFT": str(seconds)}
