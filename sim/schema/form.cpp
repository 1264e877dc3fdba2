#include "sim/schema/form.hpp"

#include <algorithm>
#include <functional>
#include <tuple>

#include "sim/base/json.hpp"

namespace bubblesim::schema {

bool KeyForm::was_looked_for() const {
  for (const auto& [count, shape] : shapes) {
    if (std::holds_alternative<AnyShape>(shape)) return true;
  }
  return false;
}

std::vector<std::string> KeyForm::choices() const {
  std::vector<std::string> names;
  for (const auto& [count, shape] : shapes) {
    if (std::holds_alternative<AnyShape>(shape)) continue;
    const auto* choice = std::get_if<ChoiceShape>(&shape);
    if (choice == nullptr || count != JsonCount::kOne || !names.empty()) return {};
    names = choice->names;
  }
  return names;
}

bool Visit::operator<(const Visit& other) const {
  return std::tie(values, declared, required) <
         std::tie(other.values, other.declared, other.required);
}

std::string path_of(const std::string& object, std::string_view key, JsonCount count) {
  std::string path = object + "/" + std::string(key);
  return count == JsonCount::kList ? path + "/*" : path;
}

namespace {

using Names = std::set<std::string>;
using Values = std::map<std::string, std::string>;

/// A visit, seen as an answer to what one key holds.
struct Answer {
  std::string value;
  const Visit* visit = nullptr;
};
/// Answers that differ in nothing but that key.
using Groups = std::map<Values, std::vector<Answer>>;

Groups group(const ObjectForm& object, const std::string& key,
             const std::function<std::string(const Visit&)>& value_of) {
  Groups groups;
  for (const Visit& visit : object.visits) {
    Values rest = visit.values;
    rest.erase(key);
    groups[std::move(rest)].push_back({value_of(visit), &visit});
  }
  return groups;
}

bool absent(const Visit& visit, const std::string& key) { return !visit.values.contains(key); }
bool missed(const Visit& visit, const std::string& key) {
  return absent(visit, key) && visit.required.contains(key);
}

Names always_required(const ObjectForm& object) {
  Names required;
  for (const std::string& key : object.order) {
    bool is_absent = false;
    bool all = true;
    for (const Visit& visit : object.visits) {
      if (!absent(visit, key)) continue;
      is_absent = true;
      all = all && missed(visit, key);
    }
    if (is_absent && all) required.insert(key);
  }
  return required;
}

/// The name that readers go on with if the choice is absent or no name: its default, or the first.
std::string fallback_name(const KeyForm& form, const std::vector<std::string>& names) {
  for (const JsonDefault& value : form.defaults) {
    if (const auto* name = std::get_if<std::string>(&value)) return *name;
  }
  return names.front();
}

std::string name_of(const Visit& visit, const std::string& key,
                    const std::vector<std::string>& names, const std::string& fallback) {
  const auto at = visit.values.find(key);
  if (at == visit.values.end()) return fallback;
  const auto same = [&](const std::string& name) { return Json(name).dump() == at->second; };
  const auto found = std::find_if(names.begin(), names.end(), same);
  return found == names.end() ? fallback : *found;
}

using Says = std::function<bool(const Visit&, const std::string&)>;

/// Keys for which a pair of answers says yes for `own_key` and no for another value, and for which
/// `holds` says so of all visits with this value.
Names shown(const Groups& groups, const std::string& own_key, const ObjectForm& object,
            const Says& yes, const Says& holds) {
  Names keys;
  for (const auto& [rest, answers] : groups) {
    for (const Answer& a : answers) {
      if (a.value != own_key) continue;
      for (const Answer& b : answers) {
        if (b.value == own_key) continue;
        for (const std::string& key : object.order) {
          if (yes(*a.visit, key) && !yes(*b.visit, key)) keys.insert(key);
        }
      }
    }
  }
  for (const auto& [rest, answers] : groups) {
    for (const Answer& answer : answers) {
      if (answer.value != own_key) continue;
      std::erase_if(keys, [&](const std::string& key) { return !holds(*answer.visit, key); });
    }
  }
  return keys;
}

bool undeclared(const Visit& visit, const std::string& key) {
  return !visit.declared.contains(key);
}
bool there_or_missed(const Visit& visit, const std::string& key) {
  return !absent(visit, key) || missed(visit, key);
}

std::vector<ChoiceCondition> conditions_on(const ObjectForm& object, const std::string& key) {
  const KeyForm& form = object.keys.at(key);
  const std::vector<std::string> names = form.choices();
  if (names.size() < 2) return {};
  const std::string fallback = fallback_name(form, names);
  const Groups groups = group(object, key, [&](const Visit& visit) {
    return name_of(visit, key, names, fallback);
  });
  std::vector<ChoiceCondition> conditions;
  for (const std::string& name : names) {
    ChoiceCondition made{key, {name}, name == fallback && !form.defaults.empty(), {}, {}};
    // Where the choice itself is no key, a file that has it is refused for that.
    const bool anywhere = made.if_absent;
    const auto where_read = [&](const Says& says) -> Says {
      return [&key, anywhere, says](const Visit& visit, const std::string& other) {
        return (!anywhere && undeclared(visit, key)) || says(visit, other);
      };
    };
    made.required = shown(groups, name, object, missed, where_read(there_or_missed));
    made.required.erase(key);
    made.forbidden = shown(groups, name, object, undeclared, where_read(undeclared));
    if (made.required.empty() && made.forbidden.empty()) continue;
    const auto same = std::find_if(conditions.begin(), conditions.end(), [&](const auto& other) {
      return other.required == made.required && other.forbidden == made.forbidden;
    });
    if (same == conditions.end()) {
      conditions.push_back(std::move(made));
    } else {
      same->names.push_back(name);
      same->if_absent = same->if_absent || made.if_absent;
    }
  }
  return conditions;
}

/// What depends on whether `key`, which readers look for, is there.
void add_needs(const ObjectForm& object, const std::string& key, Conditions& out) {
  const std::string keyed = "with";
  const std::string keyless = "without";
  const Groups groups = group(
      object, key, [&](const Visit& visit) { return absent(visit, key) ? keyless : keyed; });
  for (const auto& follower : shown(groups, keyless, object, undeclared, undeclared)) {
    out.needs[follower].insert(key);
  }
  Names needed = shown(groups, keyed, object, missed, there_or_missed);
  needed.erase(key);
  if (!needed.empty()) out.needs[key].insert(needed.begin(), needed.end());
  Names instead = shown(groups, keyless, object, missed, there_or_missed);
  instead.erase(key);
  for (const std::string& other : instead) out.alternatives.insert({key, other});
}

}  // namespace

Conditions conditions_of(const ObjectForm& object) {
  Conditions out;
  out.required = always_required(object);
  for (const std::string& key : object.order) {
    for (ChoiceCondition& made : conditions_on(object, key)) {
      out.choices.push_back(std::move(made));
    }
    if (object.keys.at(key).was_looked_for() && !out.required.contains(key)) {
      add_needs(object, key, out);
    }
  }
  return out;
}

std::set<std::string> deciding_choices(const ObjectForm& object) {
  std::set<std::string> keys;
  for (const std::string& key : object.order) {
    if (!conditions_on(object, key).empty()) keys.insert(key);
  }
  return keys;
}

}  // namespace bubblesim::schema
