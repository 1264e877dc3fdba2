#include "sim/validate/job_name.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <functional>
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
  const char joint = text[left + 1];
  return kJoins.find(joint) != std::string_view::npos ||
         (joint == ',' && is_digit(text[left]) && is_digit(text[right]));
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

// Where a word for the batch size ends that begins at `from`; nothing if none begins there. A lone
// "b" is one before "=" only.
std::optional<std::size_t> behind_batch_word(std::string_view text, std::size_t from) {
  constexpr std::array<std::string_view, 2> kShort{"bsz", "bs"};  // "bs" begins both
  constexpr std::string_view kSize = "size";
  const std::string_view rest = text.substr(from);
  if (rest.starts_with(kBatch)) {
    const std::size_t at = text.find_first_not_of(" _-", from + kBatch.size());
    const bool has_size = at != std::string_view::npos && text.substr(at).starts_with(kSize);
    return has_size ? at + kSize.size() : from + kBatch.size();
  }
  if (from > 0 && counts(text[from - 1])) return std::nullopt;
  for (const std::string_view word : kShort) {
    if (rest.starts_with(word)) return from + word.size();
  }
  const std::size_t sign = text.find_first_not_of(' ', from + 1);
  const bool is_given = sign != std::string_view::npos && text[sign] == '=';
  return rest.starts_with('b') && is_given ? std::optional(sign) : std::nullopt;
}

// The batch size whose word begins at `from`.
std::optional<BatchWords> batch_at(std::string_view text, std::size_t from) {
  const auto word_end = behind_batch_word(text, from);
  if (!word_end) return std::nullopt;
  const std::size_t at = std::min(text.find_first_not_of(" =:_-", *word_end), text.size());
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
  for (auto at = text.find('b'); at != std::string::npos; at = text.find('b', at + 1)) {
    if (const auto found = batch_at(text, at)) out.push_back(*found);
  }
  return out;
}

// `words` with what `written` says of each batch size in its place.
std::string replaced(std::string_view words,
                     const std::function<std::string(std::uint32_t)>& written) {
  std::string out;
  std::size_t at = 0;
  for (const BatchWords& found : find_batches(words)) {
    out += words.substr(at, found.from - at);
    out += written(found.batch);
    at = found.until;
  }
  return out.append(words.substr(at));
}

std::string batch_words(std::uint32_t batch) {
  return std::string(kBatch) + " " + std::to_string(batch);
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

std::string job_words(std::string_view words) { return replaced(words, batch_words); }

std::string job_letters(std::string_view name) { return letters_of(job_words(name)); }

std::string at_batch(std::string_view words, std::uint32_t batch) {
  return replaced(words, [batch](std::uint32_t) { return batch_words(batch); });
}

std::string without_batch(std::string_view words) {
  return replaced(words, [](std::uint32_t) { return std::string(); });
}

bool has_unread_batch(std::string_view words) {
  const std::string text = in_lower_case(without_batch(words));
  for (auto at = text.find(kBatch); at != std::string::npos; at = text.find(kBatch, at + 1)) {
    std::string_view rest = std::string_view(text).substr(at + kBatch.size());
    for (const std::string_view word : {"", "size", "of"}) {
      if (rest.starts_with(word)) rest.remove_prefix(word.size());
      while (!rest.empty() && !counts(rest[0])) rest.remove_prefix(1);
    }
    if (!rest.empty() && is_digit(rest[0])) return true;
  }
  return false;
}

}  // namespace bubblesim::validate
