/* A client of /dev/apex_0, written from the contract: what a user-space driver does, and no more.
 *
 * apex_client SCRIPT: carries out the lines of SCRIPT, each a command with its words.
 *
 *   open                       the sequence of a driver that opens the device
 *   map ADDRESS SIZE WAY FILE  memory for SIZE bytes, from FILE (-: a pattern), at a device address
 *   fill ADDRESS FILE          other contents
 *   unmap ADDRESS
 *   free ADDRESS               gives the memory back, and leaves the device its mapping
 *   queue ADDRESS SIZE         a descriptor of instructions
 *   wait COUNT                 until COUNT requests have been completed since the device was opened
 *   save ADDRESS FILE          what the memory holds
 *   close                      the sequence of a driver that closes the device
 *   drop                       closes the files, and nothing else
 *   say TEXT, clock, sleep SECONDS, die
 *   pause                      until there is a line of input
 *   hammer ROUNDS              two threads write and read registers of one page
 *   instructions               registers by many kinds of instructions
 *   strings                    registers by an instruction that has no base register
 *   handler, crash             ends with 7 at a segmentation fault; has one
 *   fork                       a child, for which the device is gone
 *   list                       devices by their class
 *   expect ERRNO COMMAND       the rest of the line fails with this number
 *
 * Ends with 0, with 1 where something is not as it should be, with 3 at a fatal error of the device.
 */
#define _GNU_SOURCE
#include "driver.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void *hammer_one(void *argument)
{
    const uint64_t *job = argument;
    uint32_t offset = (uint32_t)job[0];
    for (uint64_t i = 1; i <= job[1]; i++) {
        put(offset, i);
        await(offset, i);
    }
    return NULL;
}

static void hammer(uint64_t rounds)
{
    uint64_t first[] = {0x487A8, rounds}, second[] = {0x486E8, rounds};
    pthread_t thread;
    if (pthread_create(&thread, NULL, hammer_one, first))
        end(1, "thread");
    hammer_one(second);
    pthread_join(thread, NULL);
}

static void check(const char *what, uint64_t found, uint64_t value)
{
    if (found != value)
        end(1, "%s: %llx, not %llx", what, (unsigned long long)found, (unsigned long long)value);
}

static void instructions(void)
{
    volatile uint64_t *place = at(0x487A8);
    uint64_t value = 0x1122334455667788, found, index = 0;
    uint32_t low;
    unsigned char zero;
    __asm__ volatile("movq %1, %0" : "=m"(*place) : "r"(value));
    __asm__ volatile("movq %1, %0" : "=r"(found) : "m"(*place));
    check("mov", found, value);
    __asm__ volatile("movq (%0), %0" : "=r"(found) : "0"(place));
    check("mov of its own base", found, value);
    __asm__ volatile("movl %1, %0" : "=r"(low) : "m"(*place));
    check("mov of 32 bits", low, 0x55667788);
    __asm__ volatile("movzbl 7(%1), %0" : "=r"(low) : "r"(place));
    check("movzx", low, 0x11);
    __asm__ volatile("movq -8(%1,%2,8), %0" : "=r"(found) : "r"(place), "r"(index + 1));
    check("mov with an index", found, value);
    __asm__ volatile("movq $-5, %0" : "=m"(*place));
    check("mov of an immediate", *place, (uint64_t)-5);
    __asm__ volatile("cmpq $-5, %1; sete %0" : "=q"(zero) : "m"(*place) : "cc");
    check("cmp", zero, 1);
    __asm__ volatile("addq $7, %0" : "+m"(*place) : : "cc");
    check("add", *place, 2);
    __asm__ volatile("xchgq %1, %0" : "+m"(*place), "+r"(value));
    check("xchg, old", value, 2);
    check("xchg, new", *place, 0x1122334455667788);
    __asm__ volatile("movl %1, %0" : "=m"(*place) : "r"(0x99AABBCC));
    check("mov to the lower half", *place, 0x1122334499AABBCC);
    __asm__ volatile("movq %1, %%xmm0; movq %%xmm0, %0" : "=r"(found) : "m"(*place) : "xmm0");
    check("movq", found, 0x1122334499AABBCC);
    __asm__ volatile("movq %1, %%xmm0; movq %%xmm0, %0" : "=m"(*place) : "r"(value) : "xmm0");
    check("movq to a register of the device", *place, 2);
    register volatile uint64_t *high __asm__("r13") = place;
    __asm__ volatile("movq $3, 0(%0)" : : "r"(high) : "memory");
    check("a high base", *place, 3);
    put(0x487A8, 0);
}

static void strings(void)
{
    uint64_t value;
    void *from = (void *)at(0x487A8), *to = &value;
    size_t count = 1;
    __asm__ volatile("rep movsq" : "+S"(from), "+D"(to), "+c"(count) : : "memory");
}

/* vmovdqu8 [rax]{k1}, zmm16: what memset of a C library may store 8 bytes with. */
static void masked(void)
{
    __asm__ volatile("mov $255, %%ecx\n\tkmovq %%rcx, %%k1\n\t"
                     ".byte 0x62, 0xe1, 0x7f, 0x49, 0x7f, 0x00"
                     :
                     : "a"(at(0x487A8))
                     : "rcx", "memory");
}

static void on_crash(int number)
{
    (void)number;
    _exit(7);
}

static __attribute__((noinline)) void crash(void *address)
{
    __asm__("" : "+r"(address));
    *(volatile int *)address = 0;
}

static void have_child(void)
{
    int status;
    pid_t child = fork();
    if (!child)
        _exit(*at(0x48578) == UINT64_MAX ? 0 : 1);
    if (waitpid(child, &status, 0) != child || status)
        end(1, "the child ends with %x", status);
    await(0x48578, 16);
}

static void list(void)
{
    struct stat status;
    DIR *folder = opendir("/sys/class/apex");
    struct dirent *entry;
    if (!folder)
        end(1, "/sys/class/apex: %m");
    while ((entry = readdir(folder)))
        if (!strncmp(entry->d_name, "apex", 4))
            printf("%s\n", entry->d_name);
    closedir(folder);
    if (stat("/dev/apex_0", &status) || !S_ISCHR(status.st_mode))
        end(1, "/dev/apex_0 is no device");
}

static void wait_for_line(void)
{
    int octet;
    do
        octet = getchar();
    while (octet != '\n' && octet != EOF);
}

static void show_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    printf("%ld.%09ld\n", (long)now.tv_sec, now.tv_nsec);
}

static void carry_out(char *line)
{
    char *words[6] = {"", "", "", "", "", ""}, *rest = line;
    for (int i = 0; i < 6 && (words[i] = strsep(&rest, " ")); i++)
        ;
    const char *name = words[0];
    uint64_t first = words[1] ? strtoull(words[1], NULL, 0) : 0;
    uint64_t second = words[1] && words[2] ? strtoull(words[2], NULL, 0) : 0;
    errno = 0;
    if (!strcmp(name, "open"))
        open_device();
    else if (!strcmp(name, "map"))
        map_buffer(first, second, (uint32_t)atoi(words[3]), words[4]);
    else if (!strcmp(name, "fill"))
        fill_buffer(first, words[2]);
    else if (!strcmp(name, "unmap"))
        unmap_buffer(first);
    else if (!strcmp(name, "free"))
        free_buffer(first);
    else if (!strcmp(name, "queue"))
        queue(first, (uint32_t)second);
    else if (!strcmp(name, "wait"))
        wait_for(first);
    else if (!strcmp(name, "save"))
        save_buffer(first, words[2]);
    else if (!strcmp(name, "close"))
        close_device();
    else if (!strcmp(name, "drop"))
        drop_files();
    else if (!strcmp(name, "say"))
        printf("%s\n", words[1]);
    else if (!strcmp(name, "clock"))
        show_clock();
    else if (!strcmp(name, "pause"))
        wait_for_line();
    else if (!strcmp(name, "sleep"))
        usleep((useconds_t)(atof(words[1]) * 1e6));
    else if (!strcmp(name, "die"))
        raise(SIGKILL);
    else if (!strcmp(name, "hammer"))
        hammer(first);
    else if (!strcmp(name, "instructions"))
        instructions();
    else if (!strcmp(name, "masked"))
        masked();
    else if (!strcmp(name, "strings"))
        strings();
    else if (!strcmp(name, "handler"))
        signal(SIGSEGV, on_crash);
    else if (!strcmp(name, "crash"))
        crash((void *)8);
    else if (!strcmp(name, "fork"))
        have_child();
    else if (!strcmp(name, "list"))
        list();
    else
        end(1, "no command %s", name);
}

int main(int count, char **arguments)
{
    FILE *script = count == 2 ? fopen(arguments[1], "r") : NULL;
    char line[4096];
    if (!script)
        end(1, "usage: apex_client SCRIPT");
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (fgets(line, sizeof line, script)) {
        int expected = 0, used = 0;
        line[strcspn(line, "\n")] = 0;
        sscanf(line, "expect %d %n", &expected, &used);
        char copy[4096];
        strcpy(copy, line + used);
        carry_out(line + used);
        if (errno != expected && (expected || !strncmp(copy, "open", 4) || !strncmp(copy, "map", 3)))
            end(1, "%s: error %d, not %d", copy, errno, expected);
    }
    return 0;
}
