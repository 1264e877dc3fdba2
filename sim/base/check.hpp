// Programmer faults: a broken invariant ends the program with the place and a sentence. No user's
// file or command line may cause one.
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
