// Finds the form of a kind of file by asking its reader: it reads documents that are made up from
// what earlier readings declared, one key and one value more each, until nothing new is declared.
//
// The first document is {}. Each key that a reading declared is tried with every name of a
// choice, an object, a list of one, a value inside the range, or, where a reader only looks at
// the key, one value of each JSON kind; once in every situation of its object: the keys that it
// was found to declare, and the names of the choices that earlier rounds found to decide which
// keys are declared and required. So conditions on one value of one object are found; what
// depends on two at once may be missed, and makes a form more lenient.
#pragma once

#include <functional>

#include "sim/schema/form.hpp"

namespace bubblesim::schema {

/// Reads a document as files of the kind are read. Faults are expected and ignored.
using ReadFunction = std::function<void(const JsonDocument&)>;

/// Deterministic. Cost: one reading for each key, value and set of keys; milliseconds.
[[nodiscard]] Form explore(const ReadFunction& read);

}  // namespace bubblesim::schema
