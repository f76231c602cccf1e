# Every way to submit: a file, a command, --wrap, standard input; what the job then sees.
. "${CRUN_SRCDIR:?}/testsuite/lib.sh"
plan 25
instance_start
cd "$T" || exit 1

cat >hello.sh <<'JOB'
#!/bin/sh
#CRUN --job-name=greeting --time=2
#CRUN --env GREETING="hello world"
echo "$GREETING from $CRUN_JOB_NAME $*"
pwd
JOB
like "a job file is accepted with the line that tools look for" "$(crun-submit -o f.out hello.sh a 'b c')" '^Submitted batch job [0-9]+$'
id=$(submit -o file-%j.out hello.sh a 'b c')
ok "--wait ends with code 0" crun-wait "$id"
is "directives, environment and arguments reach the script" "$(sed -n 1p "file-$id.out")" "hello world from greeting a b c"
is "it runs in the folder it was submitted from" "$(sed -n 2p "file-$id.out")" "$T"
is "the command line wins over directives" "$(crun-submit --wait -Q -o o2 -J other hello.sh; sed -n 1p o2)" "hello world from other "
is "--chdir is where it runs" "$(mkdir -p sub; crun-submit --wait -Q -D "$T/sub" -o out hello.sh; sed -n 2p sub/out)" "$T/sub"

cat >args.sh <<'JOB'
for a; do printf '[%s]' "$a"; done
JOB
crun-submit --wait -Q -o argv.out -- sh args.sh 'a b' '' '-x' '*' '"q"' "l1
l2" '$HOME'
is "-- COMMAND keeps argv byte for byte" "$(cat argv.out)" "[a b][][-x][*][\"q\"][l1
l2][\$HOME]"
crun-submit --wait -Q -o wrap.out --wrap='echo one; echo two | tr a-z A-Z'
is "--wrap is a shell line" "$(cat wrap.out)" "one
TWO"
echo 'echo from stdin' | { echo '#!/bin/sh'; cat; } | crun-submit --wait -Q -o stdin.out
is "standard input is a job file" "$(cat stdin.out)" "from stdin"
crun-submit --wait -Q -o sout -e serr -- sh -c 'echo out; echo err >&2'
is "-e splits standard error off" "$(cat sout):$(cat serr)" "out:err"
crun-submit --wait -Q -o both -- sh -c 'echo out; echo err >&2'
is "without -e both go to one file" "$(cat both)" "out
err"
crun-submit --wait -Q -o deep/er/%x-%u.log -J na/me -- echo x
ok "missing folders of the output file are made and patterns filled in" test -s "deep/er/na_me-$(id -un).log"
like "the default name of the output file is crun-ID.out" "$(id=$(submit -- true); crun-wait "$id"; ls "crun-$id.out")" '^crun-[0-9]+\.out$'
printf 'a line\n' >in.txt
crun-submit --wait -Q -i in.txt -o cat.out -- cat
is "--input feeds standard input" "$(cat cat.out)" "a line"

crun-submit --wait -Q -o env.out -n 1 -c 1 --env K=V -- env
for v in CRUN_JOB_ID CRUN_ATTEMPT=1 CRUN_NTASKS=1 CRUN_CPUS_PER_TASK=1 CRUN_SUBMIT_DIR CRUN_CLUSTER=test CRUN_NODENAME=n1 CRUN_START_TIME= K=V; do
    grep -q "^$v" env.out || diag "missing $v"
done
is "the job's variables are set" "$(grep -cE '^(CRUN_JOB_ID=|CRUN_ATTEMPT=1$|CRUN_NTASKS=1$|CRUN_CPUS_PER_TASK=1$|CRUN_SUBMIT_DIR=|CRUN_CLUSTER=test$|CRUN_NODENAME=n1$|CRUN_START_TIME=[0-9]+$|K=V$)' env.out)" 9
is "no SLURM variables without #SBATCH" "$(grep -c '^SLURM_' env.out)" 0
printf '#!/bin/sh\n#SBATCH -J slurmy -t 1\nenv\n' >s.sh
crun-submit --wait -Q -o slurm.out s.sh
is "#SBATCH is read, and brings the SLURM twins" "$(grep -cE '^SLURM_(JOB_ID|JOB_NAME=slurmy|NTASKS=1|CPUS_PER_TASK)' slurm.out)" 4
CRUN_JOB_NAME=outer SLURM_NTASKS=99 crun-submit --wait -Q -o nested.out -- env
is "variables of a surrounding job are not inherited" "$(grep -cE 'outer|SLURM_NTASKS' nested.out)" 0
is "--json gives the id and the schema" "$(crun-submit --json -- true | jq -r '.schema, (.job_id > 0)' | tr '\n' ' ')" "crun/submit/1 true "
is "CRUN_OPT_ variables are read and beat directives" "$(CRUN_OPT_JOB_NAME=envname crun-submit --wait -Q -o eo hello.sh; sed -n 1p eo)" "hello world from envname "
like "--test-only shows where each value comes from and submits nothing" "$(n=$(crun-queue -ah | wc -l); crun-submit --test-only hello.sh; [ "$(crun-queue -ah | wc -l)" = "$n" ] && echo same)" 'same'
like "a directive after the first command is warned about, with its line" "$(printf '#!/bin/sh\ntrue\n#CRUN --time=5\n' >late.sh; crun-submit late.sh 2>&1 >/dev/null)" 'late.sh:3'
is "%j of the output is the id that was printed" "$(crun-wait "$id"; [ -e "file-$id.out" ] && echo yes)" yes
is "a script that is changed after submit runs as submitted" "$(printf '#!/bin/sh\necho first\n' >c.sh; crun-submit --parsable -H -o c.out c.sh >c.id; printf '#!/bin/sh\necho second\n' >c.sh; crun-ctl release "$(cat c.id)"; crun-wait "$(cat c.id)"; cat c.out)" first
echo 'slurm_env = "yes"' >>"$CRUN_CONF"
crun-stop --dir="$H" >/dev/null && crun-start --dir="$H" --node=n1 >/dev/null
is "slurm_env = yes brings the SLURM twins to every job" "$(crun-submit --wait -Q -o twin.out -- env; grep -c '^SLURM_JOB_ID=' twin.out)" 1
