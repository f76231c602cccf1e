# Every refusal is one clear line with place and cause and the documented exit code, and changes nothing.
. "${CRUN_SRCDIR:?}/testsuite/lib.sh"
plan 34
instance_start 'partition "main" { default = true  max_time = "2h" }' 'partition "debug" { max_time = "10m" }'
cd "$T" || exit 1
before=$(crun-queue -ah | wc -l)

script() { printf '#!/bin/sh\n%s\ntrue\n' "$1" >job.sh; }
script '#CRUN --frobnicate=1'
must_fail 2 '^crun-submit: job.sh:2:7: .*frobnicate' crun-submit job.sh
script '#CRUN --mem=12Q'
must_fail 2 'job.sh:2:[0-9]+: .*mem.*12Q' crun-submit job.sh
script '#CRUN -n 0'
must_fail 2 'job.sh:2:[0-9]+: ' crun-submit job.sh
script '#CRUN --time=soon'
must_fail 2 'job.sh:2:[0-9]+: .*time.*soon' crun-submit job.sh
script '#CRUN --job-name="open'
must_fail 2 'job.sh:2:[0-9]+: .*quot' crun-submit job.sh
script '#SBATCH --overcommit'
must_fail 2 'job.sh:2:[0-9]+: .*overcommit' crun-submit job.sh
printf '#!/bin/sh\r\ntrue\r\n' >dos.sh
must_fail 2 'dos.sh:1:[0-9]+: .*DOS line breaks' crun-submit dos.sh
printf '#!/bin/sh\ntr\0ue\n' >nul.sh
must_fail 2 'nul.sh:2:3: .*NUL' crun-submit nul.sh
printf 'true\n' >nobang.sh
must_fail 2 'nobang.sh:1:1: .*#!' crun-submit nobang.sh
{ printf '#!/bin/sh\n'; head -c 10000000 /dev/zero | tr '\0' '#'; } >big.sh
must_fail 2 'big.sh: .*(larger|limit)' crun-submit big.sh
: >empty.sh
must_fail 2 'empty.sh' crun-submit empty.sh
must_fail 2 'nowhere.sh: No such file' crun-submit nowhere.sh
must_fail 2 'unknown option --frob' crun-submit --frob -- true
must_fail 2 'unknown option --tim' crun-submit --tim=1 -- true
must_fail 2 'needs a value|argument' crun-submit --time
must_fail 2 'mem' crun-submit --mem=-1 -- true
must_fail 2 'mem' crun-submit --mem=99999999999999999999G -- true
must_fail 2 'array' crun-submit --array=3-1 -- true
must_fail 2 'array' crun-submit --array=0-9:0 -- true
must_fail 2 'output|%q' crun-submit -o 'x-%q' -- true
must_fail 2 'dependency' crun-submit -d afterok:77_ -- true
must_fail 2 'env' crun-submit --env NOVALUE -- true
must_fail 1 "partition 'nope' does not exist.*debug.*main|partition 'nope' does not exist.*main.*debug" crun-submit -p nope -- true
must_fail 1 'cores.*4096|4096.*cores' crun-submit -n 4096 -- true
must_fail 1 '(memory|mem).*n1' crun-submit --mem=900T -- true
must_fail 1 '3 GPUs.*n1.*0' crun-submit -G 3 -- true
must_fail 1 'time limit: partition debug .*00:10:00.*01:00:00' crun-submit -p debug -t 60 -- true
must_fail 1 '999999' crun-submit -d afterok:999999 -- true
must_fail 1 'isolation' crun-submit --isolation=nope -- true
must_fail 1 '424242' crun-why 424242
must_fail 2 'selector|job' crun-cancel '12_['
must_fail 2 'state' crun-queue -t SLEEPING
must_fail 1 'n9' crun-node drain n9 --reason=x
is "nothing of all that was kept" "$(crun-queue -ah | wc -l)" "$before"
