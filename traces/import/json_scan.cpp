#include "traces/import/json_scan.hpp"

#include <algorithm>
#include <cstring>

namespace bubblesim::traces {
namespace {

/// Matches brackets across refills of the window: all state is offsets from the anchor.
class Matcher {
 public:
  /// Reads on to the end of the value or of `text`. True: decided, see `result`.
  bool run(std::string_view text) {
    while (at_ < text.size()) {
      if (in_string_) {
        if (!leave_string(text)) return false;
        if (depth_ == 0) return decide(ScanStatus::kComplete, at_);
        continue;
      }
      switch (kJsonBytes[static_cast<unsigned char>(text[at_])]) {
        case JsonByte::kPlain: break;
        case JsonByte::kSpace:
        case JsonByte::kComma:
          if (depth_ == 0 && at_ > 0) return decide(ScanStatus::kComplete, at_);
          break;
        case JsonByte::kQuote:
          if (depth_ == 0 && at_ > 0) return decide(ScanStatus::kDamaged, at_);
          in_string_ = true;
          string_start_ = at_ + 1;
          break;
        case JsonByte::kOpen:
          if (depth_ >= kMaxDepth || (depth_ == 0 && at_ > 0)) {
            return decide(ScanStatus::kDamaged, at_);
          }
          open_ = (open_ << 1U) | (text[at_] == '{' ? 1U : 0U);
          ++depth_;
          break;
        case JsonByte::kClose:
          if (depth_ == 0) return decide(ScanStatus::kComplete, at_);
          if ((open_ & 1U) != (text[at_] == '}' ? 1U : 0U)) {
            return decide(ScanStatus::kDamaged, at_);
          }
          open_ >>= 1U;
          if (--depth_ == 0) return decide(ScanStatus::kComplete, at_ + 1);
          break;
        default: return decide(ScanStatus::kDamaged, at_);
      }
      ++at_;
    }
    return false;
  }

  Scan result;

 private:
  bool decide(ScanStatus status, std::size_t length) {
    result = {status, length};
    return true;
  }

  /// Moves past the closing quote; false: it lies beyond `text`.
  bool leave_string(std::string_view text) {
    while (true) {
      const void* found = std::memchr(text.data() + at_, '"', text.size() - at_);
      if (found == nullptr) {
        at_ = text.size();
        return false;
      }
      const auto quote = static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
      std::size_t slashes = 0;
      while (quote - slashes > string_start_ && text[quote - slashes - 1] == '\\') ++slashes;
      at_ = quote + 1;
      if (slashes % 2 == 0) break;
    }
    in_string_ = false;
    return true;
  }

  std::size_t at_ = 0;
  std::size_t depth_ = 0;
  std::size_t string_start_ = 0;
  std::uint64_t open_ = 0;  ///< one bit a level, lowest is innermost: 1 object, 0 array
  bool in_string_ = false;
};

enum class Fit { kYes, kNo, kMoreText };

/// Whether `"key" :` starts at `text[at]`, after white space.
Fit key_at(std::string_view text, std::size_t at, std::string_view key) {
  while (at < text.size() && is_space(text[at])) ++at;
  const std::string_view have = text.substr(std::min(at, text.size()), key.size() + 2);
  for (std::size_t i = 0; i < have.size(); ++i) {
    const char want = i == 0 || i == key.size() + 1 ? '"' : key[i - 1];
    if (have[i] != want) return Fit::kNo;
  }
  if (have.size() < key.size() + 2) return Fit::kMoreText;
  at += key.size() + 2;
  while (at < text.size() && is_space(text[at])) ++at;
  if (at >= text.size()) return Fit::kMoreText;
  return text[at] == ':' ? Fit::kYes : Fit::kNo;
}

bool follows_separator(std::string_view text, std::size_t brace) {
  while (brace > 0 && is_space(text[brace - 1])) --brace;
  return brace > 0 && (text[brace - 1] == ',' || text[brace - 1] == '[');
}

Fit event_at(std::string_view text, std::size_t brace) {
  Fit fit = key_at(text, brace + 1, "ph");
  if (fit != Fit::kNo) return fit;
  if (!follows_separator(text, brace)) return Fit::kNo;
  for (const std::string_view key : {"name", "cat", "pid", "tid", "ts", "dur", "args", "id"}) {
    fit = key_at(text, brace + 1, key);
    if (fit != Fit::kNo) return fit;
  }
  return Fit::kNo;
}

}  // namespace

Scan scan_value(TextWindow& window) {
  const std::string_view text = window.text();
  if (!text.empty() && (text.front() == '{' || text.front() == '[')) {
    const std::size_t length = match_brackets(text);
    if (length > 0) return {ScanStatus::kComplete, length};
  }
  Matcher matcher;
  while (!matcher.run(window.text())) {
    if (window.more()) continue;
    const std::size_t length = window.text().size();
    return {window.at_end() ? ScanStatus::kTruncated : ScanStatus::kDamaged, length};
  }
  return matcher.result;
}

bool skip_space(TextWindow& window) {
  while (true) {
    const std::string_view text = window.text();
    std::size_t at = 0;
    while (at < text.size() && is_space(text[at])) ++at;
    const bool found = at < text.size();
    window.advance(at);
    if (found) return true;
    if (!window.more()) return false;
  }
}

std::optional<std::size_t> find_event_start(TextWindow& window, std::size_t from) {
  while (true) {
    const std::string_view text = window.text();
    const std::size_t brace = text.find('{', std::min(from, text.size()));
    if (brace == std::string_view::npos) {
      from = text.size();
      if (!window.more()) return std::nullopt;
      continue;
    }
    const Fit fit = event_at(text, brace);
    if (fit == Fit::kYes) return brace;
    from = brace;
    if (fit == Fit::kNo) ++from;
    else if (!window.more()) return std::nullopt;
  }
}

std::optional<std::size_t> find_events_array(TextWindow& window, std::size_t from) {
  constexpr std::string_view kKey = "\"traceEvents\"";
  std::size_t at = 0;  // up to here there are but spaces behind the key
  while (true) {
    const std::string_view text = window.text();
    const std::size_t key = text.find(kKey, std::min(from, text.size()));
    if (key == std::string_view::npos) {
      from = text.size() > kKey.size() ? std::max(from, text.size() - kKey.size()) : from;
      if (!window.more()) return std::nullopt;
      continue;
    }
    at = std::max(at, key + kKey.size());
    while (at < text.size() && (is_space(text[at]) || text[at] == ':')) ++at;
    if (at >= text.size()) {
      if (!window.more()) return std::nullopt;
      continue;
    }
    if (text[at] == '[') return at + 1;
    from = at;
  }
}

}  // namespace bubblesim::traces
