#include "sim/plugin/load_policies.hpp"

#define BOOST_DLL_USE_STD_FS

#include <algorithm>
#include <exception>
#include <filesystem>
#include <memory>
#include <set>
#include <system_error>
#include <utility>

#include <boost/dll/shared_library.hpp>

#include "sim/base/nearest.hpp"
#include "sim/plugin/policy_library.hpp"
#include "sim/policy/parameter_check.hpp"

namespace bubblesim::plugin {
namespace {

namespace fs = std::filesystem;

/// Shared: by every function of every copy of a spec, which all lead into the library's code.
using Handle = std::shared_ptr<const boost::dll::shared_library>;

/// A library's function that keeps the library. The handle is destroyed last.
template <class Made>
struct Kept {
  Handle library;
  std::function<std::unique_ptr<Made>(const policy::ParameterSet&)> make;

  std::unique_ptr<Made> operator()(const policy::ParameterSet& parameters) const {
    return make(parameters);
  }
};

/// What the loader says, without the words of those that called it.
std::string loader_text(std::string_view what) {
  constexpr std::string_view kSymbol = "undefined symbol: ";
  constexpr std::string_view kLoader = "dlerror system message: ";
  if (const auto symbol = what.find(kSymbol); symbol != what.npos) {
    what.remove_prefix(symbol + kSymbol.size());
    return "it needs the symbol " + std::string(what.substr(0, what.find_first_of(" ,)"))) +
           ", which nothing that it is linked with has; expected a library that is linked as "
           "`bubblesim new-policy` does it";
  }
  if (const auto said = what.find(kLoader); said != what.npos) {
    what = what.substr(said + kLoader.size());
    what = what.substr(0, what.rfind("): "));
    return std::string(what.substr(what.find(": ") == what.npos ? 0 : what.find(": ") + 2));
  }
  return std::string(what);
}

Result<Handle> open(const std::string& path) {
  std::error_code code;
  const fs::path file = fs::absolute(path, code);
  if (code || !fs::is_regular_file(file, code)) return fail(path, {}, "there is no such file");
  try {
    // All symbols now: a missing one is a fault here, not the end of the program later.
    return std::make_shared<const boost::dll::shared_library>(
        file, boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local);
  } catch (const std::exception& fault) {
    return fail(path, {}, "cannot be loaded as a shared library: " + loader_text(fault.what()));
  }
}

Result<const PolicyLibrary*> describe(const std::string& path,
                                      const boost::dll::shared_library& library) {
  if (!library.has(kLibrarySymbol)) {
    return fail(path, {}, "is no library of policies: it does not export " +
                              std::string(kLibrarySymbol) +
                              " (BUBBLESIM_POLICY_LIBRARY in sim/plugin/policy_library.hpp)");
  }
  const auto& found = library.get<const PolicyLibrary>(kLibrarySymbol);
  if (found.mark != kLibraryMark) {
    return fail(path, {}, "is no library of policies: its " + std::string(kLibrarySymbol) +
                              " is something else");
  }
  if (found.contract_version != policy::kContractVersion) {
    return fail(path, {}, "was built for version " + std::to_string(found.contract_version) +
                              " of the policy contract, this program needs version " +
                              std::to_string(policy::kContractVersion) + "; build it again");
  }
  if (std::string_view(found.abi) != kAbiTag) {
    return fail(path, {}, "was built for the ABI " + quote_found(found.abi) +
                              ", this program needs " + quote_found(kAbiTag));
  }
  return &found;
}

Result<std::vector<policy::PolicySpec>> specs_of(const std::string& path,
                                                 const PolicyLibrary& library) {
  std::vector<policy::PolicySpec> specs;
  try {
    library.add_policies(specs);
  } catch (const std::exception& fault) {
    return fail(path, {}, std::string("threw while it declared its policies: ") + fault.what());
  } catch (...) {
    return fail(path, {}, "threw while it declared its policies");
  }
  if (specs.empty()) return fail(path, {}, "declares no policy");
  return specs;
}

}  // namespace

Result<std::string> find_policy_library(std::string_view wanted,
                                        std::span<const std::string> folders) {
  std::error_code code;
  if (wanted.find('/') != std::string_view::npos || fs::is_regular_file(wanted, code)) {
    return std::string(wanted);
  }
  std::string places;
  for (const std::string& folder : folders) {
    for (const std::string& file : {"lib" + std::string(wanted) + ".so", std::string(wanted)}) {
      const fs::path path = fs::path(folder) / file;
      if (fs::is_regular_file(path, code)) return path.string();
    }
    places += (places.empty() ? "" : ", ") + folder;
  }
  return fail(std::string(wanted), {},
              "there is no such file, and no lib" + std::string(wanted) + ".so in " +
                  (places.empty() ? "any folder of policies" : places));
}

Result<std::vector<std::string>> load_policies(const std::string& path,
                                               policy::Registry& registry) {
  BUBBLESIM_ASSIGN_OR_RETURN(const Handle handle, open(path));
  BUBBLESIM_ASSIGN_OR_RETURN(const PolicyLibrary* library, describe(path, *handle));
  BUBBLESIM_ASSIGN_OR_RETURN(std::vector<policy::PolicySpec> specs, specs_of(path, *library));
  policy::Registry trial = registry;
  std::vector<std::string> names;
  for (policy::PolicySpec& spec : specs) {
    if (auto checked = check_spec(spec, trial); !checked) {
      return fail(path, "policy " + quote_found(spec.name), checked.error().message);
    }
    spec.make = Kept<policy::Policy>{handle, std::move(spec.make)};
    if (spec.make_placer) {
      spec.make_placer = Kept<policy::Placer>{handle, std::move(spec.make_placer)};
    }
    names.push_back(spec.name);
    trial.add(std::move(spec));
  }
  registry = std::move(trial);
  return names;
}

namespace {

constexpr std::size_t kLongestName = 64;

Result<void> check_parameter(const policy::ParameterSpec& parameter) {
  const std::string what = "parameter " + quote_found(parameter.name) + ": ";
  if (!is_policy_name(parameter.name)) return fail(what + "expected a name in snake_case");
  if (parameter.minimum.index() != parameter.maximum.index()) {
    return fail(what + "its minimum and maximum are of two types");
  }
  const bool word = std::holds_alternative<std::string>(parameter.fallback);
  if (!word && parameter.fallback.index() != parameter.minimum.index()) {
    return fail(what + "its default is of another type than its range");
  }
  const auto value = policy::parse_value(parameter, policy::value_text(parameter.fallback));
  if (!value) return fail(what + "its default is not allowed: " + value.error().message);
  return {};
}

}  // namespace

bool is_policy_name(std::string_view name) {
  const auto lower = [](char letter) { return letter >= 'a' && letter <= 'z'; };
  const auto other = [](char letter) { return (letter >= '0' && letter <= '9') || letter == '_'; };
  return !name.empty() && name.size() <= kLongestName && lower(name.front()) &&
         std::ranges::all_of(name, [&](char letter) { return lower(letter) || other(letter); });
}

Result<void> check_spec(const policy::PolicySpec& spec, const policy::Registry& registry) {
  if (!is_policy_name(spec.name)) {
    return fail("expected a name in snake_case of at most " + std::to_string(kLongestName) +
                " letters");
  }
  if (registry.find(spec.name)) return fail("there is a policy of this name already");
  if (spec.summary.empty()) return fail("has no summary");
  if (!spec.make) return fail("has no function that makes it");
  std::set<std::string> names;
  for (const policy::ParameterSpec& parameter : spec.parameters) {
    BUBBLESIM_RETURN_IF_ERROR(check_parameter(parameter));
    if (!names.insert(parameter.name).second) {
      return fail("declares the parameter " + quote_found(parameter.name) + " twice");
    }
  }
  return {};
}

}  // namespace bubblesim::plugin
