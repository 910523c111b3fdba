# The fuzz targets: for each, fuzz/NAME.cpp, the inputs in fuzz/corpus/NAME, and perhaps fuzz/NAME.dict.
set(fuzz_targets safetensors torch_file config tokenizer preprocessor mae kwargs toml tar image csv labelled pairs binary auto_augment history train_state events boxes captions questions scenes sets)
