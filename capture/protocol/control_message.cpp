// Messages of the control socket: one JSON object each. Times are whole nanoseconds.
#include <algorithm>
#include <array>
#include <cstddef>

#include "capture/protocol/capture_request.hpp"
#include "sim/base/json.hpp"
#include "sim/base/json_reader.hpp"
#include "sim/base/nearest.hpp"
#include "sim/base/utf8.hpp"

namespace bubblesim::capture {
namespace {

std::string name_of(uid_t user, pid_t process) {
  return "bubblesim." + std::to_string(user) + "." + std::to_string(process);
}

}  // namespace

ControlAddress abstract_address(uid_t user, pid_t process) {
  const std::string name = name_of(user, process);
  ControlAddress made;
  made.address.sun_family = AF_UNIX;
  // sun_path[0] stays zero, which makes the address abstract. No zero byte ends the name.
  std::copy(name.begin(), name.end(), made.address.sun_path + 1);
  made.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  made.text = "@" + name;
  return made;
}

Result<ControlAddress> path_address(std::string_view folder, uid_t user, pid_t process) {
  ControlAddress made;
  made.text = std::string(folder) + (folder.ends_with('/') ? "" : "/") + name_of(user, process) +
              ".sock";
  constexpr std::size_t longest = sizeof(made.address.sun_path) - 1;
  if (folder.empty() || folder.find('\0') != std::string_view::npos) {
    return fail("found no name; expected a folder for sockets");
  }
  if (made.text.size() > longest) {
    return fail(made.text, {},
                "found a path of " + std::to_string(made.text.size()) + " bytes; a socket's has "
                "at most " + std::to_string(longest) + ": choose a folder with a shorter name");
  }
  made.address.sun_family = AF_UNIX;
  std::copy(made.text.begin(), made.text.end(), made.address.sun_path);
  made.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + made.text.size() + 1);
  return made;
}

namespace {

using Kind = ControlCommand::Kind;

constexpr std::array<Choice<Kind>, 4> kKinds{{{"start", Kind::kStart},
                                              {"stop", Kind::kStop},
                                              {"status", Kind::kStatus},
                                              {"mark", Kind::kMark}}};

constexpr std::array<Choice<RecorderState>, 6> kStates{
    {{"idle", RecorderState::kIdle},
     {"scheduled", RecorderState::kScheduled},
     {"starting", RecorderState::kStarting},
     {"recording", RecorderState::kRecording},
     {"stopping", RecorderState::kStopping},
     {"failed", RecorderState::kFailed}}};

Result<JsonDocument> parse(std::string_view text) {
  if (text.size() > kMaxMessageBytes) {
    return fail("message", {},
                "found " + std::to_string(text.size()) + " bytes; expected at most " +
                    std::to_string(kMaxMessageBytes));
  }
  auto document = JsonDocument::parse(text, "message");
  if (!document) return tl::make_unexpected(document.error().front());
  return std::move(*document);
}

Result<void> check_text(std::string_view what, std::string_view text, std::size_t limit) {
  const std::string expected = "; expected " + std::string(what) + " of 1 to " +
                               std::to_string(limit) +
                               " bytes, UTF-8 without control characters";
  if (text.empty()) return fail("found no text" + expected);
  if (text.size() > limit) {
    return fail("found " + std::to_string(text.size()) + " bytes" + expected);
  }
  const bool control = std::any_of(text.begin(), text.end(), [](char letter) {
    return static_cast<unsigned char>(letter) < 0x20U || letter == 0x7f;
  });
  if (control || !is_utf8(text)) return fail("found " + quote_found(text) + expected);
  return {};
}

// As the job's environment has it: one form, one set of limits.
StartRequest read_start(ObjectReader& root) {
  ObjectReader given = root.child("request");
  const auto request = request_from_environment([&given](const char* name) {
    return given.has(name) ? std::optional(given.text(name)) : std::nullopt;
  });
  if (!request) {
    root.fault("request", request.error().text());
  } else if (!*request) {
    root.fault("request", std::string(kEnvStart) + " is missing");
  }
  return request ? request->value_or(StartRequest{}) : StartRequest{};
}

Json json_of(const RecorderStatus& status, std::size_t limit) {
  Json json;
  json["state"] = state_name(status.state);
  json["pid"] = status.pid;
  json["rank"] = status.rank;
  json["world_size"] = status.world_size;
  json["executable"] = status.executable.substr(0, limit);
  json["output"] = status.output.substr(0, limit);
  json["message"] = status.message.substr(0, limit);
  json["cupti"] = status.cupti.substr(0, limit);
  json["recorded_ns"] = to_ns(status.recorded);
  json["records"] = status.records;
  json["bytes"] = status.bytes;
  json["lost"] = status.lost;
  json["iterations"] = status.iterations;
  return json;
}

}  // namespace

Result<void> check_output(std::string_view path) {
  return check_text("a path", path, kMaxOutputBytes);
}

Result<void> check_mark(std::string_view name) { return check_text("a name", name, kMaxMarkBytes); }

std::string_view state_name(RecorderState state) { return choice_name(state, kStates); }

std::string encode(const ControlCommand& command) {
  Json json;
  json["command"] = choice_name(command.kind, kKinds);
  if (command.kind == Kind::kStart) json["request"] = environment_of(command.start);
  if (command.kind == Kind::kMark) json["name"] = command.mark;
  return compact_text(json);
}

Result<ControlCommand> decode_command(std::string_view text) {
  BUBBLESIM_ASSIGN_OR_RETURN(const JsonDocument document, parse(text));
  Errors faults;
  ObjectReader root = document.root(faults);
  ControlCommand command;
  command.kind = root.choice("command", kKinds);
  // The keys of an unknown command cannot be checked.
  if (!faults.empty()) return tl::make_unexpected(faults.front());
  if (command.kind == Kind::kStart) command.start = read_start(root);
  if (command.kind == Kind::kMark) {
    command.mark = root.text("name");
    if (faults.empty()) {
      if (auto good = check_mark(command.mark); !good) root.fault("name", good.error().message);
    }
  }
  root.finish();
  if (!faults.empty()) return tl::make_unexpected(faults.front());
  return command;
}

std::string encode(const RecorderStatus& status) {
  std::string text = compact_text(json_of(status, kMaxMessageBytes));
  // A text grows six times where every byte is escaped: 4 * 6 * 2000 bytes fit.
  return text.size() <= kMaxMessageBytes ? text : compact_text(json_of(status, 2000));
}

Result<RecorderStatus> decode_status(std::string_view text) {
  BUBBLESIM_ASSIGN_OR_RETURN(const JsonDocument document, parse(text));
  Errors faults;
  ObjectReader root = document.root(faults);
  RecorderStatus status;
  status.state = root.choice("state", kStates);
  status.pid = root.integer<std::int64_t>("pid", {0});
  status.rank = root.integer<std::uint32_t>("rank");
  status.world_size = root.integer<std::uint32_t>("world_size", {1});
  status.executable = root.text("executable");
  status.output = root.text("output");
  status.message = root.text("message");
  status.cupti = root.text("cupti");
  status.recorded = Duration{root.integer<std::int64_t>("recorded_ns", {0})};
  status.records = root.integer<std::uint64_t>("records");
  status.bytes = root.integer<std::uint64_t>("bytes");
  status.lost = root.integer<std::uint64_t>("lost");
  status.iterations = root.integer<std::uint32_t>("iterations");
  root.finish();
  if (!faults.empty()) return tl::make_unexpected(faults.front());
  return status;
}

}  // namespace bubblesim::capture
