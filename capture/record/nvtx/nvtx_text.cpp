#include "capture/record/nvtx/nvtx_text.hpp"

#include <cstdint>
#include <cstring>

#include "sim/base/utf8.hpp"

namespace bubblesim::capture {

void cut(std::string& text, std::size_t limit) { text.resize(uncut_length(text, limit)); }

std::string name_of(const char* text, std::size_t limit) {
  if (text == nullptr) return {};
  std::size_t length = ::strnlen(text, limit);
  // Looks no further than the limit: a character that it cuts is left out whole.
  if (length == limit) {
    std::size_t lead = length;
    while (lead > 0 && length - lead < 3 && continues_character(text[lead - 1])) --lead;
    if (lead > 0 && length_by_lead(text[lead - 1]) > length - lead + 1) length = lead - 1;
  }
  std::string out = repaired_utf8({text, length});
  cut(out, limit);
  return out;
}

std::string name_of(const wchar_t* text, std::size_t limit) {
  std::string out;
  if (text == nullptr) return out;
  for (; *text != L'\0' && out.size() <= limit; ++text) {
    append_character(out, static_cast<std::uint32_t>(*text));
  }
  cut(out, limit);
  return out;
}

}  // namespace bubblesim::capture
