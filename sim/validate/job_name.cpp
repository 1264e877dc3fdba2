#include "sim/validate/job_name.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>

#include "sim/base/add_once.hpp"

namespace bubblesim::validate {
namespace {

constexpr std::string_view kBatch = "batch";

bool counts(char c) { return is_digit(c) || is_letter(c); }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

struct Letters {
  std::string text;             ///< as letters_of says
  std::vector<std::size_t> at;  ///< where each is in the name; of a dash, where the number after is
};

Letters find_letters(std::string_view name) {
  Letters out;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (!counts(name[i])) continue;
    if (!out.at.empty() && is_digit(name[i]) && is_digit(name[out.at.back()]) &&
        out.at.back() + 1 < i) {
      out.text += '-';
      out.at.push_back(i);
    }
    out.text += lower(name[i]);
    out.at.push_back(i);
  }
  return out;
}

// Whether a word or a number goes on from position `left` to position `right`, with at most one
// character between them: "16", "1x", "1.5", "1,000", "Tiny-BERT"; not "2, 3".
bool goes_on(std::string_view text, std::size_t left, std::size_t right) {
  if (right >= text.size() || !counts(text[left]) || !counts(text[right])) return false;
  if (left + 1 == right) return true;
  constexpr std::string_view kJoins = "-_./+";
  const char between = text[left + 1];
  return kJoins.find(between) != std::string_view::npos ||
         (between == ',' && is_digit(text[left]) && is_digit(text[right]));
}

bool stands_alone(std::string_view text, std::size_t first, std::size_t last) {
  const bool before = (first >= 1 && goes_on(text, first - 1, first)) ||
                      (first >= 2 && goes_on(text, first - 2, first));
  return !before && !goes_on(text, last, last + 1) && !goes_on(text, last, last + 2);
}

struct BatchWords {
  std::size_t from = 0;
  std::size_t until = 0;
  std::uint32_t batch = 0;
};

// That whose word "batch" begins at `from`.
std::optional<BatchWords> batch_at(std::string_view text, std::size_t from) {
  constexpr std::string_view kSize = "size";
  std::size_t at = text.find_first_not_of(" _-", from + kBatch.size());
  if (at != std::string_view::npos && letters_of(text.substr(at, kSize.size())) == kSize) {
    at += kSize.size();
  }
  at = std::min(text.find_first_not_of(" =:_-", at), text.size());
  BatchWords out{from, 0, 0};
  const auto [end, error] =
      std::from_chars(text.data() + at, text.data() + text.size(), out.batch);
  if (error != std::errc{} || out.batch == 0) return std::nullopt;
  out.until = static_cast<std::size_t>(end - text.data());
  if (goes_on(text, out.until - 1, out.until) || goes_on(text, out.until - 1, out.until + 1)) {
    return std::nullopt;
  }
  return out;
}

std::vector<BatchWords> find_batches(std::string_view words) {
  const std::string text = in_lower_case(words);
  std::vector<BatchWords> out;
  for (auto at = text.find(kBatch); at != std::string::npos; at = text.find(kBatch, at + 1)) {
    if (const auto found = batch_at(text, at)) out.push_back(*found);
  }
  return out;
}

}  // namespace

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::string in_lower_case(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), lower);
  return out;
}

std::string letters_of(std::string_view name) { return find_letters(name).text; }

bool is_within(std::string_view name, std::string_view words) {
  const std::string wanted = letters_of(name);
  if (wanted.empty()) return false;
  const Letters all = find_letters(words);
  for (auto hit = all.text.find(wanted); hit != std::string::npos;
       hit = all.text.find(wanted, hit + 1)) {
    if (stands_alone(words, all.at[hit], all.at[hit + wanted.size() - 1])) return true;
  }
  return false;
}

std::vector<std::uint32_t> batches_in(std::string_view words) {
  std::vector<std::uint32_t> out;
  for (const BatchWords& found : find_batches(words)) add_once(out, found.batch);
  return out;
}

std::string at_batch(std::string_view words, std::uint32_t batch) {
  std::string out;
  std::size_t at = 0;
  for (const BatchWords& found : find_batches(words)) {
    out += words.substr(at, found.from - at);
    out += std::string(kBatch) + " " + std::to_string(batch);
    at = found.until;
  }
  return out.append(words.substr(at));
}

}  // namespace bubblesim::validate
