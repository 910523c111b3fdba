#include <array>

#include "vitrail/train/tasks/language.h"
#include "vitrail/train/tasks/text_options.h"

namespace vitrail::train {

LanguageOptions::LanguageOptions() {
  eval_metric = "loss";
  batch_size = 12;
  epochs = 10;
  lr = 1e-3;
  weight_decay = 0.1;
  clip_grad = 1;
  optimizer.betas = std::array{0.9, 0.99};
  schedule.warmup_lr = 0;
}

void LanguageOptions::describe(OptionList& list) {
  list.group("data");
  list.add("data", data, "FILE", "Text to learn: a UTF-8 file")
      .argument("DATA")
      .path()
      .check_that([this](const Option& self) { check(!data.empty(), "{} is missing: a text file", self.flag()); });
  list.add("val_data", val_data, "FILE", "Text to evaluate on").path();
  list.add("val_share", val_share, "SHARE", "Without --val-data, share of the text at its end to evaluate on; 0: none")
      .below_one()
      .settled()
      .idle_if("beside --val-data", [this] { return !val_data.empty(); });
  list.add("tokenizer", tokenizer, "NAME",
           "Tokenizer: char (a token a character of the text), byte, or a tokenizer.json or a folder with one "
           "(default: that of "
           "the model's folder, or char)")
      .path()
      .settled();
  list.add("block_size", block_size, "N", "Tokens of a block (default: the model's positions, at most 1024)")
      .at_least(1)
      .at_most(1 << 20)
      .settled();
  list.add("epoch_steps", epoch_steps, "N",
           "Batches of an epoch, whose blocks begin at random places (default: each block of the text once, shuffled); "
           "with --bptt they go on where those of the epoch before ended")
      .at_least(1)
      .settled();
  list.add("no_shuffle", no_shuffle, "", "Take the blocks of the text in order")
      .idle_if("beside --epoch-steps, whose blocks begin at random places", [this] { return epoch_steps && !bptt; });
  add_skip_broken_option(list, skip_broken);
  list.add("documents", documents, "",
           "Blank lines part documents, none of which sees another: batches are packed with whole ones, each between "
           "two end-of-text tokens if the model has one, instead of blocks that run on from document to document")
      .settled();
  list.add("bptt", bptt, "K",
           "For recurrent networks, truncated backpropagation through time: instead of blocks, --batch-size streams of "
           "the text are read in order, K tokens at a time, and the state is carried on")
      .at_least(1)
      .settled();
  list.group("model");
  list.add("model", model, "MODEL", "Name of a language model (gpt2, smollm2-135m, lstm, gru …), or a model folder")
      .path()
      .settled();
  list.add_arguments("model_kwargs", model_kwargs, "KEY=VALUE",
                     "Fields of the model's config.json: n_layer=4 n_head=4 n_embd=128 …; hidden_size=512 num_layers=2")
      .settled();
  list.add("drop", drop, "RATE", "Dropout, wherever the model has it (default: the model's)").below_one();
  add_parameter_options(list, *this);
  add_batch_options(list, *this, "blocks");
  list.add("batch_tokens", batch_tokens, "N", "With --documents, about N tokens a batch (default: --batch-size blocks)")
      .at_least(1)
      .at_most(1e6)
      .needs("--documents", [this] { return documents; });
  list.find("batch_size")->idle_if("beside --batch-tokens", [this] { return batch_tokens.has_value(); });
  add_optimizer_options(list, *this);
  add_schedule_options(list, *this, "blocks");
  add_average_options(list, *this);
  add_run_options(list, *this, {"loss", "perplexity", "bits_per_character"});
  idle_without_evaluation(list, "text to evaluate on (--val-share, --val-data)",
                          [this] { return val_share > 0 || !val_data.empty(); });
}

void LanguageOptions::validate() const {
  TaskOptions::validate();
  check(documents || !batch_tokens, "--batch-tokens goes with --documents: blocks have --block-size tokens each");
  check(!documents || (!bptt && !epoch_steps),
        "--documents reads each document by itself: it goes with neither --bptt nor --epoch-steps");
  check(!bptt || !block_size, "--bptt says how many tokens of the text are read at a time: it takes no --block-size");
}

}  // namespace vitrail::train
