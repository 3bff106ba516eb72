/*
 * Auditor of the dynamic linker (rtld-audit(7)): a program that loads the vendor's library gets the
 * delegate, by whatever name and from whatever folder the program loads it.
 *
 * LD_LIBRARY_PATH alone serves names without a folder. Public programs also load
 * "/usr/lib/aarch64-linux-gnu/libedgetpu.so.1.0" and the like.
 */
#define _GNU_SOURCE
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "config.h" /* DARWINN_LIBRARY: path of the delegate */

#define EXPORT __attribute__((visibility("default")))

static const char STEM[] = "libedgetpu.so";

/* Names of the same library on systems that this project does not run on. */
static const char *const ELSEWHERE[] = {"libedgetpu.1.dylib", "libedgetpu.1.0.dylib", "edgetpu.dll"};

EXPORT unsigned int la_version(unsigned int version) {
    return version < LAV_CURRENT ? version : LAV_CURRENT;
}

/* Whether `name` is STEM, or STEM and a version such as ".1" or ".1.0". */
static bool is_vendors(const char *name) {
    size_t stem = sizeof STEM - 1;
    if (strncmp(name, STEM, stem) != 0)
        return false;
    const char *version = name + stem;
    return *version == '\0' || (*version == '.' && version[strspn(version, ".0123456789")] == '\0');
}

static void say(const char *text) {
    ssize_t written = write(STDERR_FILENO, text, strlen(text));
    (void)written; /* a program without standard error goes without the hint */
}

static void refuse(const char *name) {
    say("darwinn: ");
    say(name);
    say(" is the Edge TPU library of another operating system; on Linux, load libedgetpu.so.1\n");
}

/* What the linker opens in place of `name`: at first what the program has asked for. */
EXPORT char *la_objsearch(const char *name, uintptr_t *cookie, unsigned int flag) {
    (void)cookie;
    if (flag != LA_SER_ORIG)
        return (char *)name;
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
    if (is_vendors(base))
        return (char *)DARWINN_LIBRARY;
    for (size_t k = 0; k < sizeof ELSEWHERE / sizeof *ELSEWHERE; k++)
        if (strcmp(base, ELSEWHERE[k]) == 0)
            refuse(base);
    return (char *)name;
}
