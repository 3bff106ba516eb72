/* The functions of the C library that a program reaches device files by. */
#define _GNU_SOURCE
#include "shim.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#define CLASS "/sys/class/apex"
#define DESCRIPTORS (1 << 16)
#define MAJOR 120

static _Atomic(struct device *) opened[DESCRIPTORS];

/* Where the entries of the class are, for a path that may be the class's. */
static const char *place_of(const char *path)
{
    return path && devices_are_there() && !strcmp(path, CLASS) ? class_folder() : path;
}

/* The device that is open by a descriptor, or NULL. */
static struct device *device_by(int descriptor)
{
    return descriptor >= 0 && descriptor < DESCRIPTORS ? opened[descriptor] : NULL;
}

static int failed(int error)
{
    errno = error;
    return -1;
}

#define REAL(name, ...)                                                   \
    static __typeof__(name) *real;                                        \
    if (!real)                                                            \
        real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name);               \
    return real(__VA_ARGS__)

int real_sigaction(int number, const struct sigaction *action, struct sigaction *before)
{
    REAL(sigaction, number, action, before);
}

void *real_mmap(void *address, size_t size, int protection, int flags, int descriptor, off_t offset)
{
    return (void *)syscall(SYS_mmap, address, size, protection, flags, descriptor, offset);
}

int real_close(int descriptor)
{
    return (int)syscall(SYS_close, descriptor);
}

/* Open and close. */

static int open_device(struct device *device, int flags)
{
    /* As the device file it has neither read nor write: both are EINVAL. */
    int descriptor = epoll_create1(flags & O_CLOEXEC ? EPOLL_CLOEXEC : 0);
    if (descriptor < 0)
        return -1;
    int error = descriptor < DESCRIPTORS ? device_open(device) : EMFILE;
    if (error) {
        real_close(descriptor);
        return failed(error);
    }
    opened[descriptor] = device;
    return descriptor;
}

static int open_any(int folder, const char *path, int flags, mode_t mode)
{
    struct device *device = device_named(path);
    if (device)
        return open_device(device, flags);
    return (int)syscall(SYS_openat, folder, place_of(path), flags, mode);
}

#define MODE(flags)                                                       \
    mode_t mode = 0;                                                      \
    if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) {          \
        va_list rest;                                                     \
        va_start(rest, flags);                                            \
        mode = va_arg(rest, mode_t);                                      \
        va_end(rest);                                                     \
    }

EXPORTED int open(const char *path, int flags, ...)
{
    MODE(flags)
    return open_any(AT_FDCWD, path, flags, mode);
}

EXPORTED int open64(const char *path, int flags, ...)
{
    MODE(flags)
    return open_any(AT_FDCWD, path, flags, mode);
}

EXPORTED int openat(int folder, const char *path, int flags, ...)
{
    MODE(flags)
    return open_any(folder, path, flags, mode);
}

EXPORTED int openat64(int folder, const char *path, int flags, ...)
{
    MODE(flags)
    return open_any(folder, path, flags, mode);
}

int __open_2(const char *, int);
int __open64_2(const char *, int);
int __openat_2(int, const char *, int);
int __openat64_2(int, const char *, int);

EXPORTED int __open_2(const char *path, int flags)
{
    return open_any(AT_FDCWD, path, flags, 0);
}

EXPORTED int __open64_2(const char *path, int flags)
{
    return open_any(AT_FDCWD, path, flags, 0);
}

EXPORTED int __openat_2(int folder, const char *path, int flags)
{
    return open_any(folder, path, flags, 0);
}

EXPORTED int __openat64_2(int folder, const char *path, int flags)
{
    return open_any(folder, path, flags, 0);
}

EXPORTED int close(int descriptor)
{
    struct device *device = device_by(descriptor);
    if (device) {
        opened[descriptor] = NULL;
        device_close(device);
    }
    return real_close(descriptor);
}

/* What the program finds where it looks for devices. */

EXPORTED DIR *opendir(const char *path)
{
    REAL(opendir, place_of(path));
}

static int describe(const struct device *device, struct stat *status)
{
    memset(status, 0, sizeof *status);
    status->st_mode = S_IFCHR | 0660;
    status->st_nlink = 1;
    status->st_uid = geteuid();
    status->st_gid = getegid();
    status->st_rdev = makedev(MAJOR, device->number);
    return 0;
}

EXPORTED int stat(const char *path, struct stat *status)
{
    const struct device *device = device_named(path);
    if (device)
        return describe(device, status);
    return (int)syscall(SYS_stat, place_of(path), status);
}

EXPORTED int lstat(const char *path, struct stat *status)
{
    const struct device *device = device_named(path);
    if (device)
        return describe(device, status);
    return (int)syscall(SYS_lstat, place_of(path), status);
}

EXPORTED int fstatat(int folder, const char *path, struct stat *status, int flags)
{
    const struct device *device = device_named(path);
    if (device)
        return describe(device, status);
    return (int)syscall(SYS_newfstatat, folder, place_of(path), status, flags);
}

EXPORTED int fstat(int descriptor, struct stat *status)
{
    const struct device *device = device_by(descriptor);
    if (device)
        return describe(device, status);
    return (int)syscall(SYS_fstat, descriptor, status);
}

/* The same record on x86-64. */
EXPORTED int fstat64(int descriptor, struct stat64 *status)
{
    return fstat(descriptor, (struct stat *)status);
}

EXPORTED int stat64(const char *path, struct stat64 *status)
{
    return stat(path, (struct stat *)status);
}

EXPORTED int lstat64(const char *path, struct stat64 *status)
{
    return lstat(path, (struct stat *)status);
}

EXPORTED int fstatat64(int folder, const char *path, struct stat64 *status, int flags)
{
    return fstatat(folder, path, (struct stat *)status, flags);
}

/* Programs that were linked with a C library before 2.33. */
int __fxstat(int, int, struct stat *);
int __fxstat64(int, int, struct stat64 *);
int __xstat(int, const char *, struct stat *);
int __lxstat(int, const char *, struct stat *);
int __xstat64(int, const char *, struct stat64 *);
int __lxstat64(int, const char *, struct stat64 *);

EXPORTED int __fxstat(int version, int descriptor, struct stat *status)
{
    (void)version;
    return fstat(descriptor, status);
}

EXPORTED int __fxstat64(int version, int descriptor, struct stat64 *status)
{
    (void)version;
    return fstat64(descriptor, status);
}

EXPORTED int __xstat(int version, const char *path, struct stat *status)
{
    (void)version;
    return stat(path, status);
}

EXPORTED int __lxstat(int version, const char *path, struct stat *status)
{
    (void)version;
    return lstat(path, status);
}

EXPORTED int __xstat64(int version, const char *path, struct stat64 *status)
{
    (void)version;
    return stat64(path, status);
}

EXPORTED int __lxstat64(int version, const char *path, struct stat64 *status)
{
    (void)version;
    return lstat64(path, status);
}

EXPORTED int statx(int folder, const char *path, int flags, unsigned mask, struct statx *status)
{
    const struct device *device = device_named(path);
    if (device) {
        memset(status, 0, sizeof *status);
        status->stx_mask = STATX_TYPE | STATX_MODE | STATX_NLINK | STATX_UID | STATX_GID;
        status->stx_mode = S_IFCHR | 0660;
        status->stx_nlink = 1;
        status->stx_uid = geteuid();
        status->stx_gid = getegid();
        status->stx_rdev_major = MAJOR;
        status->stx_rdev_minor = device->number;
        return 0;
    }
    return (int)syscall(SYS_statx, folder, place_of(path), flags, mask, status);
}

EXPORTED int access(const char *path, int mode)
{
    if (device_named(path))
        return mode & X_OK ? failed(EACCES) : 0;
    return (int)syscall(SYS_access, place_of(path), mode);
}

/* What the program does with the device. */

/* Whether all of the program's pages are there: the kernel would hold on to them. */
static bool is_memory(uint64_t address, uint64_t size)
{
    unsigned char pages[1024];
    const uint64_t most = sizeof pages * PAGE;
    uint64_t end = address + size;
    address &= ~(uint64_t)(PAGE - 1);
    while (address < end) {
        uint64_t part = end - address < most ? end - address : most;
        if (mincore((void *)address, part, pages))
            return false;
        address += part;
    }
    return true;
}

/* Between the program's memory and this library's: 0 or EFAULT, as by the kernel, and no signal. */
static int copy(long call, void *theirs, void *ours, size_t size)
{
    struct iovec here = {ours, size}, there = {theirs, size};
    return syscall(call, getpid(), &here, 1ul, &there, 1ul, 0ul) == (long)size ? 0 : EFAULT;
}

static int control_device(struct device *device, unsigned long request, void *argument)
{
    size_t size = _IOC_SIZE(request);
    uint32_t asked = _IOC_TYPE(request) << 8 | _IOC_NR(request);
    struct message message = {.what = OPERATION_IOCTL, .argument = asked};
    struct map_words *map = (struct map_words *)message.words;
    struct coherent_words *buffer = (struct coherent_words *)message.words;
    int received = -1;
    if (asked == IOCTL_CLEAR_EVENTFD) /* its argument is no address */
        return clear_event(device, (uint64_t)argument);
    if (asked == IOCTL_RESET || asked == IOCTL_CLEAR_COUNTS)
        return device_ask(device, &message, NULL);
    if (!size || size > sizeof message.words) /* all others have a structure */
        return ENOTTY;
    if (copy(SYS_process_vm_readv, argument, message.words, size))
        return EFAULT;
    if (asked == IOCTL_SET_EVENTFD)
        return set_event(device, message.words[0], (int)message.words[1]);
    if (asked == IOCTL_MAP || asked == IOCTL_MAP_FLAGS) {
        uint64_t shared = coherent_bus_address(device, map->host);
        if (!shared && !is_memory(map->host, map->size))
            return EFAULT;
        map->host = shared ? shared : map->host;
    }
    int error = device_ask(device, &message, &received);
    if (error)
        return error;
    if (asked == IOCTL_COHERENT) {
        drop_coherent(device);
        if (received >= 0)
            keep_coherent(device, buffer->address, buffer->size, received);
    }
    if (_IOC_DIR(request) & _IOC_READ)
        return copy(SYS_process_vm_writev, argument, message.words, size);
    return 0;
}

EXPORTED int ioctl(int descriptor, unsigned long request, ...)
{
    va_list rest;
    va_start(rest, request);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    struct device *device = device_by(descriptor);
    if (!device)
        return (int)syscall(SYS_ioctl, descriptor, request, argument);
    int error = control_device(device, request, argument);
    return error ? failed(error) : 0;
}

EXPORTED void *mmap(void *address, size_t size, int protection, int flags, int descriptor,
                    off_t offset)
{
    struct device *device = flags & MAP_ANONYMOUS ? NULL : device_by(descriptor);
    if (device)
        return map_window(device, address, size, protection, flags, offset);
    return real_mmap(address, size, protection, flags, descriptor, offset);
}

EXPORTED void *mmap64(void *address, size_t size, int protection, int flags, int descriptor,
                      off64_t offset)
{
    return mmap(address, size, protection, flags, descriptor, offset);
}

EXPORTED int munmap(void *address, size_t size)
{
    forget_windows((uintptr_t)address, size);
    return (int)syscall(SYS_munmap, address, size);
}

/* Signals that windows need: the program's own handlers come after. */

EXPORTED int sigaction(int number, const struct sigaction *action, struct sigaction *before)
{
    if (takes_signal(number, action, before))
        return 0;
    return real_sigaction(number, action, before);
}

EXPORTED sighandler_t signal(int number, sighandler_t handler)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART}, before;
    if (sigaction(number, &action, &before))
        return SIG_ERR;
    return before.sa_handler;
}
