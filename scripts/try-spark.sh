#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs contrib/lakehouse/spark_network.py on records of six vantage points from a real broker. The job is killed
# by SIGKILL in the middle of a batch, three times, and restarted; its table must equal the packets. Takes more
# than two minutes. Not in CI, because Spark takes 500 MB. The last result:
# bench/runs/2026-11-30-amd-epyc-spark.
#
#   scripts/try-spark.sh TURBOFLOW        with feature kafka; fetches pyspark and Spark's jars into target/tools
set -euo pipefail

(($# == 1)) || { sed -n 's/^#   scripts/usage: scripts/p' "$0" >&2; exit 2; }
turboflow=$(realpath "$1")
cd "$(dirname "$0")/.."
tools=$(realpath "${CARGO_TARGET_DIR:-target}")/tools
broker=
work=$(mktemp -d)
leave() {
    [[ -z $broker ]] || kill -9 "$broker" 2>/dev/null || true
    rm -rf "$work"
}
trap leave EXIT

scripts/install-test-tools.sh tests >&2
[[ -e $tools/python-spark/bin/spark-submit ]] || { python3 -m venv "$tools/python-spark" && "$tools/python-spark/bin/pip" install -q pyspark==4.0.0; }
[[ -e $tools/spark-jars ]] ||
    mvn -q -B -f scripts/spark/pom.xml dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$tools/spark-jars"
# Spark brings these itself.
jars=$(find "$tools/spark-jars" -name '*.jar' ! -name 'scala-*' ! -name 'slf4j-*' ! -name 'spark-tags*' | paste -sd,)

port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
listens=$(port) controller=$(port)
cat >"$work/server.properties" <<PROPERTIES
process.roles=broker,controller
node.id=1
num.partitions=4
controller.quorum.voters=1@127.0.0.1:$controller
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:$listens,CONTROLLER://127.0.0.1:$controller
advertised.listeners=PLAINTEXT://127.0.0.1:$listens
log.dirs=$work/log
offsets.topic.replication.factor=1
PROPERTIES
java -cp "$tools/kafka/*" kafka.tools.StorageTool format -t AAAAAAAAQACAAAAAAAAAAQ -c "$work/server.properties" >"$work/talk" 2>&1
java -Xmx512m -cp "$tools/kafka/*" kafka.Kafka "$work/server.properties" >>"$work/talk" 2>&1 &
broker=$!
disown
until (exec 3<>"/dev/tcp/127.0.0.1/$listens") 2>/dev/null; do kill -0 "$broker"; sleep 0.2; done

"$turboflow" --version
"$tools/python-spark/bin/python" scripts/spark/vantage_points.py make "$work"
records() { # NAME
    "$turboflow" record --quiet -r "$work/$1.pcap" --exporter "$1" --ledger "$work/$1.json" \
        -w "kafka://127.0.0.1:$listens/flows?format=json&records=20"
}
for name in edge0 edge1 spine0 spine1 exit0 exit1; do records "$name"; done

job=(setsid "$tools/python-spark/bin/python" contrib/lakehouse/spark_network.py --brokers "127.0.0.1:$listens" --topic flows
    --checkpoint "$work/checkpoint" --table lake.net.flows --once --batch 400
    --property "spark.jars=$jars" --property "spark.master=local[2]" --property spark.ui.enabled=false
    --property spark.ui.showConsoleProgress=false
    --property spark.driver.memory=2g --property spark.sql.shuffle.partitions=2
    --property spark.sql.catalog.lake=org.apache.iceberg.spark.SparkCatalog --property spark.sql.catalog.lake.type=hadoop
    --property "spark.sql.catalog.lake.warehouse=$work/lake"
    --property spark.sql.extensions=org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions)
export SPARK_LOCAL_IP=127.0.0.1

commits() { find "$work/checkpoint/commits" -name '[0-9]*' 2>/dev/null | wc -l || true; }
# Kills all processes of Spark once a batch is planned but not committed.
for kill in 1 2 3; do
    "${job[@]}" >"$work/spark" 2>&1 &
    spark=$!
    batch=$(commits)
    until [[ -e $work/checkpoint/offsets/$((batch + 1)) && ! -e $work/checkpoint/commits/$((batch + 1)) ]]; do
        kill -0 "$spark" 2>/dev/null || { cat "$work/spark" >&2; exit 1; }
        sleep 0.05
    done
    kill -9 -- "-$spark"
    wait "$spark" 2>/dev/null || true
    echo "kill $kill: batch $((batch + 1)) was planned, $(commits) were committed"
done
records clock
for run in rest last; do
    "${job[@]}" >"$work/spark" 2>&1 || { cat "$work/spark" >&2; exit 1; }
        echo "$run: $(grep -c '^batch' "$work/spark") batches, $(grep '^batch' "$work/spark" | tail -n 1)"
done
"$tools/python-lakehouse/bin/python" scripts/spark/vantage_points.py check "$work" "$work/lake/net/flows"
