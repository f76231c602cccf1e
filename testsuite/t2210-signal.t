# --signal: before the time limit, once, to every process or to the leader.
. "${CRUN_SRCDIR:?}/testsuite/lib.sh"
plan 6
instance_start
cd "$T" || exit 1

cat >early.sh <<'JOB'
#!/bin/sh
sh -c 'trap "echo child; exit" USR1; while :; do sleep 0.1; done' &
trap 'echo leader; sleep 1; exit 7' USR1
while :; do sleep 0.1; done
JOB
begin=$(date +%s)
crun-submit --wait -Q -t 14s --signal=USR1@10 -e none -o all.out early.sh
is "the job ends by itself, as its handler says" "$?" 7
took=$(($(date +%s) - begin))
ok "the signal comes when so much of the limit is left" test "$took" -ge 4 -a "$took" -le 8
is "every process of the job gets it" "$(sort all.out | tr '\n' ' ')" "child leader "
crun-submit --wait -Q -t 12s --signal=B:USR1@10 -o lead.out early.sh
is "with B: the leader alone gets it" "$(cat lead.out)" "leader"
must_fail 2 "USR9.* is no signal" crun-submit --signal=USR9 early.sh
cat >last.sh <<'JOB'
trap 'echo early' USR1
while :; do sleep 0.1; done
JOB
crun-submit --wait -Q -t 4s --kill-grace=1 --signal=USR1@2 -o once.out -- sh last.sh
is "it is sent once, and the limit still holds" "$?:$(grep -c early once.out)" "124:1"
