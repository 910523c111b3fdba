# Sourced by script/demo, script/positions, script/results and others: a small Vision Transformer for images of 32 pixels, the recipe
# that trains it (and the other models of script/results), the sizes of a small detector of scenes (script/demo, script/train-weights),
# and the program ($VITRAIL, if it is set).
# shellcheck shell=bash disable=SC2034

vitrail=${VITRAIL:-build/bin/vitrail}
vit=(--model vit_tiny_patch16_224
     --model-kwargs img_size=32 patch_size=4 embed_dim=128 depth=6 num_heads=4 class_token=False global_pool=avg)
recipe=(--batch-size 64 --amp --crop-pct 1 --opt adamw --lr 1e-3 --weight-decay 0.05 --sched cosine --smoothing 0.1
        --train-crop-mode pad --color-jitter 0 --seed 0)
small_detr=(d_model=96 encoder_layers=2 encoder_ffn_dim=256 decoder_ffn_dim=256
            'backbone_kwargs={"layers": [1, 1, 1], "channels": [32, 64, 96], "output_stride": 8, "stem_type": "deep", "stem_width": 32}')
