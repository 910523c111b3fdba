# Sourced by script/demo, script/positions and script/results: a small Vision Transformer for images of 32 pixels, the recipe that
# trains it (and the other models of script/results), and the program ($VITRAIL, if it is set).
# shellcheck shell=bash disable=SC2034

vitrail=${VITRAIL:-build/bin/vitrail}
vit=(--model vit_tiny_patch16_224
     --model-kwargs img_size=32 patch_size=4 embed_dim=128 depth=6 num_heads=4 class_token=False global_pool=avg)
recipe=(--batch-size 64 --amp --crop-pct 1 --opt adamw --lr 1e-3 --weight-decay 0.05 --sched cosine --smoothing 0.1
        --train-crop-mode pad --color-jitter 0 --seed 0)
