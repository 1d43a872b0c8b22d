/*
 * Counts fsync and fdatasync, and makes them slower on demand. Loaded with LD_PRELOAD.
 *   FSYNC_SHIM_FILE      16 bytes, shared with the bench: two 64-bit counters, fsync then fdatasync
 *   FSYNC_SHIM_DELAY_US  sleep this long after each call, as a slower disk would
 *   FSYNC_SHIM_SKIP      set: nothing is synced, and the call succeeds
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static uint64_t unshared[2];
static uint64_t *counters = unshared;
static struct timespec delay;
static int skips;
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);

__attribute__((constructor)) static void start(void) {
  real_fsync = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  real_fdatasync = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  skips = getenv("FSYNC_SHIM_SKIP") != NULL;
  const char *us = getenv("FSYNC_SHIM_DELAY_US");
  long wanted = us ? atol(us) : 0;
  delay.tv_sec = wanted / 1000000;
  delay.tv_nsec = (wanted % 1000000) * 1000;
  const char *path = getenv("FSYNC_SHIM_FILE");
  int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *shared = mmap(NULL, sizeof unshared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (shared != MAP_FAILED) counters = shared;
  close(file);
}

static int counted(int which, int (*real)(int), int fd) {
  __atomic_fetch_add(&counters[which], 1, __ATOMIC_RELAXED);
  int result = skips ? 0 : real(fd);
  if (delay.tv_sec || delay.tv_nsec) nanosleep(&delay, NULL);
  return result;
}

int fsync(int fd) { return counted(0, real_fsync, fd); }
int fdatasync(int fd) { return counted(1, real_fdatasync, fd); }
