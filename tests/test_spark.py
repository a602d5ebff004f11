"""`pogp.spark` against plain Python: the same bits on executors that may die, and after a crash."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pogp
from pogp import sums
from pogp.models.selftuning.factory import made
from pogp.sums.columns import Columns, Job, added, finished, planned
from pogp.sums.drawing import Drawn

from .conftest import smooth_2d

pytestmark = [
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java, which is missing"),
    pytest.mark.filterwarnings("default"),  # Spark has many of its own
]
ROOT = Path(__file__).parents[1]
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
JAVA += " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
"""To start soon rather than to run fast."""
X, Y = smooth_2d(1500)
OPTIONS = {"max_size": 25, "kernel": "RBF", "seed": 3}
ESTIMATOR = {"maxSize": 25, "kernel": "RBF", "seed": 3, "sampleSize": 300, "calibrationSize": 200}
FLEET = {"target": "y", "kernel": pogp.RBF(), "noise": 0.05, "warmup": 10, "max_size": 8}


def session():
    """A session in which a task has two attempts, and whose JVM starts soon."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
    found = (
        SparkSession.builder.master("local[2,2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", JAVA)
        .config("spark.python.daemon.module", "tests.spark_daemon")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
        .getOrCreate()
    )
    found.sparkContext.setLogLevel("OFF")
    return found


@pytest.fixture(scope="module")
def spark():
    """One session for all tests, which leaves Ctrl-C to other tests."""
    before = signal.getsignal(signal.SIGINT)
    found = session()
    signal.signal(signal.SIGINT, before)  # Spark has one of its own
    yield found
    found.stop()


def table(spark, frame, parts=3):
    """A dataframe whose partitions are known, the last of them empty."""
    rows = [(i, *row) for i, row in enumerate(frame.itertuples(index=False))]
    pieces = [[rows[i] for i in part] for part in np.array_split(np.arange(len(rows)), parts)]
    rdd = spark.sparkContext.parallelize([*pieces, []], parts + 1).flatMap(list)
    types = {"f": "double", "i": "long", "O": "array<double>", "U": "string"}
    kinds = [types.get(kind.kind, "string") for kind in frame.dtypes]
    fields = ", ".join(f"{name} {kind}" for name, kind in zip(frame, kinds, strict=True))
    return spark.createDataFrame(rdd, f"i long, {fields}")


def frame(targets=Y):
    return pd.DataFrame({"features": [row.tolist() for row in X], "label": targets})


def plain():
    """The model of three partitions and an empty one, by plain Python."""
    read = {"features": lambda rows: X[rows], "label": lambda rows: Y[rows]}
    work = Job(Columns(("features",), ("label",), width=2), 500, seed=3)
    parts = [*np.array_split(np.arange(len(Y)), 3), np.arange(0)]
    drawn = [work.draw([p], lambda p, name: read[name](p), n) for n, p in enumerate(parts)]
    plan, held_out = planned(added(drawn, Drawn), 300, **OPTIONS)
    total = sums.total(plan.sums([(X[rows], Y[rows])]) for rows in parts)
    return finished(plan, total.to_bytes(), held_out)


@pytest.fixture(scope="module")
def fitted(spark):
    from pogp.spark import POGRegressor

    return POGRegressor(**ESTIMATOR).fit(table(spark, frame()))


def test_a_table_gives_the_model_of_plain_python(fitted):
    assert fitted.model.to_bytes() == plain().to_bytes()
    assert fitted.numFeatures == 2


def test_executors_that_die_and_a_tree_of_many_parts_change_nothing(spark, tmp_path, monkeypatch):
    import pogp.spark.parts

    work = Job(Columns(("features",), ("label",), width=2), 300, seed=3)
    points = np.random.default_rng(1).uniform(-1, 1, (10, 2))
    plan = sums.Plan(points, pogp.RBF(0.5), 0.1, np.zeros(1), np.ones(1), True, 10)
    told, flag = plan.to_bytes(), tmp_path / "died"

    def of_part(pieces, read, number):
        if number == 1:
            try:
                flag.touch(exist_ok=False)
                os._exit(1)
            except FileExistsError:
                pass
        return work.sums(pieces, read, number, told)

    monkeypatch.setattr(pogp.spark.parts, "DIRECT", 4)
    found = pogp.spark.parts.total(table(spark, frame(), parts=20), of_part, sums.Sums)
    parts = [*np.array_split(np.arange(len(Y)), 20), np.arange(0)]
    assert flag.exists()
    assert found == sums.total(plan.sums([(X[rows], Y[rows])]) for rows in parts).to_bytes()


def test_predictions_are_columns_and_the_model_goes_through_files(spark, fitted, tmp_path):
    from pogp.spark import POGModel

    rows = fitted.transform(table(spark, frame())).orderBy("i").limit(40).toPandas()
    mean, variance = fitted.model.predict(X[:40])
    np.testing.assert_allclose(rows["prediction"], mean, rtol=1e-12)
    np.testing.assert_allclose(rows["deviation"], np.sqrt(variance), rtol=1e-12)
    fitted.write().overwrite().save(str(tmp_path / "model"))
    again = POGModel.load(str(tmp_path / "model"))
    assert again.model.to_bytes() == fitted.model.to_bytes()
    assert again.uid == fitted.uid
    again.model.learn(X[:5], Y[:5])  # it goes on from a stream


def test_a_pipeline_and_a_cross_validation(spark, tmp_path):
    from pyspark.ml import Pipeline, PipelineModel
    from pyspark.ml.evaluation import RegressionEvaluator
    from pyspark.ml.feature import VectorAssembler
    from pyspark.ml.tuning import CrossValidator, ParamGridBuilder

    from pogp.spark import POGRegressor

    data = pd.DataFrame({"a": X[:400, 0], "b": X[:400, 1], "label": Y[:400]})
    learner = POGRegressor(**ESTIMATOR | {"sampleSize": 150, "calibrationSize": 50, "maxSize": 2})
    pipeline = Pipeline(stages=[VectorAssembler(inputCols=["a", "b"]), learner])
    pipeline.getStages()[0].setOutputCol("features")
    grid = ParamGridBuilder().addGrid(learner.maxSize, [25]).build()
    search = CrossValidator(
        estimator=pipeline,
        estimatorParamMaps=grid,
        evaluator=RegressionEvaluator(metricName="rmse"),
        numFolds=2,
        seed=1,
    )
    found = search.fit(table(spark, data, parts=1))
    assert found.avgMetrics[0] < 0.2  # the noise is 0.1; with two points it is above 0.2
    found.bestModel.write().overwrite().save(str(tmp_path / "pipeline"))
    again = PipelineModel.load(str(tmp_path / "pipeline"))
    assert again.stages[1].model.size == 25
    learner.write().overwrite().save(str(tmp_path / "learner"))
    assert POGRegressor.load(str(tmp_path / "learner")).getOrDefault("maxSize") == 2


def test_bad_rows_are_named_or_skipped(spark):
    from pogp.spark import POGRegressor

    targets = Y.copy()
    targets[700] = np.nan
    rows = table(spark, frame(targets)).selectExpr(
        "if(i = 900, null, features) features", "if(i < 500, null, label) label"
    )  # a partition with no target
    with pytest.raises(Exception, match=r"partition \d: y must be finite .* got nan in row \d+"):
        POGRegressor(**ESTIMATOR).fit(rows)
    model = POGRegressor(**ESTIMATOR, skipBadRows=True).fit(rows)
    assert model.model.seen == 998
    found = model.transform(rows).selectExpr("count(*) n", "sum(int(prediction is null)) bad")
    assert tuple(found.first()) == (1500, 1)
    model.set(model.skipBadRows, False)
    with pytest.raises(Exception, match=r"partition \d: features must be finite .* in row \d+"):
        model.transform(rows).collect()
    short = rows.dropna().selectExpr("array(1.0D) features").limit(1)
    with pytest.raises(Exception, match=r"partition \d: features must be 2 numbers.* got 1 in row"):
        model.transform(short).collect()


def test_wrong_columns_are_refused(spark):
    from pogp.spark import POGRegressor, learn_by_key

    rows = table(spark, frame())
    with pytest.raises(ValueError, match="no column 'y'; there are i, features, label"):
        POGRegressor(labelCol="y").fit(rows)
    with pytest.raises(ValueError, match="'features' must hold numbers"):
        POGRegressor(labelCol="features").fit(rows)
    with pytest.raises(ValueError, match="'label' must hold vectors or arrays"):
        POGRegressor(featuresCol="label").fit(rows)
    text = rows.selectExpr("i", "features", "string(label) label")
    with pytest.raises(ValueError, match="'label' must hold numbers"):
        POGRegressor().fit(text)
    with pytest.raises(ValueError, match="'label' must hold numbers"):
        learn_by_key(text, "i", "features", target="label", inputs=["i"])
    with pytest.raises(ValueError, match="no column 'sensor'"):
        learn_by_key(rows, "sensor", "i", target="label")
    with pytest.raises(ValueError, match="'features' must hold numbers"):
        learn_by_key(rows, "i", "label", target="features", inputs=["label"])


# ---- fleets -------------------------------------------------------------------------------------


KEYS, ROWS = (int(n) for n in os.environ.get("POGP_FLEET", "4,40").split(","))
"""Of the stream whose driver is killed; POGP_FLEET=1000,200 is the full size."""
BATCHES = 5
PATIENCE = 300 + KEYS
"""Seconds for a run of the stream."""


def fleet(keys=4, rows=40):
    """Rows of some sensors, out of order; the last sensor has a single one."""
    rng = np.random.default_rng(5)
    x = rng.uniform(-2, 2, keys * rows)
    data = pd.DataFrame(
        {"k": np.repeat(np.arange(keys), rows), "t": np.tile(np.arange(rows), keys)}
    )
    data["x"], data["y"] = x, np.sin(x + data["k"]) + 0.1 * rng.normal(size=len(x))
    alone = data[:1].assign(k=keys)
    return pd.concat([data, alone]).sample(frac=1.0, random_state=1, ignore_index=True)


def member(data, key):
    """The model of one key, by plain Python."""
    rows = data[data["k"] == key].sort_values("t")
    options = {name: value for name, value in FLEET.items() if name != "target"}
    model = made("absorbing", scale=True, reservoir=0, **options)
    trace = model.learn(rows[["x"]].to_numpy(), rows["y"].to_numpy())
    return model, trace


def test_every_key_of_a_table_has_the_model_of_plain_python(spark):
    from pogp.spark import learn_by_key

    data = fleet()
    found = learn_by_key(table(spark, data), "k", "t", inputs=["x"], **FLEET).collect()
    assert sorted((row.k, row.rows, row.skipped) for row in found) == [
        *((key, 40, 0) for key in range(4)),
        (4, 1, 0),
    ]
    for row in found:
        model, _ = member(data, row.k)
        assert bytes(row.model) == model.to_bytes()
        assert len(row.model) < 7000
    broken = data.assign(y=data["y"].where(data["t"] != 7))
    with pytest.raises(Exception, match=r"k \S+, t \S+: values must be finite"):
        learn_by_key(table(spark, broken), "k", "t", inputs=["x"], **FLEET).collect()
    rows = learn_by_key(table(spark, broken), "k", "t", inputs=["x"], skip=True, **FLEET)
    assert rows.agg({"rows": "sum", "skipped": "sum"}).first()[:] == (157, 4)


def run_stream(spark, folder):
    """Learn the files of a folder, one in each micro-batch, until there are no more."""
    from pogp.spark import learn_stream

    rows = (
        spark.readStream.schema("k long, t long, x double, y double")
        .option("maxFilesPerTrigger", 1)
        .parquet(f"{folder}/in")
    )
    out = learn_stream(rows, "k", "t", inputs=["x"], models=True, **FLEET)
    query = (
        out.writeStream.format("parquet")
        .option("checkpointLocation", f"{folder}/checkpoint")
        .option("path", f"{folder}/out")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def commits(folder: Path) -> int:
    """How many micro-batches were finished."""
    return len([p for p in folder.glob("checkpoint/commits/*") if p.name.isdigit()])


def test_a_stream_continues_after_its_driver_was_killed(spark, tmp_path):
    data = fleet(KEYS, ROWS)
    (tmp_path / "in").mkdir()
    for number in range(BATCHES):
        rows = data[data["t"] * BATCHES // ROWS == number]
        rows.to_parquet(tmp_path / "in" / f"{number}.parquet", index=False)
        stamp = 1_700_000_000 + number
        os.utime(tmp_path / "in" / f"{number}.parquet", (stamp, stamp))
    first = subprocess.Popen(
        [sys.executable, "-m", "tests.test_spark", str(tmp_path)],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        limit = time.monotonic() + PATIENCE
        while commits(tmp_path) < 2 and first.poll() is None and time.monotonic() < limit:
            time.sleep(0.02)
    finally:
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
    assert 2 <= commits(tmp_path) < BATCHES
    run_stream(spark, tmp_path)  # another driver
    found = pd.read_parquet(tmp_path / "out").sort_values(["k", "t"])
    assert len(found) == len(data)
    for key in range(KEYS + 1):
        model, trace = member(data, key)
        rows = found[found["k"] == key]
        np.testing.assert_array_equal(rows["mean"], trace.mean)
        np.testing.assert_array_equal(rows["deviation"], np.sqrt(trace.variance))
        assert rows["model"].dropna().iloc[-1] == model.to_bytes()
    assert found["surprise"].notna().sum() == len(data) - KEYS - 1
    assert 0 <= found["alarm"].mean() < 0.1


if __name__ == "__main__":
    run_stream(session(), sys.argv[1])
