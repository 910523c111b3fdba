/// \file
/// Opens the files of checkpoints, whatever their format.
#pragma once

#include <filesystem>

#include "vitrail/io/stored_tensors.h"

namespace vitrail::io {

/// The tensors of a file of safetensors or of torch.save: how it begins says which it is.
StoredTensors open_tensors(const std::filesystem::path& path);

/// The tensors of a checkpoint in several files, by its index (`model.safetensors.index.json`,
/// `pytorch_model.bin.index.json`), whose "weight_map" names a file in the same folder for each tensor; in the order of
/// their names. Throws Error for a file that is missing or damaged, and for a tensor that is not in its file.
StoredTensors open_shards(const std::filesystem::path& index);

}  // namespace vitrail::io
