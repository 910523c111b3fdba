/// \file
/// Tables of texts, whose fields stand as they are meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vitrail/io/csv.h"

namespace vitrail::text {

/// The rows of a table: of a `.csv` (`ending`) as io::parse_table(); of any other what stands between tabs, in which
/// quotes are text, without blank lines.
std::vector<io::CsvRow> rows_of_texts(std::string_view content, std::string_view ending, const std::string& source);

}  // namespace vitrail::text
