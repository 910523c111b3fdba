// Models without their classifier.
#pragma once

#include <string>

#include "vitrail/models/model.h"

namespace vitrail::models {

// The model, with weights of its own, whose forward() gives the features [B, num_features] that the classifier takes:
// the same as timm's forward_head(…, pre_logits=True). `pool`, if not empty, is another global_pool than the model's:
// "token" for the class token, "avg" for the mean of the patches …; a Vision Transformer's final norm stays where the
// model has it, before or after the pooling. Of a distilled model's two tokens they are the mean.
Model without_head(const Model& model, const std::string& pool = "");

}  // namespace vitrail::models
