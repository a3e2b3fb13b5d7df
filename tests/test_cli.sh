#!/bin/bash
# The command: what each subcommand does with right and with wrong input, its exit codes, and that an
# error is one line that begins with the command's name. The man page and docs/commands.md are what the
# option tables say.
set -u
here=$PWD
cd "$KEEL_TEST_TMP" || exit 2
failed=0

fail()
{
    echo "error: $*"
    failed=$((failed + 1))
}

# want CODE PATTERN ARGUMENT...: run keel, compare the exit code, look for PATTERN in what it printed.
# Where CODE is 1 to 3, stderr must be one line that begins with "keel".
want()
{
    local code=$1 pattern=$2 got
    shift 2
    "$KEEL" "$@" >out.txt 2>err.txt
    got=$?
    ((got == code)) || fail "keel $*: exit code $got, not $code: $(head -c 300 err.txt)"
    grep -qE -e "$pattern" out.txt err.txt || fail "keel $*: nothing like '$pattern' in: $(head -c 300 out.txt err.txt)"
    ((code == 0 || code > 3)) && return
    [[ $(wc -l <err.txt) == 1 ]] || fail "keel $*: the error is not one line: $(head -c 600 err.txt)"
    grep -q '^keel' err.txt || fail "keel $*: the error does not say who speaks: $(cat err.txt)"
}

# ---- help ---------------------------------------------------------------------------------------
want 0 '^usage: keel COMMAND' --help
want 0 '^keel [0-9]' --version
want 0 'exit codes' help
for c in $("$KEEL" help | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
    want 0 "^usage: keel $c" "$c" --help
    grep -q '^example:' out.txt || fail "keel $c --help has no example"
    want 2 "there is no option --no-such-thing; see keel $c --help" "$c" --no-such-thing
    want 0 "^usage: keel $c" help "$c"
    awk 'length > 120 { exit 1 }' out.txt || fail "keel help $c: a line is too long"
done
[[ $("$KEEL" help | grep -c '^  [a-z]') -ge 9 ]] || fail "keel help lists too few commands"
"$KEEL" >out.txt 2>err.txt
[[ $? == 2 ]] || fail "keel alone: exit code is not 2"
want 2 'did you mean keel fit' fti
want 2 'keel help lists them' xyzzy
"$KEEL" help --format man >keel.1
cmp -s keel.1 "$here/../docs/keel.1" || fail "docs/keel.1 is old: keel help --format man > docs/keel.1"
"$KEEL" help --format markdown >commands.md
cmp -s commands.md "$here/../docs/commands.md" ||
    fail "docs/commands.md is old: keel help --format markdown > docs/commands.md"

# ---- shares ---
"$KEEL" new mlp --input 8 --classes 2 -o shared.keras >/dev/null
share() { "$KEEL" plan shared.keras --rows 100 --batch-size 40 --devices cpu:0-1 "$@"; }
[[ $(share --share 3,1 | tr -s ' ') == *"shares 3,1 of each step"*"cpu:0 0 30 15"*"cpu:1 "[01]" 10 5"* ]] ||
    fail "keel plan --share 3,1 does not show the shares and the rows"
[[ $(share) != *shares* ]] || fail "keel plan shows shares that nobody has asked for"
want 2 "share of 0 for device 2 of 2" plan shared.keras --rows 9 --devices cpu:0-1 --share 1,0
want 2 "1 share for 2 devices: each device has one" plan shared.keras --rows 9 --devices cpu:0-1 --share 1
want 2 "300 shares for 2 devices" plan shared.keras --rows 9 --devices cpu:0-1 --share "$(seq -s, 300)"
want 2 "write a number for each device .3,1., or auto" plan shared.keras --rows 9 --share 3/1
want 2 "cpu:1 has none of the 16 shards" plan shared.keras --rows 9 --devices cpu:0-1 --share 100,1 --reproducible
want 2 "share auto measures steps of training" predict shared.keras --data x --share auto -o x.npy
want 2 "share is for the devices of one process" simulate shared.keras --batch-size 8 --share 1,2

# ---- devices, layers ----------------------------------------------------------------------------
want 0 '^cpu:0 ' devices
want 0 '^computing with .*oneDNN' devices
want 2 'one argument too many' devices cpu
want 0 '^BatchNormalization$' layers
want 0 'kernel_size' layers conv2d
want 2 'did you mean Conv2D' layers Conv2
want 2 'keel layers lists them' layers Zzzzzzzzz

# ---- KEEL_CPU -----------------------------------------------------------------------------------
want 0 '^keel [0-9.]+ \((base|avx|amx)[a-z0-9_]*, (no oneDNN|oneDNN [23][.])' --version
KEEL_CPU=base want 0 '^keel [0-9.]+ \(base, ' --version
KEEL_CPU=amx want 0 '^keel ' --version
KEEL_CPU=avx3 want 2 "KEEL_CPU: instructions 'avx3': use base, avx2" devices
KEEL_CPU='' want 0 '^keel ' --version

# ---- new, inspect -------------------------------------------------------------------------------
want 0 '9,930 parameters' new mlp --input 4 --classes 10 --sizes 64,128 -o mlp.keras
want 0 'cnn' new cnn --input 16,16,3 --classes 10 --sizes 8,16 -o cnn.keras
want 0 'resnet18' new resnet18 --input 32,32,3 --classes 10 -o resnet18.keras
want 0 '25,636,712 parameters' new resnet50 --input 64,64,3 --classes 1000 -o resnet50.keras
want 0 '3,538,984 parameters' new mobilenetv2 --input 65,67,3 --classes 1000 -o mobilenetv2.keras
want 0 'lstm, 5 layers, 210,561 parameters' new lstm --input 12 --vocabulary 100 --classes 1 -o lstm.keras
want 0 'Loss: BinaryCrossentropy' inspect lstm.keras
want 2 "'12,3': lstm takes tokens, as 200" new lstm --input 12,3 --classes 1 -o lstm.keras
want 2 'vocabulary: mlp takes no tokens' new mlp --input 4 --vocabulary 9 --classes 3 -o m.keras
want 0 'gpt, 51 layers, 10,660,617 parameters' new gpt --input 16 --vocabulary 9 --classes 9 -o gpt.keras
want 0 'transformer, 21 layers, 12,158 parameters' new transformer --input 16 --vocabulary 9 --classes 2 -o transformer.keras
want 0 'densenet121, 429 layers, 8,062,504 parameters' new densenet121 --input 32,32,3 --classes 1000 --no-rescaling -o densenet.keras
want 0 'efficientnetb0, 240 layers, 5,330,570 parameters' new efficientnetb0 --input 33,32,3 --classes 1000 -o efficient.keras
want 0 'convnexttiny, 158 layers, 28,589,128 parameters' new convnexttiny --input 32,32,3 --classes 1000 -o convnext.keras
want 0 'unet, 73 layers, 2,058,979 parameters' new unet --input 32,32,3 --classes 3 -o unet.keras
want 0 'conv1d, 47 layers, 434,389 parameters' new conv1d --input 200,1 --classes 5 -o conv1d.keras
want 2 "'200': conv1d takes sound, as 8000,1" new conv1d --input 200 --classes 5 -o m.keras
rm efficient.keras convnext.keras transformer.keras densenet.keras unet.keras conv1d.keras gpt.keras resnet*.keras mobilenetv2.keras lstm.keras
want 0 '6 layers' new mlp --input 4 --classes 3 --optimizer 'SGD(momentum=0.9, nesterov=True)' \
    --learning-rate 0.05 --dropout 0.25 --metrics accuracy,mse -o sgd.keras
want 0 'SGD, learning rate 0.05' inspect sgd.keras
want 0 'Metrics: accuracy, mse' inspect sgd.keras
want 0 'float32: .*' inspect sgd.keras
want 0 'parameters' new mlp --input 4 --classes 3 --optimizer 'SGD(learning_rate=CosineDecay(0.1, 1000, alpha=0.5), momentum = .9)' \
    --metrics ' accuracy , IoU(num_classes=3, target_class_ids=[0, 1], sparse_y_pred=False, name="a, b")' -o decay.keras
want 0 'SGD, learning rate by the schedule CosineDecay, .* numbers of state' inspect decay.keras
want 0 'Metrics: accuracy, a, b$' inspect decay.keras
rm decay.keras
want 0 '^kernels of a training step of 7 rows:$' inspect cnn.keras --kernels --batch-size 7
grep -qE '^stage1_conv \(conv2d\): forward [a-z0-9_]+, weights [a-z0-9_]+$' out.txt || fail "no kernels of conv2d: $(cat out.txt)"
want 2 'batch-size needs --kernels' inspect cnn.keras --batch-size 7
ln -sf "$KEEL_BUILD/libkeel.so" libkeel.so
want 1 'plugin: ./nothing.so: cannot open shared object file' inspect cnn.keras --plugin nothing.so
want 1 'plugin: ./libkeel.so has no function keel_plugin' inspect cnn.keras --plugin libkeel.so
KEEL_CPU=base want 0 '^dense_1 \(dense\): forward (reference|dnnl)' inspect mlp.keras --kernels
want 0 ', widened|avx512_bf16|amx' inspect mlp.keras --kernels --dtype mixed_bfloat16
want 0 'parameters' new mlp --input 4 --classes 1 -o yes.keras
want 0 'Loss: BinaryCrossentropy' inspect yes.keras
want 2 'did you mean resnet50[?]' new resnet5 --input 32,32,3 --classes 2 -o m.keras
want 2 'an argument is missing; usage: keel new ARCHITECTURE [(]see keel new --help[)]$' new --input 4 --classes 2 -o m.keras
want 2 '--classes is missing: --classes N, number of classes; see keel new --help$' new mlp --input 4 -o m.keras
want 2 '--data is missing: --data SRC, the data; see keel fit --help$' fit sgd.keras -o m.keras
want 2 "'4,x'.*the shape of one row" new mlp --input 4,x --classes 2 -o m.keras
want 2 'takes images' new cnn --input 4 --classes 2 -o m.keras
want 2 'whole number' new mlp --input 4 --classes -2 -o m.keras
want 2 'end in .keras' new mlp --input 4 --classes 2 -o m.h5
want 1 'is not writable' new mlp --input 4 --classes 2 -o nowhere/m.keras
want 2 'is a directory' new mlp --input 4 --classes 2 -o "$(mkdir -p d.keras && echo d.keras)"
want 3 'sdg' new mlp --input 4 --classes 2 --optimizer sdg -o m.keras
want 2 'momentun' new mlp --input 4 --classes 2 --optimizer 'sgd(momentun=0.9)' -o m.keras
want 2 "the '\)' at the end" new mlp --input 4 --classes 2 --optimizer 'sgd(momentum=0.9' -o m.keras
want 2 "goes on behind its '\)'" new mlp --input 4 --classes 2 --optimizer 'sgd(momentum=0.9)(x)' -o m.keras
want 0 'parameters' new mlp --input 4 --classes 2 --optimizer 'SGD(0.125, momentum=0.5)' -o rate.keras
want 0 'SGD, learning rate 0.125' inspect rate.keras
want 0 'parameters' new mlp --input 4 --classes 2 --optimizer 'adam( CosineDecay(0.5, decay_steps=9), beta_1=0.5)' -o rate.keras
want 0 'Adam, learning rate by the schedule CosineDecay' inspect rate.keras
rm rate.keras
want 2 "arguments are written key=value, as 'SGD\(0.1, momentum=0.9\)'" new mlp --input 4 --classes 2 --optimizer 'sgd(0.1, 0.9)' -o m.keras
want 2 "arguments are written key=value, as 'Huber\(delta=2\)'" new mlp --input 4 --classes 2 --loss 'Huber(2)' -o m.keras
for twice in '0.1, learning_rate=0.2' 'CosineDecay(0.5, 3), learning_rate=0.1' 'learning_rate=0.1, learning_rate=CosineDecay(0.5, 3)'; do
    want 2 'learning_rate is given twice' new mlp --input 4 --classes 2 --optimizer "sgd($twice)" -o m.keras
done
want 2 "must be a number, not 'momentum x=0.1'" new mlp --input 4 --classes 2 --optimizer 'sgd(momentum x=0.1)' -o m.keras
want 2 'TopKCategoricalAccuracy.k=3' new mlp --input 4 --classes 2 --metrics 'TopKCategoricalAccuracy(3)' -o m.keras
want 2 "learning_rate .*'fast'" new mlp --input 4 --classes 2 --optimizer 'sgd(fast)' -o m.keras
want 2 'momentum has no value' new mlp --input 4 --classes 2 --optimizer 'sgd(momentum=)' -o m.keras
want 2 'CosineDecay: decay_steps must be given' new mlp --input 4 --classes 2 --optimizer 'SGD(learning_rate=CosineDecay(0.1))' -o m.keras
want 2 '--metrics: a name is empty' new mlp --input 4 --classes 2 --metrics accuracy,,mse -o m.keras
[[ ! -e m.keras ]] || fail "a refused keel new left a file"
want 1 'none.keras' inspect none.keras
head -c 500 mlp.keras >cut.keras
want 1 'cut.keras: not a zip archive, or cut short; a model is a .keras file' inspect cut.keras
: >empty.keras
want 1 'empty.keras: the file is empty' inspect empty.keras
printf 'PK\5\6%018d' 0 | tr 0 '\0' >none.keras # a zip archive of nothing
want 1 '^keel inspect: none.keras: no config.json in it; a model is' inspect none.keras
rm none.keras

# ---- fit, evaluate, predict on a CSV ------------------------------------------------------------
awk 'BEGIN { srand(7); print "a,b,c,d,kind"
    for (i = 0; i < 103; i++) { a = rand(); b = rand(); print a "," b "," rand() "," rand() "," (a > b ? "more" : "less") } }' >t.csv
want 0 'parameters' new mlp --input 4 --classes 2 --sizes 32 --learning-rate 0.01 -o two.keras
fit=(fit two.keras --data t.csv --label kind --batch-size 16 --devices cpu:0-3)
want 0 'split +16 rows: 4 4 4 4; last step 7 rows: 2 2 2 1' "${fit[@]}" --epochs 30 --history h.csv -o fit.keras
grep -q '^epoch 30/30  7 steps, 103 rows' out.txt || fail "no line of the last epoch: $(tail -n 12 out.txt)"
[[ $(wc -l <h.csv) == 31 ]] || fail "h.csv has not a line for each epoch"
want 0 '^accuracy +(1|0\.9)' evaluate fit.keras --data t.csv --label kind --devices cpu:0-2
cp out.txt three.txt
want 0 '^rows +103 ' evaluate fit.keras --data t.csv --label kind --batch-size 7 --devices cpu:0
awk '$1 == "loss"' three.txt out.txt |
    awk 'NR == 1 { a = $2 } NR == 2 { exit !($2 > a * 0.9999 && $2 < a * 1.0001) }' ||
    fail "evaluate on one and on three devices differs: $(cat three.txt out.txt)"
cp out.txt any.txt
KEEL_CPU=base want 0 '^rows +103 ' evaluate fit.keras --data t.csv --label kind --batch-size 7 --devices cpu:0
awk '$1 == "loss"' any.txt out.txt |
    awk 'NR == 1 { a = $2 } NR == 2 { exit !($2 > a * 0.9999 && $2 < a * 1.0001) }' ||
    fail "evaluate with KEEL_CPU=base differs: $(cat any.txt out.txt)"
want 0 '103 x 2 float32' predict fit.keras --data t.csv --label kind --show 2 -o p.npy
[[ $(head -c 6 p.npy | od -An -c | tr -d ' ') == '223NUMPY' ]] || fail "p.npy does not begin as .npy does"
[[ $(wc -c <p.npy) == $((128 + 103 * 2 * 4)) ]] || fail "p.npy has $(wc -c <p.npy) bytes"
want 0 'Adam.* 210 steps done' inspect fit.keras
for end in drop carry wrap; do want 0 'saved' "${fit[@]}" --end $end -o end.keras; done
want 0 'validation' "${fit[@]}" --validation-split 0.2 --epochs 2 --no-shuffle --seed 3 -o v.keras
grep -q 'val_accuracy' out.txt || fail "no val_accuracy with --validation-split"
# a pipeline is split where its order is the same in each pass; evaluate finds the rows by the same seed
printf 'source = "t.csv"\n[[stage]]\nname = "shuffle"\n' >drawn.toml
drawn=(--data drawn.toml --label kind --batch-size 16 --validation-split 0.2 --seed 3)
want 3 'give it reshuffle_each_iteration = false' fit two.keras "${drawn[@]}" -o v.keras
echo 'reshuffle_each_iteration = false' >>drawn.toml
want 0 'val_loss' fit two.keras "${drawn[@]}" -o v.keras
loss=$(sed -n 's/.* val_loss \([0-9.]*\).*/\1/p' out.txt)
want 0 '^rows +21 ' evaluate v.keras "${drawn[@]}"
[[ $(awk '$1 == "loss" { printf "%.4f", $2 }' out.txt) == "$loss" ]] ||
    fail "evaluate --validation-split has another loss than $loss: $(cat out.txt)"
want 0 'val_loss' "${fit[@]}" --validation t.csv -o v.keras
want 0 'saved' "${fit[@]}" --class-weight 1,2 --optimizer adamw --learning-rate 0.002 -o v.keras
want 0 'AdamW, learning rate 0.002' inspect v.keras
# a column of weights: rows of weight 0 add nothing to the sum of losses, which is divided by all rows
awk -F, 'NR == 1 { print $0 ",w" } NR > 1 { print $0 "," (NR % 3 != 0) }' t.csv >w.csv
awk 'NR == 1 || NR % 3' t.csv >rest.csv
want 0 '^rows ' evaluate v.keras --data w.csv --label kind --sample-weight w
cp out.txt weighted.txt
want 0 '^rows ' evaluate v.keras --data rest.csv --label kind
awk '$1 == "loss" || $1 == "rows"' weighted.txt out.txt |
    awk '{ v[NR] = $2 } END { a = v[1] * v[2]; b = v[3] * v[4]; exit !(v[4] < v[2] && a > b * 0.9999 && a < b * 1.0001) }' ||
    fail "rows of weight 0 count: $(cat weighted.txt out.txt)"
want 2 'sample-weight is for data whose parts have names' fit cnn.keras --data x.npy,y.npy --sample-weight w -o v.keras
for mode in fma fast; do want 0 '^float32 +(fma|fast)' "${fit[@]}" --float32 $mode -o v.keras; done
want 0 'saved' "${fit[@]}" -o v.keras
! grep '^float32 *fma' out.txt || fail "float32 is spoken of where there is nothing to choose"
want 2 'exact\|fma\|fast' "${fit[@]}" --float32 slow -o v.keras

# a file that asks for a schedule, and for a metric that is not there
sed '1s/kind/y/; s/less/0/; s/more/1/' t.csv >y.csv
schedule=(fit "$here/golden/compiled_schedule.keras" --data y.csv --label y)
want 0 'saved' "${schedule[@]}" -o followed.keras
want 0 'by the schedule CosineDecay, 9 steps done' inspect followed.keras
want 0 'saved' "${fit[@]}" --optimizer adamw --exclude-from-weight-decay bias -o v.keras
want 2 "no weight has the name 'beat'" "${fit[@]}" --optimizer adamw --exclude-from-weight-decay bias,beat -o m.keras
want 0 'learning rate of 0.001 replaces the schedule CosineDecay$' "${schedule[@]}" --learning-rate 0.001 -o rate.keras
grep -q 'without metrics that Keel does not have: Overlap' out.txt || fail "no word of a metric left out: $(cat out.txt)"
want 0 'the schedule given replaces CosineDecay' "${schedule[@]}" --learning-rate 'ExponentialDecay(0.01, 5, decay_rate=0.5)' -o followed.keras
want 0 'by the schedule ExponentialDecay, 9 steps done' inspect followed.keras
want 2 "no argument 'alfa'" "${schedule[@]}" --learning-rate 'CosineDecay(0.1, 5, alfa=1)' -o m.keras
want 0 'learning rate 0.001, 9 steps done' inspect rate.keras
grep -q 'not supported: Overlap' out.txt || fail "inspect: no word of the metric: $(cat out.txt)"
want 0 '^accuracy ' evaluate "$here/golden/compiled_schedule.keras" --data y.csv --label y
want 0 'by the schedule CosineDecay' inspect "$here/golden/compiled_schedule.keras"
want 0 'saved' fit rate.keras --data y.csv --label y --metrics accuracy -o rate.keras
want 3 'xyz' fit rate.keras --data y.csv --label y --metrics xyz -o m.keras

# the classes' names are in the model's file, and beside what it predicts
want 0 "^classes in this order, saved in the model's file: 0 less, 1 more\$" "${fit[@]}" --epochs 30 -o named.keras
want 0 saved fit named.keras --data t.csv --label kind -o again.keras
! grep '^classes' out.txt || fail "the order of known classes is printed again"
want 0 float32 predict named.keras --data t.csv --label kind --show 1 --classes c.csv -o p.npy
grep -qE '^row 0: (less|more) [01][.]' out.txt || fail "predict --show names no class: $(cat out.txt)"
printf 'a,b,c,d,kind\n1,2,3,4,neither\n1,2,3,4,more\n' >strange.csv # labels beside what is predicted may be any
want 0 '2 x 2 float32' predict named.keras --data strange.csv --label kind -o strange.npy
want 1 "'neither'" evaluate named.keras --data strange.csv --label kind
[[ $(head -n 1 c.csv) == row,class,probability && $(wc -l <c.csv) == 104 ]] || fail "c.csv: $(head -n 2 c.csv)"
paste -d, <(tail -n 103 c.csv) <(tail -n 103 t.csv) |
    awk -F, '{ n += $2 == $8; if (!($3 >= 0.5 && $3 <= 1)) exit 1 } END { exit n < 90 }' ||
    fail "c.csv is not what the model was taught: $(head -n 4 c.csv)"
# of a single logit, class 1 begins at 0, and what is written is a probability
awk 'BEGIN { srand(3); print "a,b,c,y"; for (i = 0; i < 64; i++) { a = rand(); b = rand(); print a "," b ",1," (a > b) } }' >logit.csv
want 0 saved fit "$here/golden/callbacks.keras" --data logit.csv --label y --loss 'BinaryCrossentropy(from_logits=True)' --learning-rate 0.05 --epochs 3 -o logit.keras
want 0 float32 predict logit.keras --data logit.csv --label y --classes c.csv -o logit.npy
tail -c 256 logit.npy | od -An -v -t f4 -w4 >logits.txt
paste -d, <(tail -n 64 c.csv) logits.txt |
    awk -F, '{ x = $4 + 0; p = 1 / (1 + exp(-x)); d = $3 - (x > 0 ? p : 1 - p); if ($2 != (x > 0) || d > 1e-4 || d < -1e-4) exit 1; n += x > 0 && x < 0.5 } END { exit n == 0 }' ||
    fail "logits are not read as such: $(paste -d, <(tail -n 64 c.csv) logits.txt | head -n 4)"
want 1 "monitor 'val_loss' is not in the logs; .*, and nothing of validation data, which is not given" "${fit[@]}" --callbacks 'EarlyStopping()' -o m.keras
want 0 'trained .*, stopped by a callback after epoch 2 of 5' "${fit[@]}" --epochs 5 --callbacks 'EarlyStopping(monitor=loss, patience=1, min_delta=9)' -o early.keras
want 0 saved fit yes.keras --data t.csv --label kind --epochs 3 -o yes.keras
want 0 float32 predict yes.keras --data t.csv --label kind --classes c.csv -o yes.npy
awk -F, 'NR > 1 && !(($2 == "less" || $2 == "more") && $3 >= 0.5 && $3 <= 1) { exit 1 }' c.csv ||
    fail "one output is not named by its likelier side: $(head -n 4 c.csv)"
want 2 'end in .csv' predict named.keras --data t.csv --label kind --classes c.txt -o p.npy

# classes of the data against outputs of the model, names or numbers
want 0 '^t.csv: 2 classes, but the model has 10 outputs: the last 8 have no rows$' fit mlp.keras --data t.csv --label kind -o ten.keras
want 0 '^y.csv: 2 classes, but the model has 10 outputs' fit mlp.keras --data y.csv --label y -o ten.keras
want 0 '^accuracy' evaluate ten.keras --data y.csv --label y
! grep 'outputs' out.txt || fail "evaluate speaks of outputs that no row asks for"
awk -F, 'NR == 1 { print } NR > 1 { print $1 "," $2 "," $3 "," $4 "," NR % 5 }' y.csv >five.csv
for c in "fit two.keras -o m.keras" "evaluate two.keras"; do
    want 1 '^keel [a-z]+: five.csv: .*(labels 0 to 4|not a class)' $c --data five.csv --label y
done
[[ ! -e m.keras ]] || fail "a refused keel fit left a file"

# two outputs, one of classes and one of numbers, by name in any order; in dicts whose keys are no names
# of layers
awk 'BEGIN { print "a,b,c,d,e,f,x,y,z,kind,s,t"
    for (i = 0; i < 20; i++) print i % 3 ",1,0,2,1," i % 4 ",0.5,1," i % 2 "," i % 3 "," i / 8 "," i / 4 }' >both.csv
for m in lists keyed; do
    for label in 'kind=kind size=s,t' 'size=s,t kind=kind'; do
        want 0 'kind_loss [0-9.]+ .*size_loss [0-9.]+ .*kind_accuracy' fit "$here/../tests/golden/outputs_$m.keras" \
            --data both.csv --inputs 'a=a,b,c,d,e,f b=x,y,z' --label "$label" -o both.keras
    done
done

# each output has weights of its own: half of all weights is half of its loss, and none of the other's
awk -F, 'NR == 1 { print $0 ",w" } NR > 1 { print $0 ",0.5" }' both.csv >weighted.csv
both=(evaluate both.keras --inputs 'a=a,b,c,d,e,f b=x,y,z' --label 'kind=kind size=s,t')
want 0 '^rows' "${both[@]}" --data both.csv
awk '/_loss/ { print $1, $2 }' out.txt >each.txt
want 0 '^rows' "${both[@]}" --data weighted.csv --sample-weight 'size=w'
awk '/_loss/ { print $1, $2 }' out.txt | paste each.txt - |
    awk '{ r = $4 / $2; want = $1 == "size_loss" ? 0.5 : 1; if (r / want < 0.9999 || r / want > 1.0001) exit 1 }' ||
    fail "weights of one output: $(paste each.txt out.txt)"
want 2 "class-weight is for one target, but outputs 'kind' and 'size' have losses" fit both.keras --data both.csv \
    --inputs 'a=a,b,c,d,e,f b=x,y,z' --label 'kind=kind size=s,t' --class-weight auto -o m.keras
! grep -q 'class weights' out.txt || fail "class weights are told and refused"
want 2 "weights for 'age', but there is no such target" "${both[@]}" --data weighted.csv --sample-weight 'age=w'

# one device and four: the same weights, so the same file of predictions to six digits
want 0 'saved' fit two.keras --data t.csv --label kind --batch-size 16 --devices cpu:0 --optimizer sgd -o one.keras
want 0 'saved' "${fit[@]}" --optimizer sgd -o four.keras
for n in one four; do
    want 0 float32 predict $n.keras --data t.csv --label kind -o $n.npy
    tail -c $((103 * 2 * 4)) $n.npy | od -An -v -w4 -f >$n.txt
done
paste one.txt four.txt | awk '{ d = $1 - $2; if (d * d > 1e-10) exit 1 }' || fail "one device and four differ"

# the outputs are data again
want 0 'parameters' new mlp --input 2 --classes 2 --loss mse --metrics mae -o mse.keras
want 0 'mae ' fit mse.keras --data p.npy,p.npy -o mse.keras
# --weights may have the state of the optimizer, which fit goes on with as Keras does
state=$here/golden/weights_state
into=(fit "${state}_adam.keras" --data 'synthetic(x=float32(3),y=float32(2),rows=8)' -o m.keras)
want 0 "weights and the optimizer's state: 4 steps done, learning rate 0.01$" "${into[@]}" --weights "$state.weights.h5"
want 0 "weights and the optimizer's state: 4 steps done, learning rate 0.25$" "${into[@]}" --weights "$state.weights.h5" --learning-rate 0.25
want 0 'weights; the optimizer begins anew, learning rate 0.01$' "${into[@]}" --weights "$state.weights.h5" --optimizer sgd
want 0 'weights only; the optimizer goes on with the state of the model, learning rate 0.5$' "${into[@]}" --weights "${state}_none.weights.h5"
want 0 'another optimizer or of other weights, so the optimizer goes on' fit "${state}_sgd.keras" \
    --weights "$state.weights.h5" --data 'synthetic(x=float32(3),y=float32(2),rows=8)' -o m.keras
# fit stops at a loss that is not finite; evaluate says why it is not
printf '\0\0\300\177%12s' '' | tr ' ' '\0' >nan.bin
want 1 'the loss of row 0 of nan.bin, .* is not finite' fit mse.keras --data 'raw(x=float32(2),y=float32(2)):nan.bin' -o m.keras
want 0 'the loss is not finite, and all weights are: a row has NaN' evaluate mse.keras --data 'raw(x=float32(2),y=float32(2)):nan.bin'
want 0 '^synthetic: 1 row; ' fit mse.keras --data 'synthetic(x=float32(2),y=float32(2),rows=1)' -o m.keras

# programs, records and drawn rows
want 0 'saved' fit mse.keras --data 'exec:cat p.npy p.npy' --epochs 2 -o mse.keras
want 0 '^rows +103 ' evaluate mse.keras --data 'exec:cat p.npy p.npy'
want 0 float32 predict mse.keras --data 'exec(x,rows=103):cat p.npy' -o q.npy
want 0 '103 x 2 float32' predict mse.keras --data 'exec(x):cat p.npy' -o unsaid.npy
want 1 '^keel predict: batch 2, after 103 rows of the pass: exec:' predict mse.keras --data 'exec(x):cat p.npy; exit 3' -o ended.npy
cmp q.npy unsaid.npy || fail "a stream that does not say its rows is predicted otherwise"
want 1 'exec:echo why >&2; exit 7: ended with status 7: why$' fit mse.keras --data 'exec:echo why >&2; exit 7' -o m.keras
want 2 'give a program' fit mse.keras --data exec: -o m.keras

# what the input does: the stage that steps wait for, its picture, its memory
late='exec:for i in 1 2 3 4 5 6; do sleep 0.1; cat p.npy p.npy; done'
want 0 '^input +steps waited [0-9]+ % of their time for rows, [0-9]+ % of that for exec' fit mse.keras \
    --data "$late" --batch-size 50 --explain-input --input-report i.svg -o m.keras
grep -qE '^input +1 thread, [0-9]+ batches? ahead, at most .* of memory' out.txt || fail "--explain-input: no threads and memory"
grep -q '</svg>' i.svg && grep -q '>exec<' i.svg || fail "--input-report: no picture"
if command -v script >/dev/null; then
    script -qec "stty cols 200; $KEEL fit mse.keras --data '$late' --batch-size 50 -o m.keras" /dev/null >live.txt 2>&1
    grep -qaE 'waits for input [0-9]+%: exec' live.txt || fail "the progress line does not name what it waits for"
    # of two epochs the first was made by an earlier run: the second takes 1.2 s, of which 1 s is left at first
    script -qec "stty cols 200; $KEEL fit mse.keras --data 'exec(x,y,rows=618):for i in 1 2 3 4 5 6; do sleep 0.2; cat p.npy p.npy; done' \
        --batch-size 103 --initial-epoch 1 --epochs 2 -o m.keras" /dev/null >live.txt 2>&1
    left=$(grep -aoE '[0-9.]+ m?s left' live.txt | head -n 1)
    [[ $left == [4-9][0-9][0-9]' ms'* || $left == *' s left' ]] || fail "of an epoch of 1.2 s, the first line says '$left'"
fi
want 2 'input_memory.* needs at least [0-9]+' fit mse.keras --data p.npy,p.npy --input-memory 100 -o m.keras
least=$(sed -n 's/.*at least \([0-9]*\):.*/\1/p' err.txt)
want 0 "saved" fit mse.keras --data p.npy,p.npy --input-memory "$least" -o m.keras
grep -q "^input .* of memory of " out.txt || fail "--input-memory: the limit is not shown"
want 2 'at least' fit mse.keras --data p.npy,p.npy --input-memory "$((least - 1))" -o m.keras
want 2 'give bytes' fit mse.keras --data p.npy,p.npy --input-memory lots -o m.keras
want 2 'input-report' fit mse.keras --data p.npy,p.npy --input-report i.png -o m.keras
rm -f m.keras i.svg live.txt

tail -c $((103 * 2 * 4)) p.npy >p.bin
want 0 '^p.bin: 103 rows' fit mse.keras --data 'raw(x=float32(2)):p.bin' --label x=x -o drawn.keras
want 1 'not a whole number of records of 12 bytes' fit mse.keras --data 'raw(x=float32(3)):p.bin' -o m.keras
want 0 'saved' fit mse.keras --data 'synthetic(x=normal(2),y=normal(2),rows=50)' -o drawn.keras
want 2 'give the number of rows' fit mse.keras --data 'synthetic(x=normal(2),y=normal(2))' -o m.keras
want 2 'weights of a Keras model, not data' fit mse.keras --data "$here/golden/weights_old.h5" -o m.keras

want 2 '--data is missing' fit two.keras -o m.keras
want 2 '--output is missing' fit two.keras --data t.csv
want 2 '--epochs has no value' fit two.keras --data t.csv -o m.keras --epochs
want 2 "--epochs 'many'" fit two.keras --data t.csv -o m.keras --epochs many
want 2 "--data is given twice, as 't.csv' and as 'u.csv': leave one out" fit two.keras --data t.csv -o m.keras --data=u.csv
want 2 "--callbacks is given twice" fit two.keras --data t.csv -o m.keras --callbacks 'TerminateOnNaN()' --callbacks 'CSVLogger(h.csv)'

# ---- options that this data does not read ---
want 2 't.csv: --labels is for the files of a directory; leave it out' fit two.keras --data t.csv --label kind --labels none.txt -o m.keras
want 2 't.csv: --audio-length is for sounds' fit two.keras --data t.csv --label kind --audio-length 8 -o m.keras
want 2 'd.npz: --image-size is for images that are decoded' fit two.keras --data d.npz --image-size 8,8 -o m.keras
want 2 'd.npz: --missing is for tables' fit two.keras --data d.npz --missing drop -o m.keras
want 2 'x.npy,y.npy: --label is for data whose parts have names' fit two.keras --data x.npy,y.npy --label z -o m.keras
want 2 "--epochs 'none'" fit two.keras --data t.csv -o m.keras --epochs 3 --epochs none # the last one counts
want 2 '--threads 4294967297: 64 are the most' fit two.keras --data t.csv --label kind -o m.keras --threads 4294967297
want 2 '--seconds -1: must be 0 or more' data t.csv --seconds -1
want 2 '--batch-size 4294967296: 2147483647 are the most' data t.csv --verify --batch-size 4294967296
want 1 "rows of shape \(5,\) do not fit input '.*' of model 'mlp', \(4,\)" plan two.keras --rows 9 --shape 5
want 1 "rows of shape \(4, 4\) do not fit input" inspect two.keras --kernels --shape 4,4
want 0 'total' plan two.keras --rows 9 --shape 4
want 2 '--threads 4294967297: 256 are the most' data t.csv --threads 4294967297
want 2 "no column 'no'" fit two.keras --data t.csv --data t.csv --label no --label no -o m.keras # the same words
want 2 'did you mean --batch-size' fit two.keras --data t.csv -o m.keras --batchsize 3
want 2 'did you mean --learning-rate[?]' fit two.keras --data t.csv -o m.keras --lr 0.1
want 2 'did you mean --learning-rate[?]' fit two.keras --data t.csv -o m.keras --learning_rate 0.1
want 2 'did you mean --learning-rate[?]' fit two.keras --data t.csv -o m.keras --learning-rat 0.1
want 2 'did you mean --batch-size[?]' fit two.keras --data t.csv -o m.keras --bs 3
want 2 'did you mean --validation-split[?]' fit two.keras --data t.csv -o m.keras --val-split 0.1
want 2 'did you mean --validation[?]' fit two.keras --data t.csv -o m.keras --validation-data t.csv
want 2 'there is no option --xy; see' fit two.keras --data t.csv -o m.keras --xy 3
want 2 'did you mean --trace' fit two.keras --data t.csv -o m.keras --trac t.json # the last of many options
for option in batch-size epochs steps-per-epoch threads; do
    want 2 "--$option '0': must be a whole number, 1 or more" "${fit[@]}" --$option 0 -o m.keras
done
want 2 'choose one' "${fit[@]}" --validation t.csv --validation-split 0.1 -o m.keras
want 2 'above 0 and below 1' "${fit[@]}" --validation-split 1.5 -o m.keras
want 2 "--end 'sometimes': must be one of these: --end keep.drop" "${fit[@]}" --end sometimes -o m.keras
for weights in 1,x 1,2, 1,,2 ,1 1,inf 1,0x2 '1, 2'; do
    want 2 'a number for each class' "${fit[@]}" --class-weight "$weights" -o m.keras
done
for every in 0x10 0x10s inf 5.5 -1; do
    want 2 "checkpoint-every '$every': a number of steps" "${fit[@]}" --checkpoint none --checkpoint-every $every -o m.keras
done
want 2 "validation-split '0x1p-2': must be a number" "${fit[@]}" --validation-split 0x1p-2 -o m.keras
want 2 '0x1' "${fit[@]}" --learning-rate 0x1 -o m.keras
want 2 'input-memory' "${fit[@]}" --input-memory 0x10M -o m.keras
want 2 "missing '0x1': choose" "${fit[@]}" --missing 0x1 -o m.keras
want 2 'has 3 numbers, but the model has 2 classes' "${fit[@]}" --class-weight 1,2,3 -o m.keras
want 2 'has 300 numbers, but the model has 2 classes' "${fit[@]}" --class-weight $(seq -s , 300) -o m.keras
want 2 "'(1,)+1.* and more: give a number for each class" "${fit[@]}" --class-weight "$(yes 1, | head -n 300 | tr -d '\n')x" -o m.keras
want 2 'takes no value' "${fit[@]}" --no-shuffle=yes -o m.keras
want 2 'kin' fit two.keras --data t.csv --label kin -o m.keras
for c in "fit two.keras -o m.keras" "evaluate fit.keras"; do
    want 2 't.csv: give the column of the labels: --label COLUMN, one of a,b,c,d,kind$' $c --data t.csv
done
# data is shown with the words that fit takes for it
show=(data t.csv --rows 1 --seconds 0)
want 0 'input  left +float32  \(2,\)' "${show[@]}" --inputs 'left=a,b right=c' --label kind
want 0 "words of column 'kind': 0 less, 1 more" "${show[@]}" --vocabulary kind
printf '"a, b",home town,c=d,y\n1,X,2,0\n4,Z,5,1\n' >odd.csv
want 0 '^  x +2 1$' data odd.csv --label y --seconds 0 --inputs '"c=d","a, b"'
want 0 '^  q +1 4$' data odd.csv --label 'y="c=d"' --seconds 0 --inputs 'q="home town","a, b"' --vocabulary '"home town"=X,Z'
rm odd.csv
want 1 "column 'kind' has '(less|more)', which is not a number" "${show[@]}"
want 2 "no column 'kin'" "${show[@]}" --label kin
sed '3s/^[^,]*/NA/' t.csv >hole.csv
want 1 "hole.csv:3: column 'a' has 'NA'" data hole.csv --label kind --seconds 0
want 0 'hole.csv: 1 row left out, 102 kept' data hole.csv --label kind --missing drop --seconds 0
want 0 'all 102 rows can be read' data hole.csv --label kind --missing drop --verify
touch table.parquet notes.xyz
want 2 'table.parquet: Keel does not read Parquet; let a program write its rows' data table.parquet
want 2 'two.keras: is a model' fit two.keras --data two.keras -o m.keras
want 2 'notes.xyz: is not a kind of data that Keel reads: ' data notes.xyz
want 1 'nowhere: does not exist$' data nowhere
for url in https://example.org/t.csv s3://bucket/t; do
    want 2 "$url: Keel reads no URLs; download the data" data $url
done
touch one.JPG one.wav
want 2 'one.JPG: is one image; give its folder' data one.JPG
want 2 'one.wav: is one sound; give its folder' data one.wav
rm one.*
want 2 'synthetc.*: is not a kind of data that Keel reads: .*synthetic' data 'synthetc(x=float32(2),rows=3)'
tail -n +2 t.csv >bare.csv
want 0 '103 rows of bare.csv|bare.csv: .*103' fit two.keras --data bare.csv --no-header --label 4 --devices cpu:0 -o bare.keras
sed 's/less/0/; s/more/1/' bare.csv >numbers.csv
want 2 'numbers.csv: its first line has only numbers, so it seems to have no header' fit two.keras --data numbers.csv --label 4 -o m.keras
want 2 'give the column of the labels: --label N, counted from 0' fit two.keras --data numbers.csv --no-header -o m.keras
want 2 "no column '5'; there are '0', '1', '2', '3', '4'" fit two.keras --data numbers.csv --no-header --label 5 -o m.keras
want 0 'saved' fit two.keras --data numbers.csv --no-header --label 4 --inputs 3,0-2 --loss categorical_crossentropy --devices cpu:0 -o bare.keras
tr , ';' <t.csv >semicolons.csv
want 0 '^rows +103 ' evaluate fit.keras --data semicolons.csv --label kind --devices cpu:0
sed '2s/1$/3.5/' numbers.csv | sed '2s/0$/3.5/' >half.csv
want 1 'label 3.5 of row 1 is not a class; classes are whole numbers from 0 to 1' fit two.keras --data half.csv --no-header --label 4 -o m.keras
# what a model calls its classes stays, whatever a file has of them
{ head -n 1 t.csv; grep more t.csv; } >more.csv
want 0 '^accuracy +(1|0\.9)' evaluate named.keras --data more.csv --label kind --devices cpu:0
sed '4s/[a-z]*$/many/' t.csv >strange.csv
want 1 "'many' is not one of the model's classes: less, more" evaluate named.keras --data strange.csv --label kind
sed '5s/,/;/' t.csv >torn.csv
want 1 '^keel fit: validation data: torn.csv:5: ' "${fit[@]}" --validation torn.csv -o m.keras
cut -d, -f2- t.csv >narrow.csv
want 1 '^keel fit: validation data: narrow.csv: rows have shape' "${fit[@]}" --validation narrow.csv -o m.keras
want 1 'none.csv' fit two.keras --data none.csv --label kind -o m.keras
# tables: missing values, words, folders, JSON lines
sed '7s/^[^,]*/NA/; 9s/,[^,]*,/,,/' t.csv >holes.csv
holes=(fit two.keras --data holes.csv --label kind --devices cpu:0 -o h.keras)
want 1 "^keel fit: holes.csv:7: column 'a' has 'NA', a missing value" "${holes[@]}"
want 0 "^holes.csv: 2 rows left out, 101 kept: a value is missing \(first: holes.csv:7, column 'a'\)" "${holes[@]}" --missing drop
want 0 '^holes.csv: 2 missing values filled' "${holes[@]}" --missing mean
want 0 '^holes.csv: 2 missing values filled' "${holes[@]}" --missing -0.5
want 2 "^keel fit: --missing 'some': choose error, drop, mean or a number" "${holes[@]}" --missing some
awk -F, -v OFS=, 'NR > 1 { $1 = NR % 2 ? "red" : "dark blue" } 1' t.csv >words.csv
words=(--data words.csv --label kind --devices cpu:0 --vocabulary)
want 0 "^words.csv: words of column 'a': 0 dark blue, 1 red" fit two.keras "${words[@]}" a -o words.keras
want 2 '^keel evaluate: --vocabulary a: give the words that the model is trained with' evaluate words.keras "${words[@]}" a
want 2 '^keel fit: --vocabulary a: give the words' fit two.keras "${words[@]}" a --validation words.csv -o h.keras
printf 'dark blue\r\nred\n' >words.txt
want 0 '^rows +103 ' evaluate words.keras "${words[@]}" a=@words.txt
printf '\xef\xbb\xbfdark blue\nred\n' >marked.txt # as UTF-8, by programs of Windows
want 0 '^rows +103 ' evaluate words.keras "${words[@]}" a=@marked.txt
want 1 "^keel evaluate: words.csv:2: column 'a' has 'dark blue', which is not one of the 2 words" evaluate words.keras "${words[@]}" a=blue,red
want 1 'none.txt cannot be read' evaluate words.keras "${words[@]}" a=@none.txt
want 2 "'e', which is no column of an input" evaluate words.keras "${words[@]}" 'a=@words.txt e=x'
mkdir parts && cp t.csv parts/1.csv && gzip -c t.csv >parts/2.csv.gz
want 0 '^rows +206 ' evaluate fit.keras --data parts --label kind --devices cpu:0
want 0 '^rows +103 ' evaluate fit.keras --data 'parts/*.csv.gz' --label kind --devices cpu:0
awk -F, 'NR > 1 { printf "{\"a\": %s, \"b\": %s, \"c\": %s, \"d\": %s, \"kind\": \"%s\"}\n", $1, $2, $3, $4, $5 }' t.csv >t.jsonl
want 0 '^accuracy +(1|0\.9)' evaluate fit.keras --data t.jsonl --label kind --devices cpu:0
want 0 'saved' fit two.keras --data t.jsonl --label kind --inputs a,b,c,d --devices cpu:0 -o h.keras
sed '3s/}$//' t.jsonl >torn.jsonl
want 1 '^keel evaluate: torn.jsonl:3: not JSON' evaluate fit.keras --data torn.jsonl --label kind
# callbacks, and more options of Keras's fit
want 0 '^note .*stopped early after epoch 3: val_loss has not improved since epoch 1 .*; the weights are those of epoch 1' "${fit[@]}" \
    --validation t.csv --epochs 9 --early-stopping val_loss,patience=2,min_delta=100,restore-best --save-best val_loss -o es.keras
want 0 '^rows ' evaluate es.best.keras --data t.csv --label kind
want 0 'learning_rate 0.2000' "${fit[@]}" --learning-rate-by-epoch 'ExponentialDecay(0.2, 1, 0.5)' --callbacks "CSVLogger('log.csv')" -o m2.keras
want 0 'learning_rate 0.1000' "${fit[@]}" --learning-rate-by-epoch 'ExponentialDecay(0.2, 1, 0.5)' --initial-epoch 1 --epochs 2 -o m2.keras --history h2.csv
[[ $(tail -n 1 h2.csv) == 1,* ]] || fail "h2.csv: $(cat h2.csv)"
head -n 1 log.csv | grep -q '^epoch,accuracy,learning_rate,loss,val_accuracy,val_learning_rate,val_loss' || fail "log.csv: $(head -n 1 log.csv)"
want 0 '^class weights [0-9.]+ [0-9.]+$' "${fit[@]}" --class-weight auto -o m2.keras
want 0 '^epoch 1/2  .*accuracy [0-9.]+$' "${fit[@]}" --validation t.csv --validation-freq 2 --epochs 2 -o m2.keras
for o in 'freq 2' 'steps 2' 'errors warn'; do
    want 2 "--validation-${o% *} needs --validation SRC or --validation-split F" "${fit[@]}" --validation-$o -o m.keras
done
want 2 '^keel fit: --early-stopping val_loss: there is no validation data' "${fit[@]}" --early-stopping val_loss -o m.keras
want 2 "^keel fit: --callbacks: there is no callback 'Nix'" "${fit[@]}" --callbacks 'Nix()' -o m.keras
want 2 '^keel fit: --early-stopping: .*patiense' "${fit[@]}" --early-stopping loss,patiense=3 -o m.keras
want 1 "^keel fit: the callback EarlyStopping, in on_train_begin: monitor 'nix' is not in the logs" "${fit[@]}" --early-stopping nix -o m.keras
want 2 "^keel fit: --early-stopping 'loss,patience': behind the value come restore-best and arguments" "${fit[@]}" --early-stopping loss,patience -o m.keras
want 2 "^keel fit: --save-best 'loss,accuracy': give one value" "${fit[@]}" --save-best loss,accuracy -o m.keras
want 1 'two.keras: checkpoints need a folder, and this is a file' "${fit[@]}" --checkpoint two.keras -o m.keras
want 2 "label: 'kind=' has an empty part" fit two.keras --data t.csv --label kind= -o m.keras
# the same rows in each validation, also of data without end
printf 'source = "t.csv"\n[[stage]]\nname = "repeat"\n' >endless.toml
for data in t.csv endless.toml; do
    want 0 'val_loss' "${fit[@]}" --validation $data --validation-steps 2 --learning-rate 0 --epochs 3 --history v$data.csv -o v.keras
    [[ $(cut -d, -f4- v$data.csv | tail -n 3 | sort -u | wc -l) == 1 ]] || fail "validations differ: $(cat v$data.csv)"
done
cmp -s vt.csv.csv vendless.toml.csv || fail "validations of data with an end and without differ"
want 1 'never ends: .*of a validation validation_steps' "${fit[@]}" --validation endless.toml -o m.keras
printf 'source = "t.csv"\n[[stage]]\nname = "batch"\nbatch_size = 16\n' >batches.toml
want 2 '--end is for rows that fit puts into batches' fit two.keras --data batches.toml --label kind --end drop -o m.keras
rm vt.csv.csv vendless.toml.csv endless.toml batches.toml
want 0 '^EarlyStopping$' callbacks
want 0 '^  patience ' callbacks earlystopping
want 2 'did you mean EarlyStopping[?]' callbacks EarlyStoping
want 3 'opens no connections' callbacks RemoteMonitor
want 2 'cpu' "${fit[@]}" --devices cpu:x -o m.keras
want 2 'a number above 99999999' "${fit[@]}" --devices cpu:99999999999 -o m.keras
want 0 "devices share [0-9]+ cores?: the result is that of $(nproc --all)0 devices" "${fit[@]}" --devices "cpu:0-$(($(nproc --all) * 10 - 1))" -o v.keras
want 0 'devices share' predict v.keras --data t.csv --label kind --devices "cpu:0-$(nproc --all)" -o p.npy
want 2 "a number is missing after '-'" "${fit[@]}" --devices cpu:3- -o m.keras
want 1 "no devices of kind 'gpu'; GPUs of NVIDIA are cuda:0" "${fit[@]}" --devices gpu:0 -o m.keras
want 1 'last batch of 7' "${fit[@]}" --end error -o m.keras
want 1 'shape' fit mlp.keras --data p.npy,p.npy -o m.keras
want 1 '^keel fit: loss: SparseCategoricalCrossentropy: a row of predictions has shape' fit mlp.keras --data 'synthetic(x=float32(4),y=float32(3),rows=9)' -o m.keras
want 1 'none.keras' evaluate none.keras --data t.csv
# where the results go is tried before anything is trained, and nothing is written over
mkdir shut && cp t.csv shut/u.csv
ln -s ../t.csv shut/h.csv
want 2 "^keel fit: --history 'shut/h.csv' would overwrite a file that --data reads" "${fit[@]}" --history shut/h.csv -o m.keras
want 2 "would overwrite a file that --data reads" predict fit.keras --data p.npy -o ./p.npy
: >same.json
ln -s same.json same.csv
want 2 '^keel fit: --history and --trace both write' "${fit[@]}" --history same.csv --trace same.json -o m.keras
rm -r same.* shut
# so are what callbacks write, and folders, wherever the path leads
also() { want 2 "^keel fit: $1 both write '$2'" "${fit[@]}" "${@:3}"; }
also '--history and CSVLogger' one.csv --history one.csv --callbacks 'CSVLogger(./one.csv)' -o m.keras
also 'CSVLogger and another CSVLogger' ./new/one.csv --callbacks 'CSVLogger(./new/one.csv), CSVLogger(./new/one.csv)' -o m.keras
also '-o and ModelCheckpoint' m.keras --callbacks "ModelCheckpoint('$PWD/m.keras')" -o m.keras
also '--save-best and ModelCheckpoint' m.best.keras --save-best loss --callbacks 'ModelCheckpoint(m.best.keras)' -o m.keras
also '-o and --checkpoint' m.keras --checkpoint ./m.keras -o m.keras
also '-o and BackupAndRestore' m.keras --callbacks 'BackupAndRestore(./m.keras)' -o m.keras
also '-o and TensorBoard' m.keras --callbacks 'TensorBoard(./m.keras)' -o m.keras
want 2 "^keel fit: CSVLogger 't.csv' would overwrite a file that --data reads" "${fit[@]}" --callbacks 'CSVLogger(t.csv)' -o m.keras
want 2 '2 BackupAndRestore: a training goes on from one folder' "${fit[@]}" --callbacks 'BackupAndRestore(one), BackupAndRestore(two)' -o m.keras
[[ ! -e one.csv && ! -e new && ! -e two && ! -e m.best.keras ]] || fail "what was refused has written: $(ls)"
want 0 'saved +m.keras' "${fit[@]}" --callbacks 'TensorBoard(run), BackupAndRestore(./run), ModelCheckpoint(run/one.keras)' -o m.keras
rm -r run m.keras
mkdir shared && cp t.csv shared/a.csv && cp t.csv shared/b.csv # tables that only the reader finds
echo 'source = "shared/*.csv"' >shared.toml
for data in shared 'shared/*.csv' shared.toml; do
    want 2 "^keel fit: --history 'shared/b.csv' would overwrite a file that keel has not written" \
        fit two.keras --data "$data" --label kind --history shared/b.csv -o m.keras
done
want 2 "^keel predict: --classes 'shared/b.csv' would overwrite a file" predict fit.keras --data shared --label kind -o p.npy --classes shared/b.csv
cmp -s t.csv shared/b.csv || fail "a file of data is written over"
rm -r shared shared.toml
mkdir shut
if chmod a-w shut && ! touch shut/x 2>err.txt; then
    want 1 "shut/ is not writable" "${fit[@]}" -o shut/m.keras
    want 1 "shut/ is not writable" predict fit.keras --data t.csv --label kind -o shut/p.npy
fi
want 1 "^keel fit: --history 'none/h.csv': none/ is not writable" "${fit[@]}" --history none/h.csv -o m.keras
mkdir elsewhere
ln -s elsewhere/real.keras link.keras
want 2 "'link.keras' is a link that leads nowhere" "${fit[@]}" -o link.keras
cp two.keras elsewhere/real.keras
want 0 '^saved +link.keras' "${fit[@]}" -o link.keras
[[ -L link.keras ]] || fail "the link was replaced"
cmp -s two.keras elsewhere/real.keras && fail "the file behind the link was not written"
[[ -z $(ls -A | grep keel-try) ]] || fail "a tried output is left: $(ls -A)"
want 2 'end in .npy' predict fit.keras --data t.csv --label kind -o p.txt
sed 's/less/0/; s/more/1/' t.csv >five.csv
want 1 "rows have shape [(]5,[)], but model .* takes [(]4,[)]; --label names a column that is no input" predict fit.keras --data five.csv -o p.npy
want 2 '--image-size' fit cnn.keras --data . --image-size 9 -o m.keras
[[ ! -e m.keras ]] || fail "a refused keel fit left a file"

# ---- images -------------------------------------------------------------------------------------
"$KEEL_BUILD/make_shapes" shapes 67 5 >/dev/null || fail "make_shapes"
want 0 'split +32 rows: 16 16; last step 3 rows: 2 1' fit cnn.keras --data shapes --devices cpu:0-1 -o c.keras
want 0 '^rows +13 ' evaluate c.keras --data shapes --validation-split 0.2
want 0 '^shapes/circle/00000.jpg: ' predict c.keras --data shapes --show 1 -o c.npy
# batches that a pipeline makes are predicted as their rows, also if nobody knows how many those are
printf 'source = "shapes"\n[[stage]]\nname = "batch"\nbatch_size = 9\n' >batches.toml
want 0 '67 x 10 float32' predict c.keras --data batches.toml -o batches.npy
cmp -s c.npy batches.npy || fail "rows in batches are predicted otherwise"
printf '[[stage]]\nname = "ignore_errors"\nmost = 1\n' >>batches.toml
want 0 '67 x 10 float32' predict c.keras --data batches.toml --show 1 -o batches.npy
cmp -s c.npy batches.npy || fail "rows of a stream are predicted otherwise"
want 1 'nobody knows how many rows it has .*--rows N' plan c.keras --data batches.toml
rm batches.toml batches.npy
want 0 'cpu:3 +[01] +16 +0$' plan cnn.keras --rows 1027 --batch-size 64 --devices cpu:0-3
want 0 '67 rows in 3 steps of 32' plan cnn.keras --data shapes
# data that a fit refuses is refused by its plan
want 1 "t.csv: rows have shape [(]4,[)], but model .* takes [(]16, 16, 3[)]" plan cnn.keras --data t.csv --label kind
want 1 "five.csv: rows have shape [(]5,[)], but model .* takes [(]4,[)]; --label names a column" plan fit.keras --data five.csv
want 0 'left out' plan cnn.keras --rows 1031 --batch-size 64 --end drop
want 2 'either --rows N' plan cnn.keras
want 2 'either --rows N' plan cnn.keras --rows 3 --data shapes
want 0 'cost +a step takes [0-9.]+ times as long' plan cnn.keras --rows 64 --devices cpu:0-2 --reproducible
want 0 'reproducible +5 shards, of at most 7 rows' plan cnn.keras --rows 64 --devices cpu:0-2 --reproducible --shards 5
want 0 'cost +a step takes' plan "$here/../tests/golden/outputs_masked_two.keras" --rows 64 --reproducible
want 2 'shards needs --reproducible' plan cnn.keras --rows 64 --shards 5
want 2 '2 shards for 3 devices' plan cnn.keras --rows 64 --devices cpu:0-2 --reproducible --shards 2
want 0 'mlp' new mlp --input 20 --classes 3 -o flat.keras
want 0 'recompute +--recompute would save nothing$' plan flat.keras --rows 64
want 0 'resnet18' new resnet18 --input 32,32,3 --classes 10 -o small.keras
want 0 'recompute +--recompute would save [0-9.]+ [KM]iB$' plan small.keras --rows 64
want 0 'recompute +--recompute saves [0-9.]+ [KM]iB$' plan small.keras --rows 64 --recompute
for more in '' --recompute; do
    want 0 '67 rows' fit small.keras --data shapes --devices cpu:0-1 -o kept$more.keras $more
    want 0 '67 x 10' predict kept$more.keras --data shapes -o kept$more.npy
done
cmp -s kept.npy kept--recompute.npy || fail "--recompute changes what is learned"
awk 'BEGIN { for (k = 0; k < 20; k++) printf "a%d,", k
    print "y"
    for (i = 0; i < 40; i++) { for (k = 0; k < 20; k++) printf "%d,", i * k % 7; print i % 3 } }' >flat.csv
want 0 'recompute has changed nothing: to make values again would save no memory' \
    fit flat.keras --data flat.csv --label y --recompute -o kept.keras
want 0 'micro +--micro-batch 1 would save [0-9.]+ [KM]iB$' plan flat.keras --rows 64
want 0 'micro +--micro-batch 3 saves [0-9.]+ [KM]iB$' plan flat.keras --rows 64 --micro-batch 3
want 0 'micro +layer .*batch_norm.* must see all rows of a step' plan small.keras --rows 64
want 3 'layer .*batch_norm.* must see all rows of a step' \
    fit small.keras --data shapes --micro-batch 3 -o kept.keras
want 2 'micro-batch .0.: must be a whole number, 1 or more' \
    fit flat.keras --data flat.csv --label y --micro-batch 0 -o kept.keras
want 2 'micro-batches of 99999999999 rows' \
    fit flat.keras --data flat.csv --label y --micro-batch 99999999999 -o kept.keras
for more in '' '--micro-batch 3'; do
    want 0 '40 rows' fit flat.keras --data flat.csv --label y --history "kept$more.csv" -o kept.keras $more
done
cut -c1-9 kept.csv >kept.txt
cut -c1-9 'kept--micro-batch 3.csv' | cmp -s - kept.txt || fail "--micro-batch changes what is learned"
rm flat.* small.keras kept*
echo 'no picture' >shapes/circle/00000.jpg
want 1 'shapes/circle/00000.jpg' fit cnn.keras --data shapes -o m.keras
"$KEEL_BUILD/make_shapes" whole 67 5 >/dev/null || fail "make_shapes"
want 1 'validation data: .*shapes/circle/00000.jpg' fit cnn.keras --data whole --validation shapes -o m.keras
# a file that is broken when it is opened is refused before the first step, whatever the option
want 1 'validation data: .*shapes/circle/00000.jpg' fit cnn.keras --data whole --validation shapes --validation-errors warn -o m.keras
[[ ! -e m.keras ]] || fail "a failed keel fit left a file"

# ---- what KEEL_CPU=base runs in oneDNN, by its own word --------------------------------------------
if "$KEEL" --version | grep -q ', oneDNN'; then
    DNNL_VERBOSE=1 KEEL_CPU=base want 0 ',exec,cpu,convolution' bench mnist-cnn --steps 2 --batch-size 4
    ! grep ',exec,cpu,' out.txt | cut -d, -f 5 | grep -m 1 avx || fail "KEEL_CPU=base: oneDNN ran AVX"
fi

# ---- bench --------------------------------------------------------------------------------------
want 0 '^step +[0-9.]+ ms: the median of 3 steps' bench mlp --steps 3
want 0 '^{.*"work": "mnist-cnn", "batch": 7, .*"steps": 2, .*"op": "conv2d".*}$' bench mnist-cnn --steps 2 --batch-size 7 --json
want 0 'mixed_bfloat16' bench mlp --dtype mixed_bfloat16 --steps 2
want 0 '^lstm +[0-9]' bench lstm --steps 1 --batch-size 2
"$KEEL" --version | grep -q base || ! grep 'no fast kernel' out.txt || fail "keel bench lstm: an op runs by its plain reference"
KEEL_CPU=base want 0 '^loss .*  reference: no fast kernel$' bench mlp --steps 1 --batch-size 2
want 0 'mixed_float16' bench mlp --dtype mixed_float16 --steps 2
# what is measured is a network that learns: the third epoch's loss is below the first step's 3.27
for dtype in float32 mixed_bfloat16; do
    want 0 '^loss +3\.2[0-9]+ in the first step, [12]\.' bench unet --batch-size 8 --steps 14 --no-profile --dtype $dtype
done
want 2 'did you mean mnist-cnn[?]' bench mnist-cn
want 2 'see keel bench --help' bench nothing-like-it
want 2 "--batch-size '0': must be a whole number, 1 or more" bench mlp --batch-size 0
want 2 "--steps '0': must be a whole number, 1 or more" bench mlp --steps 0
want 2 'seconds' bench mlp --seconds 0
want 0 'x.npy, y.npy of 16384 rows' bench mlp --export work
want 0 '^trained +2 steps' fit work/model.keras --data work/x.npy,work/y.npy --steps-per-epoch 2 -o w.keras

# ---- traces, and files that cannot be written ----------------------------------------------------
want 0 'saved' "${fit[@]}" --trace t.json --profile -o traced.keras
[[ $(head -c 16 t.json) == '{"traceEvents":[' && $(tail -n 1 t.json) == ']}' ]] || fail "t.json is no trace"
grep -q '"kernel":"' t.json || fail "t.json names no kernels"
grep -qE '^dense_1 .* (avx2|avx512|dnnl|reference)[a-z0-9_]*/' out.txt || fail "the profile names no kernels: $(cat out.txt)"
grep -q '"name":"worker 1"' t.json || [[ $(nproc) == 1 ]] || fail "t.json does not name its threads"
want 2 "--trace 't.txt': the name must end in .json" "${fit[@]}" --trace t.txt -o m.keras
want 1 "--trace 'nowhere/t.json': nowhere/ is not writable" "${fit[@]}" --trace nowhere/t.json -o m.keras
want 2 "--trace 'd.json' is a directory" "${fit[@]}" --trace "$(mkdir -p d.json && echo d.json)" -o m.keras
mkfifo pipe.json
want 2 "--trace 'pipe.json' is a device or a pipe" "${fit[@]}" --trace pipe.json -o m.keras
[[ -p pipe.json ]] || fail "a refused --trace put something in place of a pipe"
[[ ! -e m.keras ]] || fail "a refused --trace left a model"
if [[ -w /dev/full ]]; then
    for c in --version devices "inspect two.keras"; do
        "$KEEL" $c >/dev/full 2>err.txt
        [[ $? == 1 ]] && grep -q 'standard output cannot be written' err.txt || fail "keel $c to a full disk: $(cat err.txt)"
    done
fi
# a disk that is full after 200 KiB: what was learned is saved, and nothing is left by halves
trap '' XFSZ
ulimit -S -f 200
want 1 '^keel fit: long.json: writing: ' "${fit[@]}" --epochs 100 --trace long.json -o full.keras
want 0 'Adam.* 700 steps done' inspect full.keras
want 1 '^keel bench: full/model.keras: writing: ' bench mlp --export full
ulimit -S -f 20000
want 1 '^keel bench: full/x.npy: could not be written: ' bench mlp --export full
ulimit -S -f unlimited
trap - XFSZ
[[ $(echo full/* long*) == 'full/model.keras long*' ]] || fail "left by halves: $(echo full/* long*)"

# ---- rows whose shape the model leaves open ------------------------------------------------------
open=(--data "$here/golden/dims.npz" --label y=labels --batch-size 4)
text=$here/golden/dims_text.keras
images=$here/golden/dims_images.keras
want 0 '^programs [3-6] compiled for batches of different shapes, [3-6] kept$' fit "$text" "${open[@]}" -o open.keras
want 0 'None, None, 6' inspect open.keras
want 0 '^warning .*--pad bucket:N' fit "$text" "${open[@]}" --programs 2 --epochs 2 -o open.keras
want 0 '^saved' fit "$text" "${open[@]}" --pad bucket:16 -o open.keras
! grep -q '^programs' out.txt || fail "rows of one bucket have one program: $(grep ^programs out.txt)"
want 0 '^programs' evaluate open.keras "${open[@]}"
want 0 '23 x 3 float32' predict open.keras "${open[@]}" -o open.npy
want 1 'the largest bucket is 8' evaluate open.keras "${open[@]}" --pad bucket:4,8
want 2 'ascending lengths' evaluate open.keras "${open[@]}" --pad bucket:8,4
want 2 "--pad 'shortest'" evaluate open.keras "${open[@]}" --pad shortest
want 2 'programs is 31' evaluate open.keras "${open[@]}" --programs 31
want 1 'pad all rows of the data to one bucket' predict "$here/golden/dims_tags.keras" "${open[@]}" -o open.npy
# as many classes as the longest row of the batch has tokens
places=$here/golden/dims_places.keras
want 0 "^saved" fit "$places" "${open[@]}" --class-weight 1,2 -o open.keras
want 0 '^loss  ' evaluate "$places" "${open[@]}"
want 2 'class-weight auto: the model does not say how many classes' fit "$places" "${open[@]}" --class-weight auto -o m.keras
want 2 'give a size, as --shape image=' plan "$images" --rows 100
want 0 '^epoch +103 rows' plan "$text" --data p.npy,p.npy --dtype float32 # rows of one shape have the size
want 2 'give a size, as --shape tokens=' plan "$text" "${open[@]}"
want 0 '^total' plan "$images" --rows 100 --shape 20,24,2
want 0 '^total' plan "$images" --rows 100 --shape image=20,24,2
want 2 "--shape 'picture=20" plan "$images" --rows 100 --shape picture=20,24,2
want 1 'do not fit input .image.' plan "$images" --rows 100 --shape 20,24,3
want 2 '--shape needs --kernels' inspect "$images" --shape 20,24,2
want 0 'conv2d' inspect "$images" --kernels --shape 20,24,2
mkdir -p sized/a sized/b
want 2 'as --image-size' fit "$images" --data sized -o open.keras

# ---- Ctrl-C ends after the running step and saves -----------------------------------------------
"$KEEL" "${fit[@]}" --epochs 2000000 -o stopped.keras >out.txt 2>err.txt &
pid=$!
for _ in $(seq 100); do grep -q '^epoch' out.txt && break; sleep 0.1; done
kill -INT $pid
wait $pid
code=$?
[[ $code == 130 ]] || fail "after Ctrl-C: exit code $code, not 130: $(cat err.txt)"
grep -q 'stopped by Ctrl-C' out.txt || fail "after Ctrl-C the report does not say so"
want 0 'steps? done' inspect stopped.keras

((failed == 0)) || { echo "$failed failed"; exit 1; }
echo "every command does what it should"
