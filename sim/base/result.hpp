// Input faults as values. A fault names the file, the place in it, the value found and the values
// allowed; no exception crosses a room. Programmer faults use check.hpp instead.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

namespace bubblesim {

/// One fault of the input (config, trace, command line, environment).
struct Error {
  std::string file;     ///< path as the user gave it; may be empty
  std::string place;    ///< JSON pointer, "line 12" or "byte 4096"; may be empty
  std::string message;  ///< the value found, the values expected, the nearest valid name

  /// "file: place: message", without empty parts.
  [[nodiscard]] std::string text() const;
  friend bool operator==(const Error&, const Error&) = default;
};

/// All faults of one input; the error of a CheckedResult is never empty. A single fault converts to
/// a list of one, so that a function can return a Result's fault as a CheckedResult's.
class Errors : public std::vector<Error> {
 public:
  using std::vector<Error>::vector;
  Errors(Error fault) : std::vector<Error>{std::move(fault)} {}

  void add(const Errors& more) { insert(end(), more.begin(), more.end()); }
};

template <class T>
using Result = tl::expected<T, Error>;

/// The value, or all faults at once: for readers that go on after the first fault.
template <class T>
using CheckedResult = tl::expected<T, Errors>;

/// The value, or a default one whose faults join `errors`: for readers of several files.
template <class T>
[[nodiscard]] T take(CheckedResult<T> found, Errors& errors) {
  if (found) return *std::move(found);
  errors.add(found.error());
  return {};
}

/// `return fail("message")`, `return fail("job.json", "/jobs/0", "message")`.
[[nodiscard]] inline tl::unexpected<Error> fail(std::string message) {
  return tl::unexpected<Error>(Error{{}, {}, std::move(message)});
}
[[nodiscard]] inline tl::unexpected<Error> fail(std::string file, std::string place,
                                                std::string message) {
  return tl::unexpected<Error>(Error{std::move(file), std::move(place), std::move(message)});
}

}  // namespace bubblesim

/// Returns the error of `expr` (a Result) from the enclosing function, if it holds one.
#define BUBBLESIM_RETURN_IF_ERROR(expr)                                        \
  do {                                                                         \
    if (auto bubblesim_status_ = (expr); !bubblesim_status_) {                 \
      return ::tl::make_unexpected(std::move(bubblesim_status_).error());      \
    }                                                                          \
  } while (false)

#define BUBBLESIM_CONCAT_INNER_(a, b) a##b
#define BUBBLESIM_CONCAT_(a, b) BUBBLESIM_CONCAT_INNER_(a, b)
#define BUBBLESIM_ASSIGN_OR_RETURN_IMPL_(result, declaration, expr)            \
  auto result = (expr);                                                        \
  if (!result) return ::tl::make_unexpected(std::move(result).error());        \
  declaration = std::move(*result)

/// `BUBBLESIM_ASSIGN_OR_RETURN(auto trace, read_trace(path));`
#define BUBBLESIM_ASSIGN_OR_RETURN(declaration, expr)                                     \
  BUBBLESIM_ASSIGN_OR_RETURN_IMPL_(BUBBLESIM_CONCAT_(bubblesim_result_, __LINE__), declaration, \
                                   expr)
