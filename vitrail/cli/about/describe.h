/// \file
/// What `vitrail info` says of each kind of model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "vitrail/models/base/image_model.h"
#include "vitrail/models/detection/detr_folder.h"
#include "vitrail/models/detection/set2set.h"
#include "vitrail/models/joint/blip_folder.h"
#include "vitrail/models/joint/captioner.h"
#include "vitrail/models/joint/clip_folder.h"
#include "vitrail/models/joint/vqa_folder.h"
#include "vitrail/models/recurrent/frame_network.h"
#include "vitrail/models/recurrent/recurrent.h"
#include "vitrail/models/text/text_model.h"

namespace vitrail::cli {

/// A number briefly: 5717416 → "5.7 M", 1258000000 → "1.26 G".
std::string short_number(std::int64_t number);
/// The size of one input, [channels, height, width], or of a clip [channels, frames, height, width].
std::vector<std::int64_t> input_size(const models::Model& model);
/// The same from dimension `first` on as text: "3 x 224 x 224".
std::string size_text(const models::Model& model, std::size_t first);
/// Prints a line of `vitrail info`: a name, and what it is.
void line(const std::string& name, const std::string& value);

/// What there is to say of a model, as one JSON object.
nlohmann::ordered_json describe(const models::Model& model);
nlohmann::ordered_json describe(const models::Detector& model);
nlohmann::ordered_json describe(const models::TextModel& model);
nlohmann::ordered_json describe(const models::JointModel& model);
nlohmann::ordered_json describe(const models::Captioner& model);
nlohmann::ordered_json describe(const models::FrameNetwork& model);
nlohmann::ordered_json describe(const models::RecurrentModel& model);
nlohmann::ordered_json describe(const models::VqaModel& model);
nlohmann::ordered_json describe(const models::BlipModel& model);
nlohmann::ordered_json describe(const models::SetModel& model);

/// The same as lines for people.
void print_info(const models::Model& model);
void print_info(const models::Detector& model);
void print_info(const models::TextModel& model);
void print_info(const models::JointModel& model);
void print_info(const models::Captioner& model);
void print_info(const models::FrameNetwork& model);
void print_info(const models::RecurrentModel& model);
void print_info(const models::VqaModel& model);
void print_info(const models::BlipModel& model);
void print_info(const models::SetModel& model);

}  // namespace vitrail::cli
