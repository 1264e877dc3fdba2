#include "sim/base/natural_order.hpp"

#include <algorithm>
#include <string_view>

namespace bubblesim {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Takes the digits that `text` begins with off it; leading zeros are not returned.
std::string_view take_number(std::string_view& text) {
  const std::size_t length = std::min(text.find_first_not_of("0123456789"), text.size());
  std::string_view digits = text.substr(0, length);
  text.remove_prefix(length);
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
  return digits;
}

bool name_less(std::string_view a, std::string_view b) {
  std::string_view rest_a = a;
  std::string_view rest_b = b;
  while (!rest_a.empty() && !rest_b.empty()) {
    if (is_digit(rest_a.front()) && is_digit(rest_b.front())) {
      const std::string_view number_a = take_number(rest_a);
      const std::string_view number_b = take_number(rest_b);
      if (number_a.size() != number_b.size()) return number_a.size() < number_b.size();
      if (number_a != number_b) return number_a < number_b;
    } else {
      const auto byte_a = static_cast<unsigned char>(rest_a.front());
      const auto byte_b = static_cast<unsigned char>(rest_b.front());
      if (byte_a != byte_b) return byte_a < byte_b;
      rest_a.remove_prefix(1);
      rest_b.remove_prefix(1);
    }
  }
  if (rest_a.empty() != rest_b.empty()) return rest_a.empty();
  return a < b;
}

}  // namespace

bool natural_less(const std::filesystem::path& a, const std::filesystem::path& b) {
  return std::lexicographical_compare(
      a.begin(), a.end(), b.begin(), b.end(),
      [](const auto& x, const auto& y) { return name_less(x.native(), y.native()); });
}

}  // namespace bubblesim
