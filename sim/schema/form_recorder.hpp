// Adds one reading of a document to a Form, and keeps what the reading itself declared.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/schema/form.hpp"

namespace bubblesim::schema {

/// One key that was read, and where.
struct SeenRead {
  std::string pointer;  ///< of the object
  std::string path;     ///< the same with "*" for elements of lists
  std::string key;
  JsonCount count = JsonCount::kOne;
  JsonShape shape;
};

class FormRecorder final : public ReadRecorder {
 public:
  explicit FormRecorder(Form& form) : form_(form) {}

  void on_read(const JsonRead& read) override;
  void on_default(const std::string& object, std::string_view key,
                  const JsonDefault& value) override;
  void on_one_of(const std::string& object, const std::vector<std::string_view>& keys) override;

  /// Reads of objects that were there, in order.
  [[nodiscard]] const std::vector<SeenRead>& reads() const { return reads_; }
  /// Objects that were there, by pointer, without the values.
  [[nodiscard]] const std::map<std::string, Visit>& visits() const { return visits_; }
  [[nodiscard]] std::string path_of_pointer(const std::string& pointer) const;

 private:
  Form& form_;
  std::vector<SeenRead> reads_;
  std::map<std::string, Visit> visits_;
  std::set<std::string> lists_;  // pointers of lists of objects
};

}  // namespace bubblesim::schema
