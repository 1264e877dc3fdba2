/* What glibc has only since a later version than that of the oldest machines on which the libraries
   run that jobs load (old_glibc.cmake). Each stays inside the library. */
#define _GNU_SOURCE
#undef _FILE_OFFSET_BITS  /* It would make stat() another function. */
#undef _TIME_BITS
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define INSIDE __attribute__((visibility("hidden")))

/* 2.32: shared_ptr counts without atomics where a process has one thread; here never. */
INSIDE char __libc_single_threaded = 0;

/* 2.33: before, an inline function of the header. */
INSIDE int stat(const char* path, struct stat* found) {
  return (int)syscall(SYS_newfstatat, AT_FDCWD, path, found, 0);
}
INSIDE int lstat(const char* path, struct stat* found) {
  return (int)syscall(SYS_newfstatat, AT_FDCWD, path, found, AT_SYMLINK_NOFOLLOW);
}
INSIDE int fstat(int file, struct stat* found) { return (int)syscall(SYS_fstat, file, found); }
INSIDE int fstat64(int file, struct stat64* found) { return (int)syscall(SYS_fstat, file, found); }

/* 2.36, for std::random_device. */
INSIDE uint32_t arc4random(void) {
  uint32_t number = 0;
  while (getentropy(&number, sizeof(number)) != 0 && errno == EINTR) continue;
  return number;
}

/* 2.30: by the clock of the day, which a wait of that glibc has. */
INSIDE int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                  clockid_t clock, const struct timespec* until) {
  const int64_t second = 1000000000;
  struct timespec now, day;
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &day);
  int64_t left = (until->tv_sec - now.tv_sec) * second + until->tv_nsec - now.tv_nsec;
  left = (left < 0 ? 0 : left) + day.tv_nsec;
  day.tv_sec += left / second;
  day.tv_nsec = left % second;
  return pthread_cond_timedwait(condition, mutex, &day);
}

/* 2.35, for the unwinder of GCC 12 and later: the object that has an address, and where its
   exception handling is described. */
#ifdef DLFO_STRUCT_HAS_EH_DBASE
struct wanted {
  uintptr_t address;
  struct dl_find_object* result;
};

static int look(struct dl_phdr_info* object, size_t size, void* data) {
  const struct wanted* const wanted = data;
  const ElfW(Phdr)* frames = NULL;
  int inside = 0;
  (void)size;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)* const part = &object->dlpi_phdr[i];
    const uintptr_t begin = object->dlpi_addr + part->p_vaddr;
    if (part->p_type == PT_GNU_EH_FRAME) frames = part;
    if (part->p_type != PT_LOAD || wanted->address - begin >= part->p_memsz) continue;
    wanted->result->dlfo_map_start = (void*)begin;
    wanted->result->dlfo_map_end = (void*)(begin + part->p_memsz);
    inside = 1;
  }
  if (!inside || frames == NULL) return 0;
  wanted->result->dlfo_eh_frame = (void*)(object->dlpi_addr + frames->p_vaddr);
  return 1;
}

INSIDE int _dl_find_object(void* address, struct dl_find_object* result) {
  const struct dl_find_object empty = {0};
  struct wanted wanted = {(uintptr_t)address, result};
  *result = empty;
  return dl_iterate_phdr(&look, &wanted) == 1 ? 0 : -1;
}
#endif
