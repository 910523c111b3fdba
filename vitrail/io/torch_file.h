/// \file
/// Files of torch.save: `pytorch_model.bin`, `*.pth`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "vitrail/io/stored_tensors.h"

namespace vitrail::io {

/// Whether a file begins as those of torch.save do.
bool is_torch_file(std::span<const std::uint8_t> bytes);

/// The state dict of a file that torch.save has written, as a ZIP archive (PyTorch 1.6 and later) or one pickle behind
/// the other (before, and `_use_new_zipfile_serialization=False`). The state dict is the value itself, or what the
/// value has as "state_dict_ema", "model_ema", "state_dict" or "model"; as in timm's `load_state_dict`, the prefixes
/// that DDP and `torch.compile` put in front of names are removed. Tensors may share storages and lie in them with any
/// strides.
///
/// Nothing of the pickle is run (see read_pickle()): what is not made of numbers, texts, lists, dicts and plain tensors
/// throws Error, naming it, and so do tensors beyond their storage, storages beyond the file, and names or sizes that
/// contradict each other. The file is mapped, not read.
StoredTensors open_torch_file(const std::filesystem::path& path);
/// Parses a file that is already in memory, which `owner` keeps alive; `name` stands for the file in errors.
StoredTensors parse_torch_file(std::span<const std::uint8_t> bytes, const std::shared_ptr<const void>& owner,
                               const std::string& name);

}  // namespace vitrail::io
