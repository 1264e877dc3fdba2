#include "sim/policy/session/call_mark.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <mutex>
#include <vector>

namespace bubblesim::policy {
namespace {

std::mutex mutex;
std::vector<const CallMark*> marks;  // guarded by the mutex

class SignalStack {
 public:
  SignalStack() {
    stack_t before{};
    if (sigaltstack(nullptr, &before) != 0 || (before.ss_flags & SS_DISABLE) == 0) return;
    stack_t stack{};
    stack.ss_sp = bytes_.data();
    stack.ss_size = bytes_.size();
    owns_ = sigaltstack(&stack, nullptr) == 0;
  }
  ~SignalStack() {
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    if (owns_) sigaltstack(&none, nullptr);
  }
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  std::array<char, 65536> bytes_{};
  bool owns_ = false;
};

}  // namespace

void prepare_calling_thread() {
  static thread_local const SignalStack stack;
  calling_thread.self = pthread_self();
  calling_thread.is_prepared = true;
}

CallMark::CallMark(const std::string& policy) : policy_(policy.c_str()) {
  const std::scoped_lock lock(mutex);
  marks.push_back(this);
}

CallMark::~CallMark() {
  const std::scoped_lock lock(mutex);
  marks.erase(std::ranges::find(marks, this));
}

void CallMark::each(const std::function<void(const CallMark&)>& visit) {
  const std::scoped_lock lock(mutex);
  for (const CallMark* mark : marks) visit(*mark);
}

}  // namespace bubblesim::policy
