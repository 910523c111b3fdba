/// \file
/// Models without their classifier or with another one, and for images of every size.
#pragma once

#include <cstdint>
#include <string>

#include "vitrail/models/model.h"

namespace vitrail::models {

/// Returns a copy of the model, with weights of its own, that has no classifier: its forward() gives the features
/// [B, num_features] that the classifier takes, which timm's forward_head(…, pre_logits=True) gives. `pool`, if not
/// empty, replaces the model's global_pool: "token" takes the class token, "avg" the mean of the patches, and so on;
/// the final norm of a Vision Transformer stays where the model has it, before or after the pooling. The features of a
/// distilled model are the mean of those of its two tokens. Throws Error if the model is of a kind that has no
/// classifier, or if `pool` needs weights that it does not have.
Model without_head(const Model& model, const std::string& pool = "");

/// Gives the model a new classifier of `num_classes` classes, initialized as that of a new model, like timm's
/// reset_classifier; 0 removes the classifier. All other weights keep their values. `global_pool`, if not empty,
/// replaces the model's, as `pool` does in without_head(). The layers are created anew: references to model.net and to
/// its parameters become invalid. Throws Error, and changes nothing, if there is no such model.
void reset_classifier(Model& model, std::int64_t num_classes, const std::string& global_pool = "");

/// Initializes the classifier as that of a new model, for other classes of the same number. All other weights keep
/// their values.
void renew_classifier(const Model& model);

/// Changes the options so that open_model(source, options) gives a model that takes images of every size, if there is
/// one: timm's dynamic_img_size, which resizes positions in each forward pass. Returns whether there is, and else
/// leaves the options as they are. Throws Error as open_model() does.
bool let_take_any_size(const std::string& source, CreateOptions& options);

/// How many of the last rows and columns of pixels of the model's images its patches leave out, as timm's do: {14, 14}
/// where patches of 16 are cut out of 30 x 30. {0, 0} of a model that looks at all pixels.
nn::Size2 pixels_left_out(const Model& model);

/// The side of a patch of a model that takes images of every size: it sees all pixels of an image whose sides are
/// multiples of this. Throws Error if its patches are not squares.
std::int64_t patch_side(const ImageModel& model);

}  // namespace vitrail::models
