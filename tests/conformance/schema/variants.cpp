#include "tests/conformance/schema/variants.hpp"

#include <utility>

namespace bubblesim::schema_test {
namespace {

constexpr std::size_t kMostOthers = 6;  // values that other files have for a key

class Maker {
 public:
  Maker(const Json& file, const KnownValues& known) : file_(file), known_(known) {}

  void visit(const Json& at, const std::string& pointer) {
    if (at.is_object()) add(pointer + "/no_such_key", 1);
    for (const auto& [key, value] : at.items()) {
      const std::string inner = pointer + "/" + escaped(key);
      if (at.is_object()) {
        leave_out(pointer, key);
        replace(key, inner);
      }
      if (value.is_structured()) visit(value, inner);
    }
  }

  std::vector<Json> take() { return std::move(made_); }

 private:
  void add(const std::string& pointer, const Json& value) {
    made_.push_back(file_);
    made_.back()[Json::json_pointer(pointer)] = value;
  }
  void leave_out(const std::string& pointer, const std::string& key) {
    made_.push_back(file_);
    made_.back()[Json::json_pointer(pointer)].erase(key);
  }
  void replace(const std::string& key, const std::string& pointer) {
    for (const char* text : {"true", "-1", "1", "0.5", "1e30", "\"x\"", "\"2ms\"", "\"2GB\"",
                             "{}", "[]", "[1]", "[{}]", "null"}) {
      add(pointer, Json::parse(text));
    }
    std::size_t count = 0;
    const auto others = known_.find(key);
    if (others == known_.end()) return;
    for (const std::string& text : others->second) {
      if (++count > kMostOthers) return;
      add(pointer, Json::parse(text));
    }
  }

  const Json& file_;
  const KnownValues& known_;
  std::vector<Json> made_;
};

}  // namespace

std::string escaped(const std::string& key) {
  std::string text;
  for (const char letter : key) {
    text += letter == '~' ? "~0" : letter == '/' ? "~1" : std::string(1, letter);
  }
  return text;
}

void collect_values(const Json& file, KnownValues& known) {
  for (const auto& [key, value] : file.items()) {
    if (file.is_object()) known[key].insert(value.dump());
    if (value.is_structured()) collect_values(value, known);
  }
}

std::vector<Json> variants(const Json& file, const KnownValues& known) {
  Maker maker(file, known);
  maker.visit(file, "");
  return maker.take();
}

}  // namespace bubblesim::schema_test
