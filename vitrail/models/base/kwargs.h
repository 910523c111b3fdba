/// \file
/// Arguments in Python's notation, as timm's --model-kwargs takes them.
#pragma once

#include <string>
#include <vector>

namespace vitrail::models {

/// The words of a text, between which there are spaces.
std::vector<std::string> words(const std::string& text);

/// Converts arguments to JSON: {"img_size=32", "class_token=False", "global_pool=avg"} become {"img_size": 32,
/// "class_token": false, "global_pool": "avg"}. Values are read as Python literals: numbers, True, False, None, quoted
/// strings, and tuples and lists of these; anything else is a plain string (timm's ParseKwargs). Throws Error if an
/// item has no '=' or a key occurs twice.
std::string kwargs_to_json(const std::vector<std::string>& items);

/// Sets the argument `key` of a JSON object of them to `value`, JSON too, and returns what this contradicts, as
/// "img_size=32"; "" if there was no other value. One number stands for two that are the same.
std::string set_kwarg(std::string& kwargs, const std::string& key, const std::string& value);

}  // namespace vitrail::models
