#include <dlfcn.h>

#include "capture/record/cupti/api.hpp"

namespace bubblesim::capture {
namespace {

/// Looks functions up and keeps the name of the first needed one that is missing.
class Binder {
 public:
  explicit Binder(void* library) : library_(library) {}

  template <class Function>
  void wanted(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(::dlsym(library_, name));
  }
  template <class Function>
  void needed(Function*& function, const char* name) {
    wanted(function, name);
    if (function == nullptr && missing_ == nullptr) missing_ = name;
  }
  [[nodiscard]] const char* missing() const { return missing_; }

 private:
  void* library_;
  const char* missing_ = nullptr;
};

void bind_session(Binder& bind, CuptiApi& api) {
  bind.needed(api.subscribe, "cuptiSubscribe");
  bind.wanted(api.subscribe_v2, "cuptiSubscribe_v2");
  bind.needed(api.unsubscribe, "cuptiUnsubscribe");
  bind.wanted(api.enable_callback, "cuptiEnableCallback");
  bind.wanted(api.set_thread_id_type, "cuptiSetThreadIdType");
}

void bind_activity(Binder& bind, CuptiApi& api) {
  bind.needed(api.register_callbacks, "cuptiActivityRegisterCallbacks");
  bind.wanted(api.set_attribute, "cuptiActivitySetAttribute");
  bind.needed(api.enable, "cuptiActivityEnable");
  bind.wanted(api.enable_and_dump, "cuptiActivityEnableAndDump");
  bind.needed(api.disable, "cuptiActivityDisable");
  bind.wanted(api.enable_driver_api, "cuptiActivityEnableDriverApi");
  bind.wanted(api.enable_runtime_api, "cuptiActivityEnableRuntimeApi");
  bind.wanted(api.enable_all_sync_records, "cuptiActivityEnableAllSyncRecords");
  bind.needed(api.flush_all, "cuptiActivityFlushAll");
  bind.needed(api.get_next_record, "cuptiActivityGetNextRecord");
  bind.wanted(api.get_dropped_records, "cuptiActivityGetNumDroppedRecords");
}

/// Where the loader really found it; the name it was asked for, if it does not say.
std::string path_of(const void* function, const std::string& asked) {
  Dl_info info{};
  if (::dladdr(function, &info) == 0 || info.dli_fname == nullptr) return asked;
  return info.dli_fname;
}

}  // namespace

Result<CuptiApi> bind_cupti(void* library, const std::string& path) {
  CuptiApi api;
  Binder bind(library);
  bind.needed(api.get_version, "cuptiGetVersion");
  bind.needed(api.get_timestamp, "cuptiGetTimestamp");
  bind.wanted(api.get_result_string, "cuptiGetResultString");
  bind_session(bind, api);
  bind_activity(bind, api);
  if (bind.missing() != nullptr) {
    return fail(path, {}, std::string("has no ") + bind.missing() +
                              "; expected a libcupti of CUDA 11.2 or later");
  }
  api.path = path_of(reinterpret_cast<const void*>(api.get_version), path);
  if (api.get_version(&api.version) != cupti::Result::kSuccess) {
    return fail(api.path, {}, "cuptiGetVersion failed; expected a libcupti of CUDA 11.2 or later");
  }
  return api;
}

}  // namespace bubblesim::capture
