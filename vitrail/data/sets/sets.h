/// \file
/// Sets with what is to be said of them: numbers to sort, points with the centres they were drawn around, or one's own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "vitrail/data/loader.h"
#include "vitrail/data/prefetch.h"
#include "vitrail/data/scenes/source_fields.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::data {

/// A set, and the set that is to be said of it, each in the order in which it happens to come.
struct SetExample {
  std::vector<float> elements;       ///< [N, input_size]
  std::vector<std::int64_t> labels;  ///< [T], the classes of the targets
  std::vector<float> values;         ///< [T, output_size], their numbers
};

/// A data set of sets.
struct Sets {
  std::string source;
  std::int64_t input_size = 1;
  std::int64_t output_size = 1;
  std::vector<std::string> labels;  ///< the names of the classes
  std::int64_t most_elements = 1;   ///< of a set
  std::int64_t most_targets = 1;
  std::int64_t count = 0;
  std::function<SetExample(std::int64_t index)> example;  ///< may be called from several threads
};

/// Opens sets:
///
/// - `sets:task=sort,count=20000`: from 2 to 8 numbers, uniform in 0 … 1 (`size=2-8`). Of each it is to be said which
///   it is by size, its class "1", "2" …, and its value; targets come in that order.
/// - `sets:task=centres,count=20000`: points in a plane, normal around 2 to 5 centres (`centres=2-5`), 12 for each
///   (`points=12`), with a deviation of 0.05 (`spread=0.05`). Centres are uniform in 0.1 … 0.9, at least four
///   deviations apart. What is to be said are the centres, of the class "centre", which come in the order in which they
///   were drawn; points come in any order.
/// - a `.jsonl` with a set a line: `{"set": [[0.3, 0.1], …], "targets": [{"class": "centre", "values": [0.2, 0.2]},
/// …]}`.
///
/// Those that are drawn depend on `seed` and their index alone, which counts from `start`. The part "validation"
/// has `validation` further ones, by default a tenth. A .jsonl is one part, whatever `split`
/// says. `labels` are the classes of a network, unless it is empty: a set may have the
/// first of them alone, and other ones are an Error. With `targets`, each line of a .jsonl must have its "targets", []
/// where there are none, and nothing but them and the set. Throws Error, which names the source, if it cannot be read.
Sets open_sets(const std::filesystem::path& source, const std::string& split,
               const std::vector<std::string>& labels = {}, bool targets = true);

/// Whether a file is a .jsonl of sets, by its first line.
bool is_file_of_sets(const std::filesystem::path& file);

/// One set as a data set, of JSON: a list of numbers, "[0.3, 0.1]", or of lists of numbers, or an object that has such
/// a list as its "set", as a line of a .jsonl. Throws Error if it is none.
Sets set_of_text(const std::string& text);

/// A batch of sets, padded with zeros to the size of the largest.
struct SetBatch {
  Tensor x;                           ///< [B, N, input_size] f32
  Tensor mask;                        ///< bool [B, N], true where an element is the set's; undefined: everywhere
  std::vector<SetExample> examples;   ///< [B]
  std::vector<std::int64_t> indices;  ///< [B], in the data set
  std::int64_t number = 0;            ///< its number in the epoch
};
/// The sets of these examples as a batch.
SetBatch batch_of_sets(std::vector<SetExample> examples, std::int64_t input_size);

/// Makes batches of a data set, which must outlive it, in the order that `options` ask for.
using SetLoader = Prefetch<SetBatch>;
std::unique_ptr<SetLoader> set_loader(const Sets& data, const LoaderOptions& options);

}  // namespace vitrail::data
