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
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096ull
#define RING 0x01000000ull
#define STATUS 0x01001000ull
#define ENTRIES 256u
#define COHERENT_BYTES 0x4000ull
#define SIMPLE_ENTRIES 6144ull
#define FILES 5
#define BUFFERS 512

struct table { uint64_t table, size, host, device; };
struct table_flags { uint64_t table, size, host, device; uint32_t flags; };
struct coherent { uint64_t table, enable, size, address; };
struct event { uint64_t interrupt, descriptor; };

#define SET_EVENTFD _IOW(0xDC, 1, struct event)
#define PARTITION _IOW(0xDC, 7, struct table)
#define UNMAP _IOW(0xDC, 9, struct table)
#define COHERENT _IOWR(0xDC, 11, struct coherent)
#define MAP _IOW(0xDC, 12, struct table_flags)
#define PERFORMANCE _IOW(0x7F, 1, uint32_t)

static const uint32_t windows[] = {0x40000, 0x44000, 0x48000};
static const uint32_t core_units[] = {0x44018, 0x44158, 0x44198, 0x441D8, 0x44218};
static const uint32_t tile_units[] = {0x400C0, 0x40150, 0x40110, 0x40250, 0x40298,
                                      0x402E0, 0x40328, 0x40190, 0x401D0, 0x40210};
static const int vectors[] = {0, 4, 5, 6, 7, 8, 9, 10, 11, 12};
#define VECTORS (sizeof vectors / sizeof *vectors)

static int files[FILES];
static volatile uint8_t *mapped[3];
static uint8_t *coherent;
static int events[VECTORS];
static unsigned tail;
static uint64_t completed, counted;

static struct { uint64_t device; size_t size; uint8_t *pages; size_t length; } buffers[BUFFERS];

__attribute__((noreturn, format(printf, 2, 3)))
static void end(int status, const char *format, ...)
{
    va_list rest;
    va_start(rest, format);
    fprintf(stderr, "apex_client: ");
    vfprintf(stderr, format, rest);
    fprintf(stderr, "\n");
    exit(status);
}

static volatile uint64_t *at(uint32_t offset)
{
    for (int i = 0; i < 3; i++)
        if (offset >= windows[i] && offset < windows[i] + PAGE)
            return (volatile uint64_t *)(mapped[i] + (offset - windows[i]));
    end(1, "no window has register %x", offset);
}

static void put(uint32_t offset, uint64_t value)
{
    *at(offset) = value;
}

static void await(uint32_t offset, uint64_t value)
{
    uint64_t found = *at(offset);
    if (found != value)
        end(1, "register %x is %llx, not %llx", offset, (unsigned long long)found,
            (unsigned long long)value);
}

static void units(uint64_t command)
{
    for (size_t i = 0; i < sizeof core_units / sizeof *core_units; i++)
        put(core_units[i], command);
    put(0x48788, 0x7F);
    await(0x48788, 0x7F);
    for (size_t i = 0; i < sizeof tile_units / sizeof *tile_units; i++)
        put(tile_units[i], command);
}

static int map_at(uint64_t device, void *host, uint64_t size, uint32_t way)
{
    struct table_flags map = {0, size, (uint64_t)host, device, way << 1};
    return ioctl(files[2], MAP, &map);
}

static void open_files(void)
{
    files[FILES - 1] = -1;
    for (int i = 0; i < FILES; i++) {
        files[i] = open("/dev/apex_0", O_RDWR);
        if (files[i] < 0) {
            int error = errno;
            while (i--)
                close(files[i]);
            errno = error;
            return;
        }
    }
}

static void open_device(void)
{
    open_files();
    if (files[FILES - 1] < 0)
        return;
    uint32_t performance = 3;
    struct table partition = {0, SIMPLE_ENTRIES, 0, 0};
    struct coherent buffer = {0, 1, COHERENT_BYTES, 0};
    if (ioctl(files[0], PERFORMANCE, &performance))
        end(1, "performance: %m");
    for (int i = 0; i < 3; i++) {
        void *found = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, files[0], windows[i]);
        if (found == MAP_FAILED)
            end(1, "window %x: %m", windows[i]);
        mapped[i] = found;
    }
    await(0x486F0, 0);
    put(0x487A8, 0);
    if (ioctl(files[2], PARTITION, &partition))
        end(1, "partition: %m");
    await(0x48578, 16);
    if (ioctl(files[4], COHERENT, &buffer))
        end(1, "coherent buffer: %m");
    coherent = mmap(NULL, COHERENT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, files[4],
                    (off_t)buffer.address);
    if (coherent == MAP_FAILED)
        end(1, "coherent memory: %m");
    if (map_at(RING, coherent, PAGE, 0) || map_at(STATUS, coherent + PAGE, PAGE, 0))
        end(1, "ring: %m");
    put(0x48590, RING);
    put(0x48598, STATUS);
    put(0x485A0, ENTRIES);
    put(0x48568, 5);
    await(0x48570, 1);
    counted = *at(0x486D0) & 0xFFFF;
    tail = 0;
    completed = 0;
    units(1);
    put(0x486E8, 0);
    for (size_t i = 0; i < VECTORS; i++) {
        events[i] = eventfd(0, EFD_CLOEXEC);
        struct event event = {(uint64_t)vectors[i], (uint64_t)events[i]};
        if (ioctl(files[3], SET_EVENTFD, &event))
            end(1, "event %d: %m", vectors[i]);
    }
    put(0x486A0, 0xF);
    put(0x485C0, 1);
    put(0x486C0, 1);
    errno = 0;
}

static void drop_files(void)
{
    for (int i = 0; i < FILES; i++)
        close(files[i]);
}

static void close_device(void)
{
    struct table page = {0, PAGE, 0, RING};
    put(0x486D8, 1);
    await(0x486E0, 1);
    units(2);
    put(0x486C0, 0);
    put(0x485C0, 0);
    put(0x486A0, 0);
    put(0x48568, 0);
    await(0x48570, 0);
    put(0x485A8, 0);
    put(0x48590, 0);
    put(0x48598, 0);
    ioctl(files[2], UNMAP, &page);
    page.device = STATUS;
    ioctl(files[2], UNMAP, &page);
    for (int i = 0; i < 3; i++)
        munmap((void *)mapped[i], PAGE);
    munmap(coherent, COHERENT_BYTES);
    for (size_t i = 0; i < VECTORS; i++)
        close(events[i]);
    drop_files();
}

static int find(uint64_t device)
{
    for (int i = 0; i < BUFFERS; i++)
        if (buffers[i].pages && buffers[i].device == device)
            return i;
    end(1, "no buffer at %llx", (unsigned long long)device);
}

static void fill(int number, const char *path)
{
    uint8_t *data = buffers[number].pages + buffers[number].device % PAGE;
    size_t size = buffers[number].size;
    if (!strcmp(path, "-")) {
        for (size_t i = 0; i < size; i++)
            data[i] = (uint8_t)(i * 37 + 11);
        return;
    }
    FILE *file = fopen(path, "rb");
    if (!file || fread(data, 1, size, file) != size)
        end(1, "%s: %zu bytes: %m", path, size);
    fclose(file);
}

static void map_buffer(uint64_t device, size_t size, uint32_t way, const char *path)
{
    int number = 0;
    while (number < BUFFERS && buffers[number].pages)
        number++;
    size_t length = (device % PAGE + size + PAGE - 1) / PAGE * PAGE;
    uint8_t *pages = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (number == BUFFERS || pages == MAP_FAILED)
        end(1, "no memory for %zu bytes", size);
    buffers[number].device = device;
    buffers[number].size = size;
    buffers[number].pages = pages;
    buffers[number].length = length;
    fill(number, path);
    errno = 0;
    map_at(device - device % PAGE, pages, length, way);
}

static void unmap_buffer(uint64_t device)
{
    int number = find(device);
    struct table page = {0, buffers[number].length, 0, device - device % PAGE};
    errno = 0;
    ioctl(files[2], UNMAP, &page);
    if (buffers[number].pages != MAP_FAILED)
        munmap(buffers[number].pages, buffers[number].length);
    buffers[number].pages = NULL;
}

static void save(int number, const char *path)
{
    FILE *file = fopen(path, "wb");
    const uint8_t *data = buffers[number].pages + buffers[number].device % PAGE;
    if (!file || fwrite(data, 1, buffers[number].size, file) != buffers[number].size)
        end(1, "%s: %m", path);
    fclose(file);
}

static void queue(uint64_t device, uint32_t size)
{
    uint64_t *entry = (uint64_t *)(coherent + 16 * tail);
    entry[0] = device;
    entry[1] = size;
    tail = (tail + 1) % ENTRIES;
    put(0x485A8, tail);
}

static void take_event(size_t number)
{
    uint64_t count;
    if (read(events[number], &count, sizeof count) != sizeof count)
        end(1, "event %d: %m", vectors[number]);
    if (vectors[number] == 0)
        put(0x485C8, 0);
    if (vectors[number] == 4) {
        put(0x486A8, 0xE);
        uint64_t now = *at(0x486D0) & 0xFFFF;
        completed += (now - counted) & 0xFFFF;
        counted = now;
    }
    if (vectors[number] == 12)
        end(3, "fatal error %llx", (unsigned long long)*at(0x486F0));
}

static void wait_for(uint64_t count)
{
    volatile uint32_t *head = (volatile uint32_t *)(coherent + PAGE);
    struct pollfd polled[VECTORS];
    for (size_t i = 0; i < VECTORS; i++)
        polled[i] = (struct pollfd){events[i], POLLIN, 0};
    while (completed < count || *head != tail) {
        if (poll(polled, VECTORS, -1) < 0)
            end(1, "poll: %m");
        for (size_t i = 0; i < VECTORS; i++)
            if (polled[i].revents)
                take_event(i);
    }
}

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
        fill(find(first), words[2]);
    else if (!strcmp(name, "unmap"))
        unmap_buffer(first);
    else if (!strcmp(name, "free"))
        munmap(buffers[find(first)].pages, buffers[find(first)].length);
    else if (!strcmp(name, "queue"))
        queue(first, (uint32_t)second);
    else if (!strcmp(name, "wait"))
        wait_for(first);
    else if (!strcmp(name, "save"))
        save(find(first), words[2]);
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
