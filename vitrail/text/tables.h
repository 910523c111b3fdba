/// \file
/// Tables of texts, whose fields stand as they are meant.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "vitrail/io/csv.h"

namespace vitrail::text {

/// The rows of a table: of a `.csv` (`ending`) as io::parse_table(); of any other what stands between tabs, in which
/// quotes are text, without blank lines.
std::vector<io::CsvRow> rows_of_texts(std::string_view content, std::string_view ending, const std::string& source);

/// The part that the object of a line says it is of, by the fields that would be columns of a table
/// (io::part_column()); nothing if it has none of these. Errors name `source` and the line.
std::optional<std::string> part_of_object(const nlohmann::json& object, const std::string& source, std::size_t line);

}  // namespace vitrail::text
