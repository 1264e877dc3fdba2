// Programmer faults: a broken invariant ends the program with the place and a sentence.
// No file or command line that a user writes may make such a check fail.
#pragma once

#include <string_view>

namespace bubblesim {

/// Prints "file:line: CHECK failed: condition: message" to stderr and aborts.
[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               std::string_view message) noexcept;

}  // namespace bubblesim

#define BUBBLESIM_CHECK(condition, message)                                       \
  do {                                                                            \
    if (!(condition)) [[unlikely]]                                                \
      ::bubblesim::check_failed(__FILE__, __LINE__, #condition, (message));       \
  } while (false)

#ifdef NDEBUG
#define BUBBLESIM_DCHECK(condition, message) \
  do {                                       \
  } while (false)
#else
#define BUBBLESIM_DCHECK(condition, message) BUBBLESIM_CHECK(condition, message)
#endif
