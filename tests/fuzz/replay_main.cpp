// Runs a fuzz target without libFuzzer: over every given file, and over mutations of the files
// that are the same every time.
//
//   NAME_smoke [--mutations N] [--seed S] [--keep FILE] FILE_OR_FOLDER...
//
// --keep writes each input to FILE before it runs: after a crash, FILE is the culprit. Exit 0:
// nothing went wrong; 2: bad arguments. What goes wrong otherwise is the target's abort.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::uint64_t mutations = 0;
  std::uint64_t seed = 1;
  std::string keep;
  std::vector<fs::path> files;
};

// Texts that readers treat in a special way, for JSON, numbers and binary formats.
constexpr std::string_view kTokens[] = {
    "{", "}", "[", "]", ",", ":", "\"", "\\", "null", "true", "-", "0", "1e999", "-1", "NaN",
    "18446744073709551616", "9223372036854775807", "\xff\xff\xff\xff", "\\u0000", "\\ud800",
    "\n", " ", "\"ts\":", "{\"a\":[", "\xEF\xBB\xBF"};

// mt19937_64 and % are the same everywhere; the standard's distributions are not.
class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  std::string mutate(const std::vector<std::string>& seeds) {
    std::string text = seeds[below(seeds.size())];
    const std::size_t edits = 1 + below(4);
    for (std::size_t i = 0; i < edits; ++i) edit(text, seeds);
    return text;
  }

 private:
  std::size_t below(std::size_t limit) {
    return limit == 0 ? 0 : static_cast<std::size_t>(random_() % limit);
  }

  void edit(std::string& text, const std::vector<std::string>& seeds) {
    const std::size_t at = below(text.size() + 1);
    const std::size_t length = below(std::min<std::size_t>(text.size() - at, 64) + 1);
    switch (below(8)) {
      case 0: text.resize(at); break;
      case 1: text.erase(at, length); break;
      case 2: text.insert(at, text.substr(at, length)); break;
      case 3: text.insert(at, kTokens[below(std::size(kTokens))]); break;
      case 4: text.replace(at, length, kTokens[below(std::size(kTokens))]); break;
      case 5: splice(text, at, seeds[below(seeds.size())]); break;
      case 6: set_byte(text, at, static_cast<char>(below(256))); break;
      default: set_byte(text, at, at < text.size() ? flipped(text[at]) : '\0'); break;
    }
  }

  void splice(std::string& text, std::size_t at, const std::string& other) {
    text = text.substr(0, at) + other.substr(below(other.size() + 1));
  }
  static void set_byte(std::string& text, std::size_t at, char byte) {
    if (at < text.size()) text[at] = byte;
  }
  char flipped(char byte) { return static_cast<char>(byte ^ (1 << below(8))); }

  std::mt19937_64 random_;
};

void add_files(const fs::path& path, std::vector<fs::path>& out) {
  if (!fs::is_directory(path)) {
    out.push_back(path);
    return;
  }
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) out.push_back(entry.path());
  }
}

bool parse(int argc, char** argv, Arguments& out) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (!word.starts_with("--")) {
      add_files(word, out.files);
      continue;
    }
    if (++i == argc) return false;
    if (word == "--mutations") {
      out.mutations = std::strtoull(argv[i], nullptr, 10);
    } else if (word == "--seed") {
      out.seed = std::strtoull(argv[i], nullptr, 10);
    } else if (word == "--keep") {
      out.keep = argv[i];
    } else {
      return false;
    }
  }
  std::sort(out.files.begin(), out.files.end());
  return !out.files.empty();
}

void run(const std::string& text, const std::string& keep) {
  if (!keep.empty()) std::ofstream(keep, std::ios::binary) << text;
  // Exactly as large as the input, so that a sanitizer sees a read past its end.
  const std::vector<std::uint8_t> bytes(text.begin(), text.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  if (!parse(argc, argv, arguments)) {
    std::cerr << "usage: " << argv[0]
              << " [--mutations N] [--seed S] [--keep FILE] FILE_OR_FOLDER...\n";
    return 2;
  }
  std::vector<std::string> seeds;
  for (const fs::path& file : arguments.files) {
    std::ifstream in(file, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    run(seeds.back(), arguments.keep);
  }
  for (std::uint64_t i = 0; i < arguments.mutations; ++i) {
    run(Mutator(arguments.seed * 1000003 + i).mutate(seeds), arguments.keep);
  }
  std::cout << seeds.size() << " files and " << arguments.mutations << " mutations ran\n";
  return 0;
}
