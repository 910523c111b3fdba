/// \file
/// Swin Transformers in the layout of Hugging Face's transformers: Swin and Swin V2.
#pragma once

#include <span>

#include "vitrail/models/formats/huggingface.h"
#include "vitrail/models/swin/swin.h"

namespace vitrail::models {

/// The readers of configs, for HubKind.
void read_hub_swin(io::Fields& f, FolderConfig& folder);
void read_hub_swinv2(io::Fields& f, FolderConfig& folder);
/// Family::hub_form of the Swin Transformer families.
HubForm swin_hub_form(const ImageModel& net);

/// What transformers calls the tensors of each kind. '~' stands for "swin." or "swinv2."
std::span<const NameRule> hub_swin_names();
std::span<const NameRule> hub_swin_v2_names();

}  // namespace vitrail::models
