// What Verilator would print, such as the message of a failed assertion, is kept for whoever drives the
// simulation. The runtime of a library is compiled with this in front (`library` of darwinn_rtl/build.py).

#pragma once

#include <cstdarg>
#include <cstdio>
#include <string>

#define VL_PRINTF keep_message

// The last line, without its end. Each library has its own.
__attribute__((visibility("hidden"))) inline std::string& last_message() {
    static std::string text;
    return text;
}

__attribute__((visibility("hidden"))) inline int keep_message(const char* format, ...) {
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    last_message() = line;
    while (!last_message().empty() && last_message().back() == '\n') last_message().pop_back();
    return length;
}
