#include "traces/import/nsys_session.hpp"

#include <algorithm>
#include <array>

#include "sim/base/utf8.hpp"
#include "traces/import/nsys_counters.hpp"

namespace bubblesim::traces::nsys {
namespace {

constexpr std::string_view kStringIds = "StringIds";
constexpr std::array<std::string_view, 1> kValue{"value"};

/// The tables that take the time.
constexpr std::array<std::string_view, 8> kLargeTables{
    "CUPTI_ACTIVITY_KIND_KERNEL",  "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_MEMSET",  "CUPTI_ACTIVITY_KIND_RUNTIME",
    "CUPTI_ACTIVITY_KIND_DRIVER",  "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
    "NVTX_EVENTS",                 "CUPTI_ACTIVITY_KIND_OVERHEAD"};

}  // namespace

Strings::Strings(const Database& database)
    : keyed_(database.is_row_key(kStringIds, "id")),
      lookup_(keyed_ ? Rows::by_key(database, kStringIds, "id", kValue)
                     : Rows(database, "", kValue)) {
  if (keyed_) return;
  static constexpr std::array<std::string_view, 2> kBoth{"id", "value"};
  Rows rows(database, kStringIds, kBoth);
  while (rows.next()) {
    const auto id = rows.integer(0);
    const auto text = rows.text(1);
    if (id && text) all_.try_emplace(*id, *text);
  }
}

std::optional<std::string> Strings::find(std::int64_t id) {
  if (!keyed_) {
    const auto found = all_.find(id);
    return found == all_.end() ? std::nullopt : std::optional(found->second);
  }
  lookup_.seek(id);
  if (!lookup_.next()) return std::nullopt;
  const auto text = lookup_.text(0);
  return text ? std::optional(std::string(*text)) : std::nullopt;
}

NsysSession::NsysSession(const Database& opened, const ProgressCallback& progress)
    : database(opened), strings(opened), progress_(progress) {
  for (const std::string_view table : kLargeTables) rows_total_ += opened.estimated_rows(table);
  read_base();
  read_product();
}

void NsysSession::read_base() {
  static constexpr std::array<std::string_view, 1> kColumns{"utcEpochNs"};
  Rows rows(database, "TARGET_INFO_SESSION_START_TIME", kColumns);
  if (rows.next()) {
    const auto base = rows.integer(0);
    if (base && *base > 0 && *base <= 4 * (kMaxTime - 1)) base_ns_ = *base;
  }
  if (base_ns_ == 0) count(kNoBase);
}

void NsysSession::read_product() {
  static constexpr std::array<std::string_view, 2> kColumns{"name", "value"};
  std::string version;
  std::string schema;
  Rows rows(database, "META_DATA_EXPORT", kColumns);
  while (rows.next()) {
    const auto name = rows.text(0);
    if (!name) continue;
    const bool is_version = *name == "EXPORT_PRODUCT_VERSION";
    const bool is_schema = *name == "EXPORT_SCHEMA_VERSION";
    if (is_version) version = clean(rows.text(1).value_or("").substr(0, 64));
    if (is_schema) schema = clean(rows.text(1).value_or("").substr(0, 64));
  }
  finish(rows);
  product = "Nsight Systems";
  if (!version.empty()) product += " " + version;
  if (!schema.empty()) product += ", schema " + schema;
}

std::optional<RowSpan> NsysSession::span(std::optional<std::int64_t> start,
                                         std::optional<std::int64_t> end) {
  const auto usable = [](std::int64_t time) { return time >= -kMaxTime && time <= kMaxTime; };
  if (!start || !end || !usable(*start) || !usable(*end)) return std::nullopt;
  if (*end < *start) count(kNegativeDuration);
  return RowSpan{TraceTime{Duration{base_ns_ + *start}},
                 Duration{std::max<std::int64_t>(0, *end - *start)}};
}

std::string NsysSession::clean(std::string_view text) {
  if (is_utf8(text)) return std::string(text);
  count(kInvalidUtf8);
  return repaired_utf8(text);
}

std::string NsysSession::name(std::optional<std::int64_t> id) {
  if (id) {
    if (const auto text = strings.find(*id)) return clean(*text);
  }
  count(kNameMissing);
  return "unnamed";
}

void NsysSession::finish(const Rows& rows) {
  if (rows.damaged()) count(kTableDamaged);
}

void NsysSession::report() {
  if (!progress_) return;
  const std::uint64_t size = database.size();
  const double part = rows_total_ == 0 ? 1.0
                                       : static_cast<double>(std::min(rows_, rows_total_)) /
                                             static_cast<double>(rows_total_);
  progress_({database.source(), static_cast<std::uint64_t>(part * static_cast<double>(size)),
             size});
}

}  // namespace bubblesim::traces::nsys
