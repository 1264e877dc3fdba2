// Runs the program as a shell does, from a folder that looks like the source root but may be
// written to.
#pragma once

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "sim/base/json.hpp"

namespace bubblesim::app_test {

struct Outcome {
  int code = -1;    ///< exit code; 128 + n: ended by signal n
  std::string out;
  std::string err;
};

/// A folder of its own with links to the source tree's folders (but build and out), so that
/// commands of documents run as written there. Removed at the end.
class Workplace {
 public:
  Workplace();
  ~Workplace();
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;

  /// "inspect traces/samples/training --json": the words after "bubblesim", as a shell reads them.
  [[nodiscard]] Outcome bubblesim(const std::string& arguments) const;
  /// A whole line; `bubblesim` is found first. No terminal; no input.
  [[nodiscard]] Outcome shell(const std::string& line) const;

  [[nodiscard]] std::string path(const std::string& name) const { return folder_ + "/" + name; }
  [[nodiscard]] std::string read(const std::string& name) const;
  void write(const std::string& name, const std::string& text) const;

 private:
  std::string folder_;
};

/// Each test has a workplace of its own.
class AtWorkplace : public testing::Test {
 protected:
  const Workplace place;
};

/// A workplace in which runs of configs/runs and configs/sweeps are cut to 900 ms, six iterations
/// of the sample job instead of 22: enough for everything that tables, files and exit codes show.
class ShortWorkplace : public Workplace {
 public:
  ShortWorkplace();

  /// Cuts the lengths and the budget in a command line likewise.
  [[nodiscard]] static std::string short_line(std::string line);
};

class AtShortWorkplace : public testing::Test {
 protected:
  const ShortWorkplace place;
};

/// Expects exit code 0 and nothing on standard error.
Outcome succeed(const Workplace& place, const std::string& arguments);

/// Expects exit code 2, nothing on standard output, and this on standard error.
void expect_fault(const Workplace& place, const std::string& arguments,
                  const testing::Matcher<const std::string&>& message);
/// The same in a new workplace.
void expect_fault(const std::string& arguments,
                  const testing::Matcher<const std::string&>& message);

/// Null if the text is no JSON.
[[nodiscard]] Json parse_json(const std::string& text);

/// The lines of a text, without their ends.
[[nodiscard]] std::vector<std::string> lines_of(const std::string& text);

/// The rows of a CSV text after RFC 4180.
[[nodiscard]] std::vector<std::vector<std::string>> csv_of(const std::string& text);

}  // namespace bubblesim::app_test
