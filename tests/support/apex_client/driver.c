/* The device as a user-space driver has it: open and close, memory, the ring, interrupts. */
#define _GNU_SOURCE
#include "driver.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

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

void end(int status, const char *format, ...)
{
    va_list rest;
    va_start(rest, format);
    fprintf(stderr, "apex_client: ");
    vfprintf(stderr, format, rest);
    fprintf(stderr, "\n");
    exit(status);
}

volatile uint64_t *at(uint32_t offset)
{
    for (int i = 0; i < 3; i++)
        if (offset >= windows[i] && offset < windows[i] + PAGE)
            return (volatile uint64_t *)(mapped[i] + (offset - windows[i]));
    end(1, "no window has register %x", offset);
}

void put(uint32_t offset, uint64_t value)
{
    *at(offset) = value;
}

void await(uint32_t offset, uint64_t value)
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

void open_device(void)
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

void drop_files(void)
{
    for (int i = 0; i < FILES; i++)
        close(files[i]);
}

void close_device(void)
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

void map_buffer(uint64_t device, size_t size, uint32_t way, const char *path)
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

void unmap_buffer(uint64_t device)
{
    int number = find(device);
    struct table page = {0, buffers[number].length, 0, device - device % PAGE};
    errno = 0;
    ioctl(files[2], UNMAP, &page);
    if (buffers[number].pages != MAP_FAILED)
        munmap(buffers[number].pages, buffers[number].length);
    buffers[number].pages = NULL;
}

void fill_buffer(uint64_t device, const char *path)
{
    fill(find(device), path);
}

void free_buffer(uint64_t device)
{
    int number = find(device);
    munmap(buffers[number].pages, buffers[number].length);
}

void save_buffer(uint64_t device, const char *path)
{
    int number = find(device);
    FILE *file = fopen(path, "wb");
    const uint8_t *data = buffers[number].pages + buffers[number].device % PAGE;
    if (!file || fwrite(data, 1, buffers[number].size, file) != buffers[number].size)
        end(1, "%s: %m", path);
    fclose(file);
}

void queue(uint64_t device, uint32_t size)
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

void wait_for(uint64_t count)
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
