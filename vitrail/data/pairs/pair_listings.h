/// \file
/// The layouts of pairs of images and texts, each as its files list them. What they throw is told at open_text_pairs().
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/data/pairs/places.h"
#include "vitrail/data/pairs/text_pairs.h"
#include "vitrail/data/scenes/write.h"
#include "vitrail/data/sources/sources.h"
#include "vitrail/data/sources/tables.h"
#include "vitrail/io/csv.h"

namespace vitrail::data {

/// Images and texts as a layout lists them, also such as have no text.
struct PairListing {
  Listing images;
  std::vector<std::vector<std::string>> texts;  ///< of each image
  std::filesystem::path folder = {};            ///< TextPairs::folder
  std::vector<TextPlaces> places = {};          ///< TextPairs::places
};

/// Captions in the layout of COCO.
PairListing list_coco_captions(const std::filesystem::path& file, const TextPairsOptions& options);

/// The column of captions that the header of a table names, if it names one.
std::optional<std::size_t> caption_column(const io::CsvRow& header, const std::string& source);
/// Captions in a table. `part` says which rows are taken, but for what the header says of them.
PairListing list_captions_csv(const std::filesystem::path& file, TablePart part);

/// Images in shards of WebDataset, with the text that lies beside each.
PairListing list_pair_shards(const std::vector<std::filesystem::path>& shards);

/// Scenes that are drawn when they are asked for, with the captions that their file would have. Errors name `source`.
PairListing list_described_scenes(const SceneFolder& what, const std::string& source, bool places);

}  // namespace vitrail::data
