# Sourced by script/demo, script/positions, script/results and others: a small Vision Transformer for images of 32 pixels, the recipe
# that trains it (and the other models of script/results), the sizes of a small detector of scenes (script/demo, script/train-weights),
# the program ($VITRAIL, if it is set), and how runs are made that can be stopped.
# shellcheck shell=bash disable=SC2034

vitrail=${VITRAIL:-build/bin/vitrail}
vit=(--model vit_tiny_patch16_224
     --model-kwargs img_size=32 patch_size=4 embed_dim=128 depth=6 num_heads=4 class_token=False global_pool=avg)
recipe=(--batch-size 64 --amp --crop-pct 1 --opt adamw --lr 1e-3 --weight-decay 0.05 --sched cosine --smoothing 0.1
        --train-crop-mode pad --color-jitter 0 --seed 0)
small_detr=(d_model=96 encoder_layers=2 encoder_ffn_dim=256 decoder_ffn_dim=256
            'backbone_kwargs={"layers": [1, 1, 1], "channels": [32, 64, 96], "output_stride": 8, "stem_type": "deep", "stem_width": 32}')

# run_once NAME COMMAND FLAG…: `vitrail COMMAND` to its end, with $output/NAME as its run, or on from where it was stopped; nothing if it is
# finished. What it says goes to NAME.log, and the seconds that all attempts took to NAME.wall, of the processor to NAME.processor.
run_once() {
  local run=$output/$1 command=$2 status=0 begin=$SECONDS TIMEFORMAT='%U %S'
  shift 2
  [ -e "$run.finished" ] && return
  if [ -d "$run/last" ]; then
    [[ $command == launch* ]] || command=${command%% *}
    set -- --resume "$run"
  else
    rm -rf "$run" "$run.log" "$run.wall" "$run.processor"
    set -- "$@" --output "$output" --experiment "${run##*/}"
  fi
  echo "${run##*/}: $command $*" >&2
  # shellcheck disable=SC2086  # "pretrain mae" is two words
  { time "$vitrail" $command "$@" >>"$run.log" 2>&1; } 2>"$run.times" || status=$?
  # bash may have said above the times that the program was killed
  tail -1 "$run.times" | awk -v before="$(cat "$run.processor" 2>/dev/null || echo 0)" '{ print before + $1 + $2 }' >"$run.sum"
  mv "$run.sum" "$run.processor"
  echo $(($(cat "$run.wall" 2>/dev/null || echo 0) + SECONDS - begin)) >"$run.wall"
  if [ $status -ne 0 ] || [[ $(tail -1 "$run.log") == 'stopped after'* ]]; then
    tail -3 "$run.log" >&2
    echo "$0: not finished; the same command goes on" >&2
    exit 1
  fi
  rm "$run.times"
  touch "$run.finished"
}

# learnt NAME: of the run $output/NAME its evaluations and the seconds of the processor that it took, as members of a JSON object.
learnt() {
  printf '"processor_seconds": %s, "evaluations": [%s]' "$(cat "$output/$1.processor")" \
    "$(grep '"ema"' "$output/$1/metrics.jsonl" | paste -sd, -)"
}

# scenes NAME FLAG…: a folder of rendered scenes, $output/NAME, unless it is there.
scenes() {
  local folder=$output/$1
  [ -e "$folder.finished" ] && return
  rm -rf "$folder"
  "$vitrail" scenes "$folder" "${@:2}" >/dev/null
  touch "$folder.finished"
}
