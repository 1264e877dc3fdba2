// Runs the program as a shell does, from a folder that looks like the source root but may be
// written to.
#pragma once

#include <gmock/gmock.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/json.hpp"

namespace bubblesim::app_test {

namespace fs = std::filesystem;

struct Outcome {
  int code = -1;    ///< exit code; 128 + n: ended by signal n
  std::string out;
  std::string err;
};

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

inline int exit_code(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/// A folder of its own with links to the source tree's folders (but build and out), so that
/// commands of documents run as written there. Removed at the end.
class Workplace {
 public:
  Workplace() {
    std::string name = (fs::temp_directory_path() / "bubblesim-app-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    folder_ = name;
    for (const auto& entry : fs::directory_iterator(BUBBLESIM_SOURCE_DIR)) {
      const std::string own = entry.path().filename().string();
      if (own == "build" || own == "out" || own.starts_with('.')) continue;
      fs::create_symlink(entry.path(), path(own));
    }
    fs::create_directory(path(".bin"));
    fs::create_symlink(BUBBLESIM_BINARY, path(".bin/bubblesim"));
  }
  ~Workplace() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;

  /// "inspect traces/samples/training --json": the words after "bubblesim", as a shell reads them.
  [[nodiscard]] Outcome bubblesim(const std::string& arguments) const {
    return shell("bubblesim " + arguments);
  }
  /// A whole line; `bubblesim` is found first. No terminal; no input.
  [[nodiscard]] Outcome shell(const std::string& line) const {
    const std::string command = "cd '" + folder_ + "' && PATH=\"$PWD/.bin:$PATH\" && { " + line +
                                "\n} >.out 2>.err </dev/null";
    const int code = exit_code(std::system(command.c_str()));
    return {code, read(".out"), read(".err")};
  }

  [[nodiscard]] std::string path(const std::string& name) const { return folder_ + "/" + name; }
  [[nodiscard]] std::string read(const std::string& name) const { return read_file(path(name)); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
  }

 private:
  std::string folder_;
};

/// Puts a word where one stands, after each place of `before`, up to `end` or the text's end.
inline std::string with_word(std::string text, const std::string& before, char end,
                             const std::string& word) {
  for (std::size_t at = text.find(before); at != std::string::npos; at = text.find(before, at)) {
    at += before.size();
    text.replace(at, std::min(text.find(end, at), text.size()) - at, word);
  }
  return text;
}

/// Each test has a workplace of its own.
class AtWorkplace : public testing::Test {
 protected:
  const Workplace place;
};

/// A workplace in which runs of configs/runs and configs/sweeps are cut to 900 ms, six iterations
/// of the sample job instead of 22: enough for everything that tables, files and exit codes show.
class ShortWorkplace : public Workplace {
 public:
  ShortWorkplace() {
    fs::remove(path("configs"));
    fs::copy(BUBBLESIM_SOURCE_DIR "/configs", path("configs"), fs::copy_options::recursive);
    for (const char* folder : {"configs/runs", "configs/sweeps"}) {
      for (const auto& entry : fs::directory_iterator(path(folder))) {
        if (entry.path().extension() != ".json") continue;
        const std::string name = folder + ("/" + entry.path().filename().string());
        write(name, with_word(read(name), "duration\": \"", '"', "900ms"));
      }
    }
    std::string question = read("configs/advise/example.json");  // is as long as its base
    const std::string base = "\"base\": ";
    question.replace(question.find(base), base.size(),
                     R"("set": {"/duration": "300ms", "/warmup": "100ms"}, )" + base);
    write("configs/advise/example.json", question);
  }

  /// Cuts the lengths and the budget in a command line likewise.
  [[nodiscard]] static std::string short_line(std::string line) {
    line = with_word(std::move(line), "--duration ", ' ', "600ms");
    line = with_word(std::move(line), "--warmup ", ' ', "200ms");
    return with_word(std::move(line), "--budget ", ' ', "100ms");
  }
};

class AtShortWorkplace : public testing::Test {
 protected:
  const ShortWorkplace place;
};

/// Expects exit code 0 and nothing on standard error.
inline Outcome succeed(const Workplace& place, const std::string& arguments) {
  Outcome outcome = place.bubblesim(arguments);
  EXPECT_EQ(outcome.code, 0) << arguments << "\n" << outcome.err;
  EXPECT_EQ(outcome.err, "") << arguments << ": standard error is for faults";
  return outcome;
}

/// Expects exit code 2, nothing on standard output, and this on standard error.
inline void expect_fault(const Workplace& place, const std::string& arguments,
                         const testing::Matcher<const std::string&>& message) {
  const Outcome outcome = place.bubblesim(arguments);
  EXPECT_EQ(outcome.code, 2) << arguments;
  EXPECT_EQ(outcome.out, "") << arguments;
  EXPECT_THAT(outcome.err, message) << arguments;
}

/// The same in a new workplace.
inline void expect_fault(const std::string& arguments,
                         const testing::Matcher<const std::string&>& message) {
  expect_fault(Workplace(), arguments, message);
}

/// Null if the text is no JSON.
inline Json parse_json(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  return json.is_discarded() ? Json() : json;
}

/// What the command prints, as JSON.
inline Json json_of(const Workplace& place, const std::string& arguments) {
  return parse_json(succeed(place, arguments).out);
}

/// The lines of a text, without their ends.
inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// The rows of a CSV text after RFC 4180.
inline std::vector<std::vector<std::string>> csv_of(const std::string& text) {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> row(1);
  bool quoted = false;
  for (const char letter : text) {
    if (letter == '"') {
      quoted = !quoted;
    } else if (letter == ',' && !quoted) {
      row.emplace_back();
    } else if (letter == '\n' && !quoted) {
      rows.push_back(std::move(row));
      row.assign(1, {});
    } else {
      row.back() += letter;
    }
  }
  return rows;
}

}  // namespace bubblesim::app_test
