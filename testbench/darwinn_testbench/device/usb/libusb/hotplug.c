/* Hot-plug callbacks: a reset that makes another device of it is a device that left, and one that
   arrived. They run in whoever handles events. */
#include "stand_in.h"

static bool matches(const struct hotplug *hotplug, const libusb_device *device, int event) {
    const struct libusb_device_descriptor *is = &device->descriptor;
    return !hotplug->gone && hotplug->events & event &&
           (hotplug->vendor == MATCH_ANY || hotplug->vendor == is->idVendor) &&
           (hotplug->product == MATCH_ANY || hotplug->product == is->idProduct) &&
           (hotplug->class == MATCH_ANY || hotplug->class == is->bDeviceClass);
}

static void tell(libusb_context *context, libusb_device *device, int event) {
    for (struct hotplug *at = context->hotplugs; device && at; at = at->next)
        if (matches(at, device, event) && at->callback(context, device, event, at->user_data))
            at->gone = true;
}

static void sweep(libusb_context *context) {
    pthread_mutex_lock(&big);
    for (struct hotplug **at = &context->hotplugs; *at;) {
        struct hotplug *hotplug = *at;
        if (hotplug->gone) {
            *at = hotplug->next;
            free(hotplug);
        } else {
            at = &hotplug->next;
        }
    }
    pthread_mutex_unlock(&big);
}

/* By whoever handles events: see whether another device is there. */
void tell_hotplug(libusb_context *context) {
    if (!context->hotplugs) return;
    for (unsigned number = 0, count = 1;
         number < MAX_DEVICES && (number < count || context->told[number]); number++) {
        libusb_device *before = context->told[number];
        libusb_device *now = find_device(context, number, &count);
        if (now != before) {
            context->told[number] = now;
            tell(context, before, EVENT_LEFT);
            tell(context, now, EVENT_ARRIVED);
            libusb_unref_device(before);
        } else {
            libusb_unref_device(now);
        }
    }
    sweep(context);
}

void forget_hotplug(libusb_context *context) {
    for (struct hotplug *at = context->hotplugs; at; at = at->next) at->gone = true;
    sweep(context);
    for (int number = 0; number < MAX_DEVICES; number++) {
        libusb_unref_device(context->told[number]);
        context->told[number] = NULL;
    }
}

/* Know the devices that nothing has been told of yet. */
static void learn(libusb_context *context) {
    for (unsigned number = 0, count = 1; number < count; number++) {
        libusb_device *here = find_device(context, number, &count);
        if (context->told[number])
            libusb_unref_device(here);
        else
            context->told[number] = here;
    }
}

EXPORT int libusb_hotplug_register_callback(libusb_context *context, int events, int flags,
                                            int vendor, int product, int class,
                                            libusb_hotplug_callback_fn callback, void *user_data,
                                            int *number) {
    context = context_of(context);
    bool fits = vendor >= MATCH_ANY && vendor <= 0xFFFF && product >= MATCH_ANY &&
                product <= 0xFFFF && class >= MATCH_ANY && class <= 0xFF;
    if (!context || !callback || !fits || !events || events & ~(EVENT_ARRIVED | EVENT_LEFT) ||
        flags & ~HOTPLUG_ENUMERATE)
        return ERROR_INVALID_PARAM;
    struct hotplug *made = calloc(1, sizeof *made);
    if (!made) return ERROR_NO_MEM;
    *made = (struct hotplug){NULL,    0,     events,   vendor,    product,
                             class, callback, user_data, false};
    learn(context);
    pthread_mutex_lock(&big);
    made->number = ++context->last_hotplug;
    made->next = context->hotplugs;
    context->hotplugs = made;
    kick_pump();
    pthread_mutex_unlock(&big);
    if (number) *number = made->number;
    for (int at = 0; flags & HOTPLUG_ENUMERATE && at < MAX_DEVICES; at++) {
        libusb_device *device = context->told[at];
        if (device && matches(made, device, EVENT_ARRIVED) &&
            callback(context, device, EVENT_ARRIVED, user_data))
            made->gone = true;
    }
    return SUCCESS;
}

static struct hotplug *find(libusb_context *context, int number) {
    for (struct hotplug *at = context ? context->hotplugs : NULL; at; at = at->next)
        if (at->number == number && !at->gone) return at;
    return NULL;
}

EXPORT void libusb_hotplug_deregister_callback(libusb_context *context, int number) {
    context = context_of(context);
    pthread_mutex_lock(&big);
    struct hotplug *hotplug = find(context, number);
    if (hotplug) hotplug->gone = true;
    pthread_mutex_unlock(&big);
}

EXPORT void *libusb_hotplug_get_user_data(libusb_context *context, int number) {
    context = context_of(context);
    pthread_mutex_lock(&big);
    struct hotplug *hotplug = find(context, number);
    void *user_data = hotplug ? hotplug->user_data : NULL;
    pthread_mutex_unlock(&big);
    return user_data;
}
