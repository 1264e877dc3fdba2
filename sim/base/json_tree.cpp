#include "sim/base/json_tree.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <utility>

#include "sim/base/json.hpp"
#include "sim/base/nearest.hpp"
#include "sim/base/number_text.hpp"

namespace bubblesim::json_detail {
namespace {

std::string line_and_column(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t newline = before.rfind('\n');
  const std::size_t start = newline == std::string_view::npos ? 0 : newline + 1;
  return "line " + std::to_string(line) + ", column " + std::to_string(before.size() - start + 1);
}

// The library's text without its own code and position, and with the token it read cut short.
std::string reason_of(std::string_view what) {
  constexpr std::string_view kSyntax = "syntax error ";
  constexpr std::string_view kRead = "; last read: '";
  if (const auto at = what.find(kSyntax); at != std::string_view::npos) {
    what.remove_prefix(at + kSyntax.size());
  } else if (const auto bracket = what.find("] "); bracket != std::string_view::npos) {
    what.remove_prefix(bracket + 2);
  }
  const auto read = what.find(kRead);
  const auto close = what.rfind('\'');
  if (read == std::string_view::npos || close < read + kRead.size()) {
    return std::string(what.substr(0, 200));
  }
  const std::string_view token = what.substr(read + kRead.size(), close - read - kRead.size());
  return std::string(what.substr(0, read)) + "; last read: " + quote_found(token) +
         std::string(what.substr(close + 1));
}

// Receives the library's parse events; iterative, so nesting cannot exhaust the stack.
class TreeBuilder final : public nlohmann::json_sax<Json> {
 public:
  TreeBuilder(std::string_view text, Tree& tree) : text_(text), tree_(tree) {}

  bool null() override { return add(Node{}); }
  bool boolean(bool value) override { return add(Node{value}); }
  bool number_integer(number_integer_t value) override { return add(Node{value}); }
  bool number_unsigned(number_unsigned_t value) override { return add(Node{value}); }
  bool number_float(number_float_t value, const string_t&) override { return add(Node{value}); }
  bool string(string_t& value) override { return add(Node{std::move(value)}); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Node{Object{}}); }
  bool start_array(std::size_t) override { return open(Node{List{}}); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    frames_.back().key = std::move(name);
    return true;
  }

  bool end_object() override {
    Object& object = std::get<Object>(frames_.back().node.value);
    object.by_name.resize(object.members.size());
    std::iota(object.by_name.begin(), object.by_name.end(), 0U);
    std::stable_sort(object.by_name.begin(), object.by_name.end(), [&](auto a, auto b) {
      return object.members[a].name < object.members[b].name;
    });
    report_duplicates(object);
    return close();
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    // The library counts the bytes read, the offending one included.
    fault_ = Error{tree_.file, line_and_column(text_, position == 0 ? 0 : position - 1),
                   "not valid JSON: " + reason_of(error.what())};
    return false;
  }

  std::optional<Error> take_fault() { return std::move(fault_); }

 private:
  struct Frame {
    Node node;
    std::string key;
  };

  bool add(Node node) {
    if (++values_ > kMaxJsonValues) {
      return stop("found more than " + std::to_string(kMaxJsonValues) + " values in one file");
    }
    if (frames_.empty()) {
      tree_.root = std::move(node);
      return true;
    }
    Frame& frame = frames_.back();
    if (auto* list = std::get_if<List>(&frame.node.value)) {
      list->push_back(std::move(node));
    } else {
      std::get<Object>(frame.node.value)
          .members.push_back(Member{std::move(frame.key), std::move(node)});
    }
    return true;
  }

  bool open(Node node) {
    if (frames_.size() >= kMaxJsonDepth) {
      return stop("found objects and lists nested more than " + std::to_string(kMaxJsonDepth) +
                  " deep");
    }
    frames_.push_back(Frame{std::move(node), {}});
    return true;
  }

  bool close() {
    Node node = std::move(frames_.back().node);
    frames_.pop_back();
    return add(std::move(node));
  }

  bool stop(std::string message) {
    fault_ = Error{tree_.file, pointer(), std::move(message)};
    return false;
  }

  void report_duplicates(const Object& object) {
    for (std::size_t i = 1; i < object.by_name.size(); ++i) {
      const std::string& name = object.members[object.by_name[i]].name;
      if (name != object.members[object.by_name[i - 1]].name) continue;
      const bool told = i > 1 && name == object.members[object.by_name[i - 2]].name;
      if (told) continue;
      add_fault(tree_.duplicate_keys, tree_.file, pointer(nullptr),
                "key " + quote_found(name) + " stands more than once in this object");
    }
  }

  // The pointer of the value that is being read; with a null argument, of the innermost open object
  // or list.
  std::string pointer() const {
    return pointer(frames_.empty() ? nullptr : &frames_.back());
  }
  std::string pointer(const Frame* last) const {
    std::string out;
    for (const Frame& frame : frames_) {
      if (last == nullptr && &frame == &frames_.back()) break;
      const auto* list = std::get_if<List>(&frame.node.value);
      out += list ? "/" + std::to_string(list->size()) : pointer_part(frame.key);
    }
    return out;
  }

  std::string_view text_;
  Tree& tree_;
  std::vector<Frame> frames_;
  std::size_t values_ = 0;
  std::optional<Error> fault_;
};

void append_json(std::string& out, const Node& node);

struct AppendJson {
  std::string& out;

  void operator()(std::monostate) const { out += "null"; }
  void operator()(bool value) const { out += value ? "true" : "false"; }
  void operator()(std::int64_t value) const { out += std::to_string(value); }
  void operator()(std::uint64_t value) const { out += std::to_string(value); }
  void operator()(double value) const { out += Json(value).dump(); }
  void operator()(const std::string& value) const { out += Json(value).dump(); }
  void operator()(const List& list) const {
    out += '[';
    for (const Node& item : list) {
      if (&item != &list.front()) out += ',';
      append_json(out, item);
    }
    out += ']';
  }
  void operator()(const Object& object) const {
    out += '{';
    for (const Member& member : object.members) {
      if (&member != &object.members.front()) out += ',';
      (*this)(member.name);
      out += ':';
      append_json(out, member.node);
    }
    out += '}';
  }
};

void append_json(std::string& out, const Node& node) { std::visit(AppendJson{out}, node.value); }

}  // namespace

const Node* Object::find(std::string_view name) const {
  const auto at = std::lower_bound(
      by_name.begin(), by_name.end(), name,
      [this](std::uint32_t index, std::string_view key) { return members[index].name < key; });
  if (at == by_name.end() || members[*at].name != name) return nullptr;
  return &members[*at].node;
}

JsonKind kind_of(const Node& node) {
  constexpr std::array kKinds{JsonKind::kNull,   JsonKind::kFlag,   JsonKind::kNumber,
                              JsonKind::kNumber, JsonKind::kNumber, JsonKind::kText,
                              JsonKind::kList,   JsonKind::kObject};
  return kKinds[node.value.index()];
}

std::string describe(const Node& node) {
  struct Words {
    std::string operator()(std::monostate) const { return "null"; }
    std::string operator()(bool value) const { return value ? "true" : "false"; }
    std::string operator()(std::int64_t value) const {
      return "the number " + std::to_string(value);
    }
    std::string operator()(std::uint64_t value) const {
      return "the number " + std::to_string(value);
    }
    std::string operator()(double value) const { return "the number " + shortest_text(value); }
    std::string operator()(const std::string& value) const {
      return "the text " + quote_found(value);
    }
    std::string operator()(const List& value) const {
      return "a list of " + std::to_string(value.size());
    }
    std::string operator()(const Object&) const { return "an object"; }
  };
  return std::visit(Words{}, node.value);
}

std::string to_json_text(const Node& node) {
  std::string out;
  append_json(out, node);
  return out;
}

std::string pointer_part(std::string_view key) {
  std::string out = "/";
  for (const char letter : key) {
    if (letter == '~') {
      out += "~0";
    } else if (letter == '/') {
      out += "~1";
    } else {
      out += letter;
    }
  }
  return out;
}

void add_fault(Errors& errors, const std::string& file, std::string_view place,
               std::string message) {
  constexpr std::size_t kMaxPlace = 300;
  if (errors.size() > kMaxFaults) return;
  if (errors.size() == kMaxFaults) {
    errors.push_back(Error{file, {}, "more faults follow; these are the first " +
                                         std::to_string(kMaxFaults)});
    return;
  }
  std::string shown(place.substr(0, kMaxPlace));
  if (shown.size() < place.size()) shown += "...";
  errors.push_back(Error{file, std::move(shown), std::move(message)});
}

Result<Tree> parse_tree(std::string_view text, std::string file) {
  Tree tree{std::move(file), {}, {}, nullptr};
  if (text.size() > kMaxJsonFileBytes) {
    return fail(std::move(tree.file), {},
                "found " + std::to_string(text.size()) + " bytes; expected at most " +
                    std::to_string(kMaxJsonFileBytes));
  }
  // The library takes a NUL byte for the end and would ignore what follows.
  if (const auto nul = text.find('\0'); nul != std::string_view::npos) {
    return fail(std::move(tree.file), line_and_column(text, nul),
                "not valid JSON: found a NUL byte");
  }
  TreeBuilder builder(text, tree);
  if (!Json::sax_parse(text.begin(), text.end(), &builder)) {
    return tl::unexpected<Error>(
        builder.take_fault().value_or(Error{tree.file, {}, "not valid JSON"}));
  }
  return tree;
}

}  // namespace bubblesim::json_detail
