/// \file
/// What commands do with a model that finds objects in images.
#pragma once

#include <string>

#include "vitrail/cli/flags.h"
#include "vitrail/models/detection/detr_folder.h"

namespace vitrail::cli {

/// Loads it. Throws UsageError for flags that it does not take, and Error, which names the right command, if it is
/// none.
models::Detector open_detector(const ModelFlags& flags);

/// Prints COCO's figures of a detector on images with boxes; `output` is a folder for eval.json and detections.png, or
/// empty.
void evaluate_detections(const ModelFlags& model, const ComputeFlags& compute, const DataFlags& data,
                         const std::string& output, bool json);

}  // namespace vitrail::cli
