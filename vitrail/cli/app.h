/// \file
/// The command line of the program: `vitrail COMMAND …`.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace vitrail::cli {

/// Runs one command; `arguments` are those after the program's name, and without any the help is printed. Returns the
/// exit code: 0 for success, 1 for an Error (a sentence on stderr), or one of those below.
int run(std::vector<std::string> arguments);

/// The exit code of several ranks that end together for a reason that all know (dist::AgreedError): another try would
/// come to the same.
constexpr int agreed_status = 3;
/// The exit code of wrong usage.
constexpr int usage_status = 2;

// Each of these adds one command to `app`, with its flags, its help and its action.

/// These two have the flags of the kind of task that the arguments are about.
void add_train(CLI::App& app, const std::vector<std::string>& arguments);
void add_pretrain(CLI::App& app, const std::vector<std::string>& arguments);
void add_launch(CLI::App& app);

void add_eval(CLI::App& app);
void add_predict(CLI::App& app);
void add_ask(CLI::App& app);
void add_detect(CLI::App& app);
void add_caption(CLI::App& app);
void add_fill_mask(CLI::App& app);
void add_embed(CLI::App& app);
void add_knn(CLI::App& app);
void add_probe(CLI::App& app);
void add_zeroshot(CLI::App& app);
void add_index(CLI::App& app);
void add_search(CLI::App& app);
void add_duplicates(CLI::App& app);
void add_bleu(CLI::App& app, const std::vector<std::string>& arguments);
void add_eval_captions(CLI::App& app);
void add_gallery(CLI::App& app);
void add_attention(CLI::App& app);
void add_patches(CLI::App& app);
void add_positions(CLI::App& app);
void add_gradients(CLI::App& app);
void add_project(CLI::App& app);
void add_latent(CLI::App& app);
void add_forward(CLI::App& app);
void add_generate(CLI::App& app);
void add_translate(CLI::App& app);
void add_info(CLI::App& app);
void add_models(CLI::App& app);
void add_bench(CLI::App& app);
void add_scale(CLI::App& app);
void add_augment(CLI::App& app);
void add_soup(CLI::App& app);
void add_quantize(CLI::App& app);
void add_convert(CLI::App& app);
void add_encoder(CLI::App& app);
void add_tokenizer(CLI::App& app);
void add_reconstruct(CLI::App& app);
void add_report(CLI::App& app);
void add_compare(CLI::App& app);
void add_scenes(CLI::App& app);
void add_shard(CLI::App& app);
void add_completion(CLI::App& app);

}  // namespace vitrail::cli
