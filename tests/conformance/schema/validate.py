"""Validates JSON documents by a JSON Schema with an implementation that is not ours.

    validate.py SCHEMA DOCUMENTS

DOCUMENTS has one JSON document a line. Prints "ok" or the first fault of each, a line each.
"""

import json
import sys

import jsonschema


def main(schema_path, documents_path):
    with open(schema_path) as file:
        schema = json.load(file)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    with open(documents_path) as file:
        for line in file:
            fault = next(validator.iter_errors(json.loads(line)), None)
            if fault is None:
                print("ok")
            else:
                place = "/" + "/".join(str(part) for part in fault.absolute_path)
                print(place + ": " + fault.message.replace("\n", " ")[:300])


main(*sys.argv[1:])
