/* Pages of registers: an access faults, and is carried out by the device.
 *
 * The faulting instruction runs on a copy: its base register is moved, for this one instruction, so
 * that it addresses a cell of the thread's own, and the processor steps over it. The page itself
 * stays closed, so that no access of another thread passes unseen.
 */
#define _GNU_SOURCE
#include "shim.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define WINDOWS (16 * MAX_DEVICES)
#define TRAP_FLAG 0x100
#define WRITE_ACCESS 2

static const uint32_t mappable[] = REGISTER_PAGES;

static struct {
    _Atomic uintptr_t begin;
    struct device *device;
    uint32_t offset;
} windows[WINDOWS];

static struct sigaction previous[2];
static bool installed;

static __thread __attribute__((tls_model("initial-exec"))) struct {
    bool active, writes;
    struct device *device;
    uint32_t offset;
    int base;
    greg_t moved, kept;
    uint64_t cell[8];
} step;

static const int general[16] = {
    REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
    REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15,
};

/* What has to be known of an instruction: its base register, and whether it stores 64 bits. */
struct decoded {
    int base;
    bool stores;
};

static bool is_prefix(uint8_t octet)
{
    return octet == 0x66 || octet == 0xF0 || octet == 0xF2 || octet == 0xF3 || octet == 0x2E ||
           octet == 0x36 || octet == 0x3E || octet == 0x26 || octet == 0x64 || octet == 0x65;
}

/* Instructions without a ModRM byte that address memory: moves to fixed addresses, strings. */
static bool has_no_modrm(uint8_t opcode)
{
    return (opcode >= 0xA0 && opcode <= 0xA7) || (opcode >= 0xAA && opcode <= 0xAF);
}

/* Whether the instruction also takes the value of the register in its ModRM byte. */
static bool takes_register(uint8_t opcode)
{
    return opcode < 0x40 || (opcode >= 0x84 && opcode <= 0x8B);
}

static bool decode(const uint8_t *at, struct decoded *result)
{
    unsigned rex = 0;
    bool extended = false;
    while (is_prefix(*at))
        at++;
    if ((*at & 0xF0) == 0x40)
        rex = *at++;
    if (*at == 0xC5) { /* VEX in two bytes; its bits are inverted */
        extended = true;
        at += 2;
    } else if (*at == 0xC4) {
        extended = true;
        rex = (~at[1] >> 5 & 7) | (at[2] & 0x80) >> 4;
        at += 3;
    } else if (*at == 0x0F) {
        extended = true;
        at++;
        if (*at == 0x38 || *at == 0x3A)
            at++;
    } else if (*at == 0x62 || *at == 0x67 || has_no_modrm(*at)) {
        return false;
    }
    uint8_t opcode = *at++, modrm = *at++;
    unsigned mode = modrm >> 6, low = modrm & 7, high = (rex & 1) << 3;
    bool direct = mode == 3, relative = mode == 0 && low == 5;
    if (direct || relative)
        return false;
    unsigned base = low | high;
    if (low == 4) { /* a SIB byte */
        unsigned index = (*at >> 3 & 7) | (rex & 2) << 2;
        base = (*at & 7) | high;
        if ((mode == 0 && (*at & 7) == 5) || index == base)
            return false;
    }
    if (base == 4) /* the stack pointer */
        return false;
    unsigned other = (modrm >> 3 & 7) | (rex & 4) << 1;
    if (!extended && takes_register(opcode) && opcode != 0x8B && other == base)
        return false;
    result->base = general[base];
    result->stores = !extended && (opcode == 0x89 || opcode == 0xC7) && (rex & 8);
    return true;
}

static struct device *find_window(uintptr_t address, uint32_t *offset)
{
    for (int i = 0; i < WINDOWS; i++) {
        uintptr_t begin = atomic_load(&windows[i].begin);
        if (begin && address - begin < PAGE) {
            *offset = windows[i].offset + (uint32_t)(address - begin);
            return windows[i].device;
        }
    }
    return NULL;
}

/* A signal that is none of ours goes to whom the program had it go to. */
static void pass_on(int number, siginfo_t *info, void *context)
{
    struct sigaction action = previous[number == SIGTRAP];
    if (action.sa_flags & SA_SIGINFO) {
        action.sa_sigaction(number, info, context);
    } else if (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN) {
        action.sa_handler(number);
    } else { /* the instruction is run again, and ends the program */
        struct sigaction fatal = {.sa_handler = SIG_DFL};
        real_sigaction(number, &fatal, NULL);
    }
}

static void refuse(const struct device *device, const uint8_t *instruction)
{
    char text[224];
    int used = snprintf(text, sizeof text, "registers cannot be accessed by the instruction");
    for (int i = 0; i < 8; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, " %02x", instruction[i]);
    if (*instruction == 0x62)
        snprintf(text + used, sizeof text - (size_t)used,
                 " (AVX-512); use one plain access of 8 bytes: in Python "
                 "memoryview(registers).cast('Q')[offset // 8]");
    complain(device, text);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    uintptr_t address = (uintptr_t)info->si_addr;
    const uint8_t *instruction = (const uint8_t *)registers[REG_RIP];
    struct decoded decoded;
    uint32_t offset;
    int saved = errno;
    struct device *device = find_window(address, &offset);
    if (!device) {
        pass_on(number, info, context);
        return;
    }
    if (!decode(instruction, &decoded)) {
        refuse(device, instruction);
        pass_on(number, info, context);
        return;
    }
    step.active = true;
    step.writes = registers[REG_ERR] & WRITE_ACCESS;
    step.device = device;
    step.offset = offset & ~7u;
    step.base = decoded.base;
    memset(step.cell, 0, sizeof step.cell);
    if (!(step.writes && decoded.stores))
        step.cell[0] = register_read(device, step.offset);
    step.kept = registers[step.base];
    step.moved = step.kept + (greg_t)((uintptr_t)step.cell + (offset & 7) - address);
    registers[step.base] = step.moved;
    registers[REG_EFL] |= TRAP_FLAG;
    errno = saved;
}

static void on_step(int number, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    int saved = errno;
    if (!step.active) {
        pass_on(number, info, context);
        return;
    }
    step.active = false;
    registers[REG_EFL] &= ~TRAP_FLAG;
    if (registers[step.base] == step.moved) /* else it was loaded */
        registers[step.base] = step.kept;
    if (step.writes)
        register_write(step.device, step.offset, step.cell[0]);
    errno = saved;
}

static void install(void)
{
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
    if (installed)
        return;
    action.sa_sigaction = on_fault;
    real_sigaction(SIGSEGV, &action, &previous[0]);
    action.sa_sigaction = on_step;
    real_sigaction(SIGTRAP, &action, &previous[1]);
    installed = true;
}

bool takes_signal(int number, const struct sigaction *action, struct sigaction *before)
{
    if (!installed || (number != SIGSEGV && number != SIGTRAP))
        return false;
    struct sigaction *kept = &previous[number == SIGTRAP];
    struct sigaction old = *kept;
    if (action)
        *kept = *action;
    if (before)
        *before = old;
    return true;
}

static bool is_mappable(off_t offset, size_t size)
{
    for (size_t i = 0; i < sizeof mappable / sizeof *mappable; i++)
        if (offset == mappable[i] && size <= PAGE)
            return true;
    return false;
}

static void *map_registers(struct device *device, void *address, size_t size, int flags,
                           off_t offset)
{
    int kind = MAP_PRIVATE | MAP_ANONYMOUS | (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE));
    for (int i = 0; i < WINDOWS; i++) {
        if (atomic_load(&windows[i].begin))
            continue;
        void *found = real_mmap(address, size, PROT_NONE, kind, -1, 0);
        if (found == MAP_FAILED)
            return found;
        install();
        windows[i].device = device;
        windows[i].offset = (uint32_t)offset;
        atomic_store(&windows[i].begin, (uintptr_t)found);
        return found;
    }
    errno = ENOMEM;
    return MAP_FAILED;
}

void *map_window(struct device *device, void *address, size_t size, int protection, int flags,
                 off_t offset)
{
    uint64_t within = (uint64_t)offset - device->coherent.address;
    if (!size || !(flags & MAP_SHARED)) {
        errno = EINVAL;
        return MAP_FAILED;
    }
    if (is_mappable(offset, size))
        return map_registers(device, address, size, flags, offset);
    if (device->coherent.descriptor >= 0 && within < device->coherent.size &&
        size <= device->coherent.size - within) {
        void *found = real_mmap(address, size, protection, flags, device->coherent.descriptor,
                                (off_t)within);
        if (found != MAP_FAILED)
            device->coherent.pages = (uintptr_t)found - within;
        return found;
    }
    errno = EINVAL;
    return MAP_FAILED;
}

void forget_windows(uintptr_t begin, size_t size)
{
    for (int i = 0; i < WINDOWS; i++) {
        uintptr_t window = atomic_load(&windows[i].begin);
        if (window && window < begin + size && begin < window + PAGE)
            atomic_store(&windows[i].begin, 0);
    }
}

void keep_coherent(struct device *device, uint64_t address, size_t size, int descriptor)
{
    drop_coherent(device);
    device->coherent.address = address;
    device->coherent.size = size;
    device->coherent.descriptor = descriptor;
}

uint64_t coherent_bus_address(const struct device *device, uint64_t address)
{
    uint64_t within = address - device->coherent.pages;
    bool is_there = device->coherent.pages && within < device->coherent.size;
    return is_there ? device->coherent.address + within : 0;
}

void drop_coherent(struct device *device)
{
    device->coherent.pages = 0;
    if (device->coherent.descriptor >= 0)
        real_close(device->coherent.descriptor);
    device->coherent.descriptor = -1;
}
